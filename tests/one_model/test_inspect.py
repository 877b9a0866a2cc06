"""`heads inspect`: numbers of heads computed in other ways, sentences about heads, and errors."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from explored_page import data_of
from heads.__main__ import main
from heads.analysis.ablation import gates_without
from heads.base.files import read_lines, read_tsv, write_lines
from heads.base.names import ATTENTIONS
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune
from heads.one_model.inspecting import inspect
from heads.one_model.measuring import like_drawn
from heads.one_model.page import in_words
from heads.text.batches import pad
from heads.text.special_ids import EOS
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import beam_search
from model_folders import SOURCE, TARGET, Experiment, greedy, write_experiment

TEXT = [*SOURCE, "a white dog .", "the old house stands near the river .", "cats see dogs ."]
SPOKEN = ("score_change", "score_change_low", "score_change_high")


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Experiment:
    return write_experiment(tmp_path_factory.mktemp("results") / "tiny")


@pytest.fixture(scope="module")
def inspected(experiment: Experiment, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of an exported model, with its own translations as references."""
    place = tmp_path_factory.mktemp("inspected")
    export(saved_bundle(experiment.baseline), place / "model")
    write_lines(place / "text.en", TEXT)
    page = place / "heads.html"
    assert main(["inspect", *map(str, (place / "model", place / "text.en", "-o", page)), "--masked", "6"]) == 0
    return page


def content(page: Path) -> dict[str, Any]:
    (one,) = data_of(page)
    return one


def test_what_a_head_costs_is_what_a_model_without_it_loses(
    experiment: Experiment, inspected: Path, tmp_path: Path
) -> None:
    rows = read_tsv(inspected.with_suffix(".tsv"))
    model = load_folder(experiment.baseline)
    assert [(row["attention"], int(row["layer"]) - 1, int(row["head"]) - 1) for row in rows] == [*model.shape.heads()]
    whole, changes = greedy(experiment.baseline, TEXT), set()
    for number in (0, 4, 7, 13, len(rows) - 1):
        row = rows[number]
        kind, layer, head = row["attention"], int(row["layer"]) - 1, int(row["head"]) - 1
        left = {one: [[True] * model.shape.original_heads for _ in range(2)] for one in ATTENTIONS}
        left[kind][layer][head] = False
        folder = tmp_path / "bpe" / "runs" / str(number)
        save_folder(prune(model, left), folder, {"updates": 5}, {})
        for path in experiment.bpe.iterdir():
            (tmp_path / "bpe" / path.name).write_bytes(path.read_bytes()) if path.is_file() else None
        without = greedy(folder, TEXT)
        change = sacrebleu.corpus_bleu(without, [whole]).score - sacrebleu.corpus_bleu(whole, [whole]).score
        assert float(row["score_change"]) == pytest.approx(change, abs=0.01)
        assert float(row["score_change_low"]) <= change + 0.01
        assert float(row["score_change_high"]) >= change - 0.01
        changes.add(round(change, 2))
    assert len(changes) > 1


def test_page_and_table_say_the_same_of_every_head(inspected: Path) -> None:
    rows, shown = read_tsv(inspected.with_suffix(".tsv")), content(inspected)["table"]
    assert [row["in_words"] for row in rows] == [row["in_words"] for row in shown]
    assert [float(row["confidence"]) for row in rows] == pytest.approx([row["values"]["confidence"] for row in shown])
    assert all(0 < float(row["confidence"]) <= 1 for row in rows)
    assert content(inspected)["metric"]["name"] == "BLEU (fidelity)"
    assert content(inspected)["score"] == 100
    assert content(inspected)["parts"] == ["heads", "attention"]


@pytest.mark.slow
def test_a_pruned_model_is_inspected_without_the_heads_that_it_lost(experiment: Experiment) -> None:
    found = inspect(experiment.pruned, TEXT, masked=2, causal=True, device="cpu")
    left = load_folder(experiment.pruned).shape.heads()
    rows = zip(found.heads["attention"], found.heads["layer"] - 1, found.heads["head"] - 1, strict=True)
    assert tuple(rows) == left and len(left) < 18
    assert found.heads["score_change"].notna().all() and found.heads["effect"].notna().all()
    (shown,) = data_of(found.html)
    lost = [row for row in shown["table"] if row["in_words"] == "The model no longer has this head."]
    assert len(lost) == 18 - len(left) and shown["models"][0]["live"].count("0") == len(lost)
    assert shown["models"][0]["name"] == "given", "it was pruned before"


def test_with_references_the_score_is_bleu_against_them(experiment: Experiment) -> None:
    references = [*greedy(experiment.baseline, TEXT)[:4], *TARGET[:2]]
    found = inspect(experiment.baseline, TEXT, references=references, masked=3, device="cpu")
    told = sacrebleu.corpus_bleu(greedy(experiment.baseline, TEXT), [references]).score
    assert 1 < told < 99
    (shown,) = data_of(found.html)
    assert shown["score"] == pytest.approx(told, abs=0.01)
    assert '"name":"BLEU"' in found.html
    assert len(found.heads) == 18
    assert "<table" in found._repr_html_()


