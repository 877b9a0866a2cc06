"""`selection`, `masked` and `compared` by their numbers: the heads that each method keeps for known measures, what a
choice scores when masked, and what a fine-tuned model scores against the unpruned one."""

from collections import Counter
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
import torch

from few_heads import HEAD_WIDTH, KNOWN
from heads.__main__ import main
from heads.base.columns import MASKED_COLUMNS as MASKED
from heads.base.files import read_lines, read_tsv, write_json, write_lines, write_tsv
from heads.base.names import ATTENTIONS
from heads.model.head_removal import module_name
from heads.model.shape import Head
from heads.text.special_ids import EOS
from heads.translation.beam_search import greedy
from known_experiment import FOUND, LETTERS, WAYS, Known, as_text, command, known_model, path_model, save, settings
from shape_facts import facts_with_shape

LIVE = {"enc_self": [[0, 1], [0, 2], []], "dec_self": [[1], [], [0]], "dec_enc": [[0, 1], [1], [2]]}
HEADS = tuple((kind, n, head) for kind in ATTENTIONS for n, layer in enumerate(LIVE[kind]) for head in layer)
COUNT = len(HEADS)
FORMS = ("example", "token", "batch", "signed")
MEASURES = [f"{form}{ending}" for form in FORMS for ending in ("", "_layer")]
MEASURES += ["ablation", "confidence", "lrp", "causal"]
ORDERS = {name: np.random.default_rng([5, n]).permutation(COUNT) - COUNT / 3 for n, name in enumerate(MEASURES)}
"""The score of each head for each measure: all orders differ, and some scores are negative."""


def decoy_order() -> Any:
    """Scores of measures that no method reads."""
    return np.random.default_rng(99).permutation(COUNT)


def best(scores: Any, count: int) -> set[Head]:
    return {HEADS[place] for place in np.argsort(scores)[::-1][:count]}


@pytest.fixture
def measured(tmp_path: Path) -> Path:
    """The folder of an unpruned model with all its measurements, and decoys in values that must not be read."""
    place = [dict(zip(("attention", "layer", "head"), head, strict=True)) for head in HEADS]
    write_json(tmp_path / "model.json", {"shape": facts_with_shape(LIVE, width=12, head_width=3)})
    importance = [
        {**head, "form": form, "importance": ORDERS[form][i], "importance_normalised": ORDERS[f"{form}_layer"][i]}
        for form in reversed(FORMS) for i, head in enumerate(place)
    ]  # fmt: skip
    write_tsv(tmp_path / "importance.tsv", importance, tuple(importance[0]))
    decoy = decoy_order()
    for name, scores in (("ablation.dev.tsv", ORDERS["ablation"]), ("ablation.tsv", decoy)):
        # A head is better the more BLEU is lost without it; the BLEU that is left gives yet another order.
        rows = [{**head, "bleu": decoy[i], "bleu_change": -float(scores[i])} for i, head in enumerate(place)]
        write_tsv(tmp_path / name, rows, tuple(rows[0]))
    rows = [{**head, "confidence": ORDERS["confidence"][i], "tokens": decoy[i]} for i, head in enumerate(place)]
    write_tsv(tmp_path / "confidence.tsv", rows, tuple(rows[0]))
    rows = [{**head, "gate": decoy[i], "causal_gate": ORDERS["causal"][i]} for i, head in enumerate(place)]
    write_tsv(tmp_path / "causal.tsv", rows, tuple(rows[0]))
    rows = [
        {**head, "rule": rule, "relevance": decoy[i], "relevance_absolute": scores[i]}
        for rule, scores in (("z-plus", ORDERS["lrp"]), ("plain", decoy)) for i, head in enumerate(place)
    ]  # fmt: skip
    write_tsv(tmp_path / "lrp.tsv", rows, tuple(rows[0]))
    return tmp_path


