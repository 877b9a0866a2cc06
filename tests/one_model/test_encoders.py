"""Encoders inspected and pruned: every number against transformers' own model with matrices set to zero."""

import itertools
import re
import sys
from copy import deepcopy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from playwright.sync_api import sync_playwright

from bert_models import LABELS, encoded, save_bert, save_tokeniser, transformers
from explored_page import CHROMIUM, data_of, needs_browser
from heads.__main__ import main
from heads.analysis import masking
from heads.base.files import read_json, read_tsv, write_lines
from heads.interop.opening import open_model
from heads.one_model.answered_text import AnsweredSplits, splits_of
from heads.one_model.measuring import Measuring
from heads.one_model.prune_report import pruned_content
from heads.one_model.request import PruningRequest
from heads.one_model.shrinking import Shrinking
from heads.one_model.text import Text
from heads.one_model.working_folder import WorkingFolder
from heads.translation.distilled import distinct

EMBEDS, TELLS = "BertModel", "BertForSequenceClassification"
pytestmark = pytest.mark.usefixtures("briefly_timed")
LINES = [
    " ".join(words)
    for words in itertools.product(
        ("the", "a", "white"), ("cat", "dog", "house"), ("saw", "sleep", "unable"), ("the house .", "a dog .", "caf .")
    )
]
"""81 sentences of the words that the tiny tokeniser knows."""
HEADS = [(layer, head) for layer in range(3) for head in range(2)]


def made(folder: Path, kind: str) -> tuple[Any, Any]:
    return save_tokeniser(folder), save_bert(folder, kind)


def read(folder: Path, kind: str, masked: tuple[int, int] | None = None) -> Any:
    """The model of a folder; the output weights of a masked head are zero."""
    model = getattr(transformers, kind).from_pretrained(folder).eval()
    if masked:
        dense = getattr(model, "bert", model).encoder.layer[masked[0]].attention.output.dense
        with torch.no_grad():
            dense.weight[:, 6 * masked[1] : 6 * masked[1] + 6] = 0
    return model


def subwords_of(folder: Path) -> Any:
    """The folder's own tokeniser: exported ones number their subwords differently."""
    return transformers.AutoTokenizer.from_pretrained(folder)


@torch.no_grad()
def vectors(model: Any, tokeniser: Any, lines: list[str]) -> NDArray[np.float64]:
    means = [model(**encoded(tokeniser, (line,))).last_hidden_state[0].double().mean(0).numpy() for line in lines]
    return np.array([mean / np.sqrt((mean**2).sum()) for mean in means])


@torch.no_grad()
def told(model: Any, tokeniser: Any, lines: list[str]) -> NDArray[np.str_]:
    return np.array([LABELS[int(model(**encoded(tokeniser, (line,))).logits.argmax())].lower() for line in lines])


def run(what: str, folder: Path, *flags: str) -> int:
    return main([what, str(folder), str(folder.parent / "text.txt"), *flags, "--device", "cpu"])


def shown(page: Path) -> dict[str, Any]:
    (one,) = data_of(page)
    return one


@pytest.fixture
def place(tmp_path: Path) -> Path:
    write_lines(tmp_path / "text.txt", LINES)
    return tmp_path


def test_what_a_head_costs_a_sentence_is_how_far_its_vector_turns_without_it(place: Path) -> None:
    page = place / "heads.html"
    tokeniser, model = made(place / "theirs", EMBEDS)
    assert run("inspect", place / "theirs", "-o", str(page), "--masked", "20") == 0
    rows, lines = read_tsv(page.with_suffix(".tsv")), LINES[:20]
    assert [(int(row["layer"]) - 1, int(row["head"]) - 1) for row in rows] == HEADS
    whole = vectors(model, tokeniser, lines)
    for row, head in zip(rows, HEADS, strict=True):
        smaller = vectors(read(place / "theirs", EMBEDS, head), tokeniser, lines)
        change = 100 * float((whole * smaller).sum(1).mean()) - 100
        assert float(row["score_change"]) == pytest.approx(change, abs=0.006)
        assert float(row["score_change_low"]) <= change + 0.006
        assert float(row["score_change_high"]) >= change - 0.006
    assert min(float(row["score_change"]) for row in rows) < -0.05
    assert (shown(page)["metric"]["name"], shown(page)["score"]) == ("cosine", 100)
    assert "importance_example" not in rows[0] and "confidence" in rows[0]
    assert any("points of cosine (" in row["in_words"] for row in rows)


@pytest.mark.slow
@needs_browser
def test_its_page_opens_without_a_network_and_speaks_of_no_labels(place: Path) -> None:
    page, wrong = place / "heads.html", []
    made(place / "theirs", EMBEDS)
    assert run("inspect", place / "theirs", "-o", str(page), "--masked", "5", "--sentences", "20") == 0
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        opened = browser.new_context(offline=True).new_page()
        opened.on("pageerror", lambda error: wrong.append(str(error)))
        opened.goto(page.as_uri())
        said, whole = opened.locator("#footer").inner_text(), opened.locator("body").inner_text()
        browser.close()
    assert (said.partition(",")[0], wrong) == ("Cosine on 20 test sentences", [])
    assert "Its label is" not in whole and "points of cosine" in whole


