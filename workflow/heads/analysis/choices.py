"""Scores of chosen heads: the others masked in the unpruned model, or pruned and the rest fine-tuned."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from heads.analysis.ablation import Translate, gates_without
from heads.analysis.metrics import ACCURACY, BLEU, Metric, bleu_by
from heads.base.columns import COMPARED_COLUMNS, MASKED_COLUMNS
from heads.base.files import UserError, read_lines
from heads.base.methods import SURGEON
from heads.base.names import AUTO, CLASSIFICATION, SCORED_FILES, TRANSLATION
from heads.base.targets import Target
from heads.model.encoder import Encoder
from heads.model.head_removal import open_without
from heads.model.shape import Head, Place, check_answers, facts_of, shape_of
from heads.pruning.closed_form import doing_without, kept_by
from heads.pruning.surgeon import OutputMap
from heads.translation.text_scores import tokeniser_of

Choices = dict[Target, dict[Head, bool]]


def choices_of(rows: Sequence[dict[str, str]]) -> Choices:
    """Whether each head is open, for each choice such as `random2-12`."""
    choices: Choices = {}
    for row in rows:
        head = row["attention"], int(row["layer"]), int(row["head"])
        choices.setdefault(Target.of_choice(row["method"], row["budget"]), {})[head] = row["open"] == "1"
    return choices


def masked_rows(
    model: Encoder,
    choices: Choices,
    translate: Translate,
    references: Sequence[str],
    metric: Metric = BLEU,
    *,
    resamples: int,
    maps: Mapping[Place, OutputMap] | None = None,
) -> list[dict[str, object]]:
    """One row as in MASKED_COLUMNS for each choice; choices of the same heads are translated once.

    maps: with which the heads that stay make up for the others, where the surgeon chose; without them, that raises
    UserError.
    """
    closed = {
        target: (target.method == SURGEON, frozenset(head for head, is_open in heads.items() if not is_open))
        for target, heads in choices.items()
    }
    texts = {}
    # A dict, as the order of a set would change from run to run.
    for refitted, heads in dict.fromkeys(closed.values()):
        if refitted and maps is None:
            raise UserError("The surgeon chose some of these heads: give --grams, the file that its stage wrote.")
        kept = kept_by(open_without(model.shape, heads)) if refitted else {}
        with doing_without(model, maps or {}, kept):
            texts[refitted, heads] = translate(gates_without(model, heads))
    (base, _), *found = metric.paired(translate(None), list(texts.values()), references, resamples)
    scores = dict(zip(texts, found, strict=True))
    rows: list[dict[str, object]] = []
    for target, (refitted, heads) in closed.items():
        score, p_value = scores[refitted, heads]
        of = len(choices[target])
        cells = (str(target), of - len(heads), of, score, score - base, p_value)
        rows.append(dict(zip(metric.named(MASKED_COLUMNS), cells, strict=True)))
    return rows


def metric_of(folder: Path, references: Sequence[str] = (), tokeniser: str = AUTO) -> tuple[Metric, str]:
    """The metric of the model in a folder, and the name of the file there with its answers.

    references: of the whole text, for the tokeniser of BLEU. Raises UserError if it embeds sentences.
    """
    shape = shape_of(folder)
    check_answers(shape, folder)
    if shape.classifies:
        return ACCURACY, SCORED_FILES[CLASSIFICATION][1]
    return bleu_by(tokeniser_of(references, tokeniser)), SCORED_FILES[TRANSLATION][1]


def compared_rows(
    baseline: Path,
    runs: Sequence[tuple[str, Path]],
    references: Sequence[str],
    resamples: int,
    tokeniser: str = AUTO,
) -> list[dict[str, object]]:
    """One row as in COMPARED_COLUMNS for each run, given by name and folder, against the unpruned model's folder.

    Raises UserError if a folder has more or fewer answers than the unpruned model's.
    """
    metric, answers = metric_of(baseline, references, tokeniser)
    unpruned = read_lines(baseline / answers)
    references = references[: len(unpruned)]
    texts = [read_lines(folder / answers) for _, folder in runs]
    for (_, folder), text in zip(runs, texts, strict=True):
        if len(text) != len(references):
            raise UserError(f"{folder}/{answers} has {len(text)} lines, not {len(references)}: score it again.")
    (base, _), *scores = metric.paired(unpruned, texts, references, resamples)
    rows: list[dict[str, object]] = []
    of, before = len(shape_of(baseline).heads()), facts_of(baseline)["total_updates"]
    for (name, folder), (score, p_value) in zip(runs, scores, strict=True):
        kept, updates = len(shape_of(folder).heads()), facts_of(folder)["total_updates"] - before
        values = (name, kept, of, updates, score, score - base, p_value)
        rows.append(dict(zip(metric.named(COMPARED_COLUMNS), values, strict=True)))
    return rows