def kept(folder: Path, *targets: str, **at_least: int) -> dict[str, set[Head]]:
    """The heads that the command keeps for each target; its table has a row for every target and head."""
    told = settings(folder / "s.yaml", selection={"at_least": {k.replace("__", "."): v for k, v in at_least.items()}})
    command("selection", settings=told, baseline=folder, targets=targets, out=folder / "selection.tsv")
    rows = read_tsv(folder / "selection.tsv")
    heads = [(row["attention"], int(row["layer"]), int(row["head"])) for row in rows]
    names = [(f"{row['method']}-{row['budget']}", head) for row, head in zip(rows, heads, strict=True)]
    assert names == [(target, head) for target in targets for head in HEADS]
    opened = [name for row, name in zip(rows, names, strict=True) if row["open"] == "1"]
    return {target: {head for name, head in opened if name == target} for target in targets}


def test_each_method_keeps_the_heads_that_its_own_measure_ranks_first_for_each_budget(measured: Path) -> None:
    """LRP uses the first rule of its file; single-head masking uses the BLEU lost on dev."""
    wanted = {f"{name}-{budget}": best(ORDERS[name], budget) for name in MEASURES for budget in (0, 1, 4, 9)}
    assert len({tuple(scores) for scores in ORDERS.values()}) == len(MEASURES)
    assert all(best(ORDERS[name], 4) != best(decoy_order(), 4) for name in MEASURES)
    assert kept(measured, *wanted) == wanted


def test_reversed_keeps_the_last_of_importance_by_layer_and_of_no_other_measure(measured: Path) -> None:
    budgets = (1, 3, 7)
    found = list(kept(measured, *(f"reversed-{budget}" for budget in budgets)).values())
    last = {name: [best(-scores, budget) for budget in budgets] for name, scores in ORDERS.items()}
    assert [name for name, heads in last.items() if heads == found] == ["example_layer"]


def test_a_draw_of_random_hangs_on_its_number_alone_and_larger_budgets_hold_smaller_ones(measured: Path) -> None:
    targets = [f"random{number}-{budget}" for number in (1, 2, 11) for budget in (3, 6)]
    found = kept(measured, *targets)
    assert found == {target: kept(measured, target)[target] for target in reversed(targets)}
    assert len({frozenset(found[target]) for target in targets}) == 6
    assert all(found[f"random{number}-3"] < found[f"random{number}-6"] for number in (1, 2, 11))


def test_a_stratified_draw_has_as_many_heads_of_each_kind_as_importance_by_layer_and_of_no_other_measure(
    measured: Path,
) -> None:
    budgets = (2, 5, 8)
    found = kept(measured, *(f"stratified{number}-{budget}" for number in (1, 2) for budget in budgets))
    kinds = {name: [of_kinds(best(scores, budget)) for budget in budgets] for name, scores in ORDERS.items()}
    for number in (1, 2):
        own = [of_kinds(found[f"stratified{number}-{budget}"]) for budget in budgets]
        assert [name for name, counts in kinds.items() if counts == own] == ["example_layer"]
    assert [found[f"stratified1-{budget}"] for budget in budgets] != [
        found[f"stratified2-{budget}"] for budget in budgets
    ]


def of_kinds(heads: set[Head]) -> Counter[str]:
    return Counter(kind for kind, _, _ in heads)


def test_an_optimal_choice_has_the_most_importance_by_sentence_of_all_that_hold_limits_and_least_numbers(
    measured: Path,
) -> None:
    """Checked by trying all sets of heads."""
    worth = dict(zip(HEADS, ORDERS["example"].tolist(), strict=True))
    least = {"enc_self": 1, "dec_enc.2": 1, "enc_self.1": 2}
    for budget in (5, 7):
        allowed = [
            set(heads) for size in range(budget + 1) for heads in combinations(HEADS, size)
            if sum(head[:2] == ("enc_self", 0) for head in heads) >= 1
            and {("enc_self", 1, 0), ("enc_self", 1, 2), ("dec_enc", 2, 2)} <= set(heads)
        ]  # fmt: skip
        right = max(allowed, key=lambda heads: sum(worth[head] for head in heads))
        target = f"optimal-{budget}"
        told = {key.replace(".", "__"): value for key, value in least.items()}
        assert kept(measured, target, **told)[target] == right
        assert kept(measured, target)[target] != right, "the least numbers matter here"