@pytest.mark.slow
def test_relations_come_from_the_trees_that_are_given(experiment: Experiment, tmp_path: Path) -> None:
    tree = "\n".join(
        "\t".join([str(n), word, word, "X", "_", "_", str(head), relation, "_", "_"])
        for n, (word, head, relation) in enumerate(
            [("the", 2, "det"), ("cat", 3, "nsubj"), ("sees", 0, "root"), ("a", 6, "det"), ("small", 6, "amod"),
             ("dog", 3, "obj"), (".", 3, "punct")], 1
        )
    )  # fmt: skip
    (tmp_path / "trees.conllu").write_text(f"{tree}\n\n" * 60, "utf-8")
    with_trees = inspect(experiment.baseline, TEXT, trees=tmp_path / "trees.conllu", masked=2, device="cpu").heads
    without = inspect(experiment.baseline, TEXT, masked=2, device="cpu").heads
    encoder = with_trees["attention"] == "enc_self"
    assert with_trees[encoder]["syntactic_gain"].notna().all()
    assert "syntactic_gain" not in without or without["syntactic_gain"].isna().all()


@pytest.mark.slow
def test_the_page_shows_the_attention_of_chosen_sentences(inspected: Path, tmp_path: Path) -> None:
    model, text = (str(inspected.parent / name) for name in ("model", "text.en"))
    page = str(tmp_path / "h.html")
    assert main(["inspect", model, text, "-o", page, "--masked", "2", "--show", "5", "3"]) == 0
    for shown, text in zip(content(Path(page))["sentences"], (TEXT[4], TEXT[2]), strict=True):
        assert " ".join(shown["words"][: len(text.split())]) == text


def row(**changes: Any) -> dict[str, Any]:
    return {"roles": [], "values": {"confidence": 0.375}, "score_change": 0.0, "score_change_low": 0.0,
            "score_change_high": 0.0} | changes  # fmt: skip


def role(role: str, name: str, accuracy: float, *, holds: bool = False, label: str = "") -> dict[str, Any]:
    return {"role": role, "name": name, "accuracy": accuracy, "holds": holds, "label": label}


@pytest.mark.parametrize(
    ("roles", "told"),
    [
        ([role("positional", "-1", 0.894)], "Looks at the previous subword in 89 % of cases."),
        ([role("positional", "+1", 0.72), role("positional", "0", 0.1)], "Looks at the next subword in 72 % of cases."),
        ([role("rare", "rarest", 0.5)], "Looks at the rarest subword in 50 % of cases."),
        (
            [role("cross", "written last", 0.3, holds=True, label="the source of the token written last")],
            "Looks at the source of the subword written last in 30 % of cases.",
        ),
        (
            [role("positional", "-1", 0.9), role("syntactic", "obj", 0.6, holds=True, label="obj→verb")],
            "Follows obj→verb in 60 % of cases.",
        ),
        (
            [role("positional", "0", 0.49)],
            "Has no fixed place to look at (49 % at the subword itself, confidence 0.38).",
        ),
        (
            [
                role("positional", "-1", 0.92) | {"by_bias": 1.0, "by_content": 0.2, "bias_weight": 0.849},
                role("positional", "0", 0.1) | {"by_bias": 0.25, "by_content": 0.35, "bias_weight": 0.1},
            ],
            "Looks at the previous subword in 92 % of cases (by its bias alone 100 % at the previous subword, where it "
            "puts a weight of 0.85; by its content alone 35 % at the subword itself).",
        ),
        (
            [role("positional", "+1", 0.3) | {"by_bias": 0.9, "by_content": 0.1, "bias_weight": 0.2}],
            "Has no fixed place to look at (30 % at the next subword, by its bias alone 90 % at the next subword, "
            "where it puts a weight of 0.20; by its content alone 10 % at the next subword, confidence 0.38).",
        ),
        ([role("positional_words", "0", 0.9)], "Has no fixed place to look at (confidence 0.38)."),
    ],
)
def test_the_habit_of_a_head_in_words(roles: list[dict[str, Any]], told: str) -> None:
    assert in_words(row(roles=roles), "BLEU") == f"{told} Masked alone it costs nothing measurable."


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ((-1.24, -2.04, -0.31), "costs 1.2 BLEU (0.3 to 2.0)"),
        ((-1.24, -2.04, 0.31), "costs nothing measurable"),
        ((0.66, 0.11, 1.5), "gains 0.7 BLEU (0.1 to 1.5)"),
    ],
)
def test_what_masking_costs_in_words(change: tuple[float, ...], told: str) -> None:
    assert in_words(row(**dict(zip(SPOKEN, change, strict=True))), "BLEU").endswith(f". Masked alone it {told}.")


