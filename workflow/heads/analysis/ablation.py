"""What a model loses in BLEU when heads are masked: each alone, or all of a layer but one (Michel et al. 2019, 3).

A head is masked by a gate of zero; nothing is trained again. Whether BLEU changed is tested by sacrebleu's paired
bootstrap over sentences against the unmasked model. No file is opened here: how to translate is given.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence

from sacrebleu.metrics import BLEU
from sacrebleu.significance import PairedTest, Result
from torch import Tensor

from heads.model.shape import Head, ModelShape
from heads.model.transformer import Gates, Transformer

Translate = Callable[[Gates | None], list[str]]
"""Translates always the same sentences, with these gates on the heads (None: all open)."""

COLUMNS = ("attention", "layer", "head", "bleu", "bleu_change", "p_value")
CHOICE_COLUMNS = (
    "attention",
    "layer",
    "heads",
    "head_chosen",
    "bleu",
    "bleu_change",
    "p_value",
    "head_oracle",
    "bleu_oracle",
    "bleu_change_oracle",
    "p_value_oracle",
)

Row = dict[str, str | int | float]


def gates_without(model: Transformer, masked: Collection[Head]) -> dict[str, list[Tensor]]:
    """Gates, where the model is, that close the live heads `masked` and leave all others open."""
    make = model.projection.weight.new_tensor
    return {
        kind: [make([float((kind, layer, head) not in masked) for head in live]) for layer, live in enumerate(layers)]
        for kind, layers in model.shape.live_heads.items()
    }


def masked_alone(shape: ModelShape) -> dict[Head, set[Head]]:
    """For every live head what to mask so that it alone is missing (Michel et al. 2019, sec. 3.2)."""
    return {head: {head} for head in shape.heads()}


def kept_alone(shape: ModelShape) -> dict[Head, set[Head]]:
    """For every live head what to mask so that it is the only one left of its layer (Michel et al. 2019, sec. 3.3)."""
    heads = shape.heads()
    return {head: {other for other in heads if other[:2] == head[:2] and other != head} for head in heads}


def ablation_rows(
    model: Transformer,
    cases: Mapping[Head, Collection[Head]],
    translate: Translate,
    references: Sequence[str],
    *,
    resamples: int,
) -> list[Row]:
    """One row for every case: BLEU with its heads masked, the change, and how likely so large a change is by chance.

    The p-value is two-sided and never below 1 / (resamples + 1).
    """
    unmasked = translate(None)
    texts = {head: translate(gates_without(model, masked)) if masked else unmasked for head, masked in cases.items()}
    scores = paired_bootstrap(unmasked, list(texts.values()), references, resamples)
    return [
        dict(zip(COLUMNS, (*head, bleu, bleu - scores[0][0], p_value), strict=True))
        for head, (bleu, p_value) in zip(texts, scores[1:], strict=True)
    ]


def paired_bootstrap(
    baseline: list[str], systems: Sequence[list[str]], references: Sequence[str], resamples: int
) -> list[tuple[float, float]]:
    """BLEU and p-value against `baseline` of the baseline itself and of every system, by sacrebleu (Koehn 2004).

    The draws follow sacrebleu's own seed, 12345 unless SACREBLEU_SEED says otherwise.
    """
    named: list[tuple[str, Sequence[str]]] = [(str(number), texts) for number, texts in enumerate([baseline, *systems])]
    test = PairedTest(named, {"BLEU": BLEU()}, [list(references)], test_type="bs", n_samples=resamples)
    _, columns = test()
    first, *others = [result for result in columns["BLEU"] if isinstance(result, Result)]
    found = [(float(first.score), 1.0)]
    for result in others:
        # sacrebleu counts draws that exceed the difference, and gives its smallest p-value to a system that never
        # differs at all: no draw exceeds zero by zero.
        same = (result.score, result.mean, result.ci) == (first.score, first.mean, first.ci)
        found.append((float(result.score), 1.0 if same or result.p_value is None else result.p_value))
    return found


def choice_rows(chosen_on: Sequence[Row], scored_on: Sequence[Row]) -> list[Row]:
    """For every layer cut to one head: the head that was best on one set, and what it scores on another.

    Both are rows of `kept_alone`. The oracle is the best head on the set that scores it, which flatters.
    """
    layers: dict[tuple[str, int], list[Row]] = {}
    for row in chosen_on:
        layers.setdefault((str(row["attention"]), int(row["layer"])), []).append(row)
    scored = {(row["attention"], row["layer"], row["head"]): row for row in scored_on}
    table: list[Row] = []
    for (kind, layer), rows in layers.items():
        best = scored[kind, layer, max(rows, key=_bleu)["head"]]
        oracle = max((scored[kind, layer, row["head"]] for row in rows), key=_bleu)
        measures = [row[name] for row in (best, oracle) for name in ("head", "bleu", "bleu_change", "p_value")]
        table.append(dict(zip(CHOICE_COLUMNS, (kind, layer, len(rows), *measures), strict=True)))
    return table


def _bleu(row: Row) -> float:
    return float(row["bleu"])