def test_an_encoder_keeps_the_heads_asked_for_and_what_is_told_is_the_cosine(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = place / "small"
    tokeniser, model = made(place / "theirs", EMBEDS)
    flags = ("-o", str(small), "--keep", "3", "--by", "gates", "--updates", "6", "--format", "huggingface")
    assert run("prune", place / "theirs", *flags) == 0
    said = capsys.readouterr().err
    assert len([row for row in read_tsv(small / "heads.tsv") if row["open"] == "1"]) == 3
    held_out = splits_of(*distinct(LINES))["test"]
    near = (vectors(model, tokeniser, held_out) * vectors(read(small, EMBEDS), subwords_of(small), held_out)).sum(1)
    sentence = r"3 of 6 heads are left. On (\d+) held-out .* it has ([\d.]+), and 100\.0 for the whole model: (-[\d.]+)"
    found = re.search(sentence, said)
    assert found and int(found[1]) == len(held_out)
    assert float(found[2]) == pytest.approx(100 * near.mean(), abs=0.06)
    assert float(found[3]) == pytest.approx(100 * near.mean() - 100, abs=0.006)
    points = [(one["kept"], one["series"]) for one in shown(place / "small.html")["points"]]
    assert points == [(6, "unpruned"), (3, "pruned")]
    assert not (place / ".small.unfinished").exists()


def test_what_each_size_of_an_encoder_loses_is_told_by_the_vectors_of_the_whole_one(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small = place / "small"
    tokeniser, model = made(place / "theirs", EMBEDS)
    flags = ("-o", str(small), "--keep", "3", "--minutes", "0", "--format", "huggingface")
    assert run("prune", place / "theirs", *flags) == 0
    # Half of the heads is one of the sizes that are shown.
    found = re.search(r"^3 heads: .*, (\S+) points of cosine$", capsys.readouterr().err, re.MULTILINE)
    dev = splits_of(*distinct(LINES))["dev"]
    near = (vectors(model, tokeniser, dev) * vectors(read(small, EMBEDS), subwords_of(small), dev)).sum(1)
    assert near.mean() < 0.998
    assert found and float(found[1]) == pytest.approx(100 * near.mean() - 100, abs=0.051)


def test_an_encoder_embeds_each_held_out_text_once(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made(place / "theirs", EMBEDS)
    bundle, read = open_model(str(place / "theirs")), list[Any]()
    texts = AnsweredSplits(bundle, splits_of(*distinct(LINES)), place / "texts", torch.device("cpu"), print)
    request = PruningRequest("all", 3, None, 1, "surgeon")
    pruning = Shrinking(bundle, texts, request, WorkingFolder(place / "work", {}), 1)

    def noted(model: Any, *rest: Any, states: Any = masking.pooled_states) -> Any:
        read.append(model)
        return states(model, *rest)

    monkeypatch.setattr(masking, "pooled_states", noted)
    others = [deepcopy(bundle.model) for _ in range(2)]
    found = [pruning.loss(replace(bundle, model=model), "test") for model in others]
    assert [id(model) for model in read] == [id(model) for model in (bundle.model, *others)]
    assert [(lost.control, lost.change) for lost in found] == [(pytest.approx(100), 0)] * 2


def test_the_page_of_several_sizes_embeds_a_text_by_the_whole_encoder_once(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(place / "theirs", EMBEDS)
    measuring, read = Measuring(open_model(str(place / "theirs")), Text(LINES), torch.device("cpu"), print), list[Any]()
    measuring.references = [""] * len(LINES)

    def noted(model: Any, *rest: Any, states: Any = masking.pooled_states) -> Any:
        read.append(model)
        return states(model, *rest)

    monkeypatch.setattr(masking, "pooled_states", noted)
    others = [deepcopy(measuring.model) for _ in range(2)]
    found = [pruned_content(measuring, model)["cosine.json"]["cosine"] for model in others]
    assert found == [pytest.approx(100)] * 2
    assert sorted(map(id, read)) == sorted(map(id, (measuring.model, *others)))


def test_what_a_head_costs_a_classifier_is_counted_by_labels(place: Path) -> None:
    page, lines = place / "heads.html", LINES[:30]
    tokeniser, model = made(place / "theirs", TELLS)
    before = told(model, tokeniser, lines)
    wanted = np.concatenate([before[:20], before[:19:-1]])
    # Those of lines that are not read count for nothing, but there must be one for each.
    write_lines(place / "labels.txt", [*wanted.tolist(), *[wanted[0]] * (len(LINES) - 30)])
    flags = ("-o", str(page), "--masked", "0", "--sentences", "30", "--references", str(place / "labels.txt"))
    assert run("inspect", place / "theirs", *flags) == 0
    rows, whole = read_tsv(page.with_suffix(".tsv")), np.mean(before == wanted)
    assert shown(page)["score"] == pytest.approx(100 * whole, abs=0.01)
    for row, head in zip(rows, HEADS, strict=True):
        now = np.mean(told(read(place / "theirs", TELLS, head), tokeniser, lines) == wanted)
        assert float(row["score_change"]) == pytest.approx(100 * (now - whole), abs=0.01)
    assert {"importance_example", "confidence"} <= rows[0].keys()


def test_a_classifier_is_held_against_what_it_told_itself(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = place / "small"
    tokeniser, model = made(place / "theirs", TELLS)
    flags = ("-o", str(small), "--keep", "2", "--by", "gates", "--updates", "6", "--format", "huggingface")
    assert run("prune", place / "theirs", *flags) == 0
    held_out = splits_of(*distinct(LINES))["test"]
    same = np.mean(told(model, tokeniser, held_out) == told(read(small, TELLS), subwords_of(small), held_out))
    said = capsys.readouterr().err
    found = re.search(r"by accuracy against the original model's labels, it has ([\d.]+), and ([\d.]+) with", said)
    assert found and float(found[1]) == pytest.approx(100 * same, abs=0.06)


def test_causal_gates_are_refused_in_one_sentence(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(place / "theirs", EMBEDS)
    assert run("inspect", place / "theirs", "-o", str(place / "heads.html"), "--causal") == 1
    assert "--causal needs a model that writes text: remove it." in capsys.readouterr().err
    assert not (place / "heads.html").exists()


@pytest.mark.parametrize(
    ("form", "told"),
    [
        ("ctranslate2", "--format ctranslate2 is for translation models: use folder or huggingface or onnx."),
        ("marian", "--format marian is for translation models"),
        ("onnx", 'onnxruntime is not installed: pip install "heads[onnx]"'),
    ],
)
def test_a_format_that_cannot_have_an_encoder_is_refused_before_anything_is_done(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, form: str, told: str
) -> None:
    made(place / "theirs", EMBEDS)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    assert run("prune", place / "theirs", "-o", str(place / "small"), "--keep", "3", "--format", form) == 1
    assert told in capsys.readouterr().err
    assert {path.name for path in place.iterdir()} == {"theirs", "text.txt"}


@pytest.mark.slow
def test_labels_are_named_where_the_model_does_not_name_them(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_tokeniser(place / "theirs")
    model = save_bert(place / "theirs", TELLS, id2label={0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"})
    names = ["Bad", "not bad", "5 stars"]
    flags = ("-o", str(place / "heads.html"), "--masked", "3", "--sentences", "9")
    assert run("inspect", place / "theirs", *flags) == 1
    assert "does not say what its labels mean: name them with --labels" in capsys.readouterr().err
    tokeniser = subwords_of(place / "theirs")
    with torch.no_grad():
        answers = [names[int(model(**encoded(tokeniser, (line,))).logits.argmax())] for line in LINES]
    write_lines(place / "labels.txt", [f" {answer.upper()}" for answer in answers])
    told = ("--labels", *names)
    assert run("inspect", place / "theirs", *flags, "--references", str(place / "labels.txt"), *told) == 0
    assert shown(place / "heads.html")["score"] == 100
    small = ("-o", str(place / "small"), "--keep", "3", "--by", "gates", "--updates", "6", "--format", "huggingface")
    assert run("prune", place / "theirs", *small, *told) == 0
    assert read_json(place / "small/config.json")["id2label"] == {"0": "Bad", "1": "not bad", "2": "5 stars"}
    assert main(["export", str(place / "theirs"), "-o", str(place / "out"), "--format", "huggingface", *told]) == 0
    assert read_json(place / "out/config.json")["id2label"]["1"] == "not bad"


def test_a_label_that_the_model_does_not_have_is_named_with_its_file_and_line(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(place / "theirs", TELLS)
    path = place / "labels.txt"
    write_lines(path, ["Entailment ", "NEUTRAL", "entails", *["neutral"] * (len(LINES) - 3)])
    flags = ("-o", str(place / "heads.html"), "--references", str(path))
    assert run("inspect", place / "theirs", *flags) == 1
    told = f"{path}, line 3: 'entails' is not one of the labels, which are neutral, entailment, contradiction: correct"
    assert told in capsys.readouterr().err


def test_a_sentence_encoder_takes_no_references_and_a_folder_of_ours_no_labels(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made(place / "theirs", EMBEDS)
    flags = ("-o", str(place / "heads.html"), "--references", str(place / "text.txt"))
    assert run("inspect", place / "theirs", *flags) == 1
    assert "A sentence encoder is measured by its own vectors: remove --references." in capsys.readouterr().err
    assert main(["import", str(place / "theirs"), "-o", str(place / "ours")]) == 0
    assert run("inspect", place / "ours", "-o", str(place / "heads.html"), "--labels", "a", "b") == 1
    assert "has its prefix, labels and languages already: leave these flags out." in capsys.readouterr().err