@pytest.mark.parametrize(
    ("text", "flags", "told"),
    [
        ([], (), "The text is empty: give a file with one sentence per line."),
        (TEXT, ("--references", "{references}"), "text.en has 6 lines and"),
        (
            TEXT,
            ("-o", "{folder}/heads.tsv"),
            "would be written twice, by --output, which writes two files",
        ),
        (TEXT, ("--show", "6", "7"), "There is no sentence 7 to show: give numbers from 1 to 6."),
    ],
)
def test_what_cannot_be_inspected_gets_a_sentence(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str], text: list[str],
    flags: tuple[str, ...], told: str,
) -> None:  # fmt: skip
    write_lines(tmp_path / "text.en", text)
    write_lines(tmp_path / "references", TARGET[:2])
    given = [one.format(folder=tmp_path, references=tmp_path / "references") for one in flags]
    flags = ("-o", str(tmp_path / "heads.html"), *given)
    assert main(["inspect", str(experiment.baseline), str(tmp_path / "text.en"), *flags]) == 1
    said = capsys.readouterr().err
    assert told in said
    assert "Traceback" not in said
    assert not [path for path in tmp_path.iterdir() if path.name.startswith("heads")]


def test_a_model_that_is_nowhere_gets_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_lines(tmp_path / "text.en", TEXT)
    assert main(["inspect", str(tmp_path / "none"), str(tmp_path / "text.en"), "-o", str(tmp_path / "h.html")]) == 1
    assert str(tmp_path / "none") in capsys.readouterr().err


@pytest.mark.slow
def test_lines_beyond_the_number_asked_for_are_not_read(experiment: Experiment, tmp_path: Path) -> None:
    write_lines(tmp_path / "text.en", TEXT)
    asked = [str(experiment.baseline), str(tmp_path / "text.en"), "-o", str(tmp_path / "h.html"), "--masked", "2"]
    assert main(["inspect", *asked, "--sentences", "4"]) == 0
    assert content(tmp_path / "h.html")["sentences_scored"] == 4
    assert len(read_lines(tmp_path / "text.en")) == 6


@pytest.mark.slow
def test_causal_gates_are_told_and_checked_by_masking(experiment: Experiment) -> None:
    found = inspect(experiment.baseline, TEXT, masked=2, causal=True, device="cpu")
    effects = list(found.heads["effect"])
    assert set(effects) <= {"facilitates", "interferes", "irrelevant"}
    words = {"facilitates": "helps.", "interferes": "is in the way.", "irrelevant": "neither helps nor is in the way."}
    told = [words[effect] for effect in effects]
    assert [text.partition(" By causal gates it ")[2] for text in found.heads["in_words"]] == told
    number = effects.count("irrelevant")
    assert number
    model = load_folder(experiment.baseline)
    whole = greedy(experiment.baseline, TEXT)
    masked = [head for head, effect in zip(model.shape.heads(), effects, strict=True) if effect == "irrelevant"]
    tokens = Vocabulary(experiment.bpe / "source.model").encode(TEXT)
    source = [np.append(np.array(ids, np.int32), EOS) for ids in tokens]
    ids, mask = pad(source)
    decoded = Vocabulary(experiment.bpe / "target.model").decode(
        beam_search(model, ids, mask, beam=1, length_penalty=0.0, gates=gates_without(model, masked))
    )
    change = sacrebleu.corpus_bleu(decoded, [whole]).score - sacrebleu.corpus_bleu(whole, [whole]).score
    assert found.notes[0] == f"{number} heads masked at once (irrelevant): {change:+.1f} BLEU"
    randoms = [note for note in found.notes if f"{number} heads masked at once (random" in note]
    assert len(randoms) == 3


def test_random_heads_beside_chosen_ones_are_as_many_of_each_kind_and_each_is_as_likely() -> None:
    sizes = {"enc_self": (2, 4), "dec_self": (2, 3), "dec_enc": (2, 2)}
    heads = [
        (kind, layer, head)
        for kind, (layers, width) in sizes.items()
        for layer in range(layers)
        for head in range(width)
    ]
    chosen = [("enc_self", 0, 1), ("enc_self", 1, 0), ("dec_enc", 1, 1)]
    times = Counter[tuple[str, int, int]]()
    for seed in range(400):
        drawn = like_drawn(chosen, heads, seed)
        assert Counter(kind for kind, *_ in drawn) == {"enc_self": 2, "dec_enc": 1}
        assert len(set(drawn)) == 3
        times.update(drawn)
    # Of 400 draws, 2 of 8 encoder heads and 1 of 4 cross-attention heads: 100 each, with a deviation of 9.
    assert times.keys() == {head for head in heads if head[0] != "dec_self"}
    assert all(60 < number < 140 for number in times.values())