@cache
def without(known: Known, closed: frozenset[Head]) -> list[str]:
    """Translations of the test sentences, one at a time, with the output of closed heads set to zero."""
    model = known_model()
    with torch.no_grad():
        for kind, layer, head in closed:
            output = model.get_submodule(module_name(kind, layer)).get_submodule("output").get_parameter("weight")
            output[:, head * HEAD_WIDTH : (head + 1) * HEAD_WIDTH] = 0.0
    found = []
    for ids in known.ids("test", "source"):
        read = torch.tensor([[*ids, EOS]])
        found += greedy(model, read, torch.ones_like(read, dtype=torch.bool))
    letters = len(LETTERS["target"])
    assert all(4 <= subword < 4 + letters for ids in found for subword in ids)
    return [as_text(ids, "target") for ids in found]


def bleu(lines: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(lines, [references]).score


def masked(
    known: Known,
    out: Path,
    choices: dict[str, set[Head]],
    model: Path | None = None,
    references: Path | None = None,
    **translate: Any,
) -> list[dict[str, str]]:
    """The rows that the command writes for some choices, each given by the heads that it keeps."""
    run = model or known.baseline
    columns = ("method", "budget", "attention", "layer", "head", "open")
    rows = [
        dict(zip(columns, (*name.split("-"), *head, int(head in heads)), strict=True))
        for name, heads in choices.items() for head in known_model().shape.heads()
    ]  # fmt: skip
    write_tsv(out / "selection.tsv", rows, tuple(rows[0]))
    told = settings(out / "s.yaml", translate=translate, selection={"resamples": 199})
    command("masked", settings=told, model=run,
            source=known.tokens("test", "source"), references=references or known.text("test", "target"),
            target_bpe=known.bpe / "target.model", selection=out / "selection.tsv", out=out / "masked.tsv",
            device="cpu")  # fmt: skip
    return read_tsv(out / "masked.tsv")


@pytest.mark.parametrize("sentences", [0, 9])
def test_every_choice_has_a_row_with_what_the_unpruned_model_scores_without_the_heads_it_closes(
    known: Known, tmp_path: Path, sentences: int
) -> None:
    every, mine = set(known_model().shape.heads()), set(KNOWN)
    # The first choice costs BLEU, so it cannot be confused with the unpruned model.
    choices = {
        "random1-17": every - {KNOWN[2]}, "signed-18": every, "lrp-4": mine, "random2-17": every - {KNOWN[1]},
        "random3-3": mine - {KNOWN[1]}, "token-4": mine, "optimal-14": every - mine,
    }  # fmt: skip
    rows = masked(known, tmp_path, choices, sentences=sentences, beam=1, length_penalty=0.0)
    assert [tuple(row) for row in rows] == [MASKED] * len(choices)
    assert [row["target"] for row in rows] == list(choices)
    count = sentences or 14
    references = read_lines(known.text("test", "target"))[:count]
    whole = bleu(known.right("test")[:count], references)
    scores = []
    for row, heads in zip(rows, choices.values(), strict=True):
        score = bleu(without(known, frozenset(every - heads))[:count], references)
        scores.append(round(score, 4))
        assert (row["kept"], row["of"]) == (str(len(heads)), "18")
        assert float(row["bleu"]) == pytest.approx(score, abs=1e-3)
        assert float(row["bleu_change"]) == pytest.approx(score - whole, abs=1e-3)
        # Translating like the unpruned model is no change; a big loss is significant. Draws are 199, as set.
        p_value, changed = float(row["p_value"]), score < whole - 20
        assert p_value <= 0.02 if changed else p_value == 1
        assert 200 * p_value == pytest.approx(round(200 * p_value), abs=1e-4)
    assert scores[1] == scores[2] == scores[5] == round(whole, 4)
    assert len(set(scores)) >= 4


@pytest.mark.parametrize(("search", "right"), list(FOUND.items()))
def test_masked_models_are_scored_by_the_beam_and_the_length_penalty_of_the_settings(
    known: Known, tmp_path: Path, search: tuple[int, float], right: str
) -> None:
    """Heads have no effect in this model; each search takes its own of three paths; references take the long one."""
    run = save(path_model(WAYS), tmp_path / "run")
    write_lines(tmp_path / "references", ["k o p q"] * 14)
    beam, length_penalty = search
    choices = {"lrp-0": set[Head](), "lrp-18": set(known_model().shape.heads())}
    told = masked(known, tmp_path, choices, run, tmp_path / "references", beam=beam, length_penalty=length_penalty)
    assert [float(row["bleu"]) for row in told] == pytest.approx([bleu([right] * 14, ["k o p q"] * 14)] * 2, abs=1e-3)
    assert [(row["bleu_change"], row["p_value"]) for row in told] == [("0", "1")] * 2


LINES = ["the old cat sees a dog .", "a dog sees the small cat .", "two birds sing in the tall tree .",
         "we all like warm bread .", "they never came back home again ."] * 4  # fmt: skip


def with_errors(count: int) -> list[str]:
    """The references with one word wrong in each of the first `count` lines."""
    return [line.replace(line.split()[1], "x") if n < count else line for n, line in enumerate(LINES)]


def folder_of(root: Path, run: str, live: dict[str, list[list[int]]], updates: int, errors: int) -> Path:
    """A run as `compared` reads it, with a score file that it must not use."""
    folder = root / run
    write_json(folder / "model.json", {"shape": facts_with_shape(live), "updates": 3, "total_updates": updates})
    write_json(folder / "bleu.json", {"bleu": 1.0})
    write_lines(folder / "translations.txt", with_errors(errors))
    return folder


def compare(baseline: Path, runs: list[Path], root: Path, resamples: int = 199) -> int:
    write_lines(root / "references.txt", [*LINES, "a line beyond those that were translated ."])
    told = settings(root / "s.yaml", selection={"resamples": resamples})
    words = ["--settings", told, "--baseline", baseline, "--runs", *runs, "--references", root / "references.txt"]
    return main(["compared", *map(str, words), "--out", str(root / "compared.tsv")])


def test_every_fine_tuned_model_is_compared_with_the_unpruned_one_and_with_no_other(tmp_path: Path) -> None:
    root = tmp_path / "mine"
    none: dict[str, list[list[int]]] = {kind: [[], [], []] for kind in LIVE}
    fewer = {**LIVE, "enc_self": [[1], [2], []], "dec_enc": [[0], [], [2]]}
    # The control comes first and is worse than the unpruned model, so the result shows which one is compared with.
    given = {
        "baseline/seed-1": (LIVE, 50, 1), "pruned/all/lam-0/seed-1": (LIVE, 57, 3),
        "pruned/all/keep-6/seed-1": (fewer, 57, 1), "selected/all/lrp-6/seed-1": (fewer, 62, 0),
        "selected/all/random2-0/seed-1": (none, 62, 20),
    }  # fmt: skip
    folders = [folder_of(root, run, *facts) for run, facts in given.items()]
    for resamples in (199, 119):
        assert compare(folders[0], folders[1:], root, resamples) == 0
        rows = {row["run"]: row for row in read_tsv(root / "compared.tsv")}
        assert list(rows) == list(given)[1:]
        assert {run: (row["kept"], row["of"], row["updates"]) for run, row in rows.items()} == {
            "pruned/all/lam-0/seed-1": ("10", "10", "7"), "pruned/all/keep-6/seed-1": ("6", "10", "7"),
            "selected/all/lrp-6/seed-1": ("6", "10", "12"), "selected/all/random2-0/seed-1": ("0", "10", "12"),
        }  # fmt: skip
        unpruned = bleu(with_errors(1), LINES)
        for run, (_, _, errors) in list(given.items())[1:]:
            score = bleu(with_errors(errors), LINES)
            assert float(rows[run]["bleu"]) == pytest.approx(score, abs=1e-3)
            assert float(rows[run]["bleu_change"]) == pytest.approx(score - unpruned, abs=1e-3)
        assert rows["pruned/all/keep-6/seed-1"]["p_value"] == "1"
        assert float(rows["selected/all/lrp-6/seed-1"]["bleu_change"]) > 0
        assert float(rows["selected/all/random2-0/seed-1"]["p_value"]) == pytest.approx(1 / (resamples + 1), rel=1e-4)


def test_translations_of_another_number_of_sentences_are_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "mine"
    runs = [folder_of(root, run, LIVE, 5, 0) for run in ("baseline/seed-1", "selected/all/lrp-6/seed-1")]
    write_lines(runs[1] / "translations.txt", LINES[:-1])
    assert compare(runs[0], runs[1:], root) == 1
    assert "translations.txt has 19 lines, not 20: score it again." in capsys.readouterr().err
    assert not (root / "compared.tsv").exists()
