"""Scores and translations of models with known answers: by the beam size set, and in the right order."""

import io
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import sacrebleu
import torch

from heads.__main__ import main
from heads.base.files import read_json, read_lines, read_tsv, write_json
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from known_experiment import (
    EVERY_KIND,
    FOUND,
    SUBWORDS,
    WAYS,
    Known,
    command,
    known_model,
    path_model,
    save,
    settings,
    weights,
)

SCORED = {"signature": "nrefs:1|tok:13a", "split": "test", "sentences": 14}
pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")


def scored(
    known: Known, model: Path, out: Path, text: Path | None = None, against: str = "", **translate: Any
) -> tuple[list[str], dict[str, Any]]:
    """The translations that the command writes, and the score with its facts."""
    command("score", settings=settings(out / "settings.yaml", translate=translate), model=model,
            source=known.tokens("test", "source"), references=known.text("test", "target"),
            target_bpe=known.bpe / "target.model", translations=out / "t.txt", bleu=out / "b.json",
            device="cpu", **({"text": text} if text else {}), **({"against": against} if against else {}))  # fmt: skip
    return read_lines(out / "t.txt"), read_json(out / "b.json")


def bleu(lines: list[str], references: list[str]) -> float:
    return sacrebleu.corpus_bleu(lines, [references]).score


def translated(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], lines: list[str], *flags: object
) -> list[str]:
    """The output of `heads translate` for some lines."""
    given = "".join(f"{line}\n" for line in lines).encode()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
    capfdbinary.readouterr()
    assert main(["translate", *map(str, flags), "--device", "cpu"]) == 0
    return capfdbinary.readouterr().out.decode().splitlines()


@pytest.mark.parametrize("batch_tokens", [1, 20, 4000])
def test_every_translation_stands_in_the_place_of_its_sentence_however_sentences_share_batches(
    known: Known, tmp_path: Path, batch_tokens: int
) -> None:
    lengths = [len(ids) for ids in known.ids("test", "source")]
    assert lengths != sorted(lengths)
    lines, facts = scored(known, known.baseline, tmp_path, batch_tokens=batch_tokens)
    assert lines == known.right("test")
    references = read_lines(known.text("test", "target"))
    assert sum(a == b for a, b in zip(lines, references, strict=True)) == 9
    assert facts["bleu"] == pytest.approx(bleu(lines, references), abs=1e-9)
    assert 60 < facts["bleu"] < 90
    expected = {"split": "test", "sentences": 14, "beam": 4, "length_penalty": 0.6}
    assert {name: facts[name] for name in expected} == expected


@pytest.mark.parametrize("sentences", [0, 1, 5])
def test_so_many_sentences_as_asked_for_are_scored_the_first_ones_against_their_own_references(
    known: Known, tmp_path: Path, sentences: int
) -> None:
    """By BLEU and chrF, each with a signature of its own."""
    lines, facts = scored(known, known.baseline, tmp_path, sentences=sentences)
    count = sentences or 14
    assert facts["sentences"] == count and lines == known.right("test")[:count]
    references = read_lines(known.text("test", "target"))[:count]
    for metric, name, signature in (
        (sacrebleu.BLEU(), "bleu", "signature"), (sacrebleu.CHRF(), "chrf", "chrf_signature")
    ):  # fmt: skip
        assert facts[name] == pytest.approx(metric.corpus_score(lines, [references]).score, abs=1e-9)
        assert facts[signature] == str(metric.get_signature())


@pytest.mark.parametrize("given", ["", "unpruned model"])
def test_a_score_says_what_it_is_against_references_unless_told_otherwise(
    known: Known, tmp_path: Path, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    facts = scored(known, known.baseline, tmp_path, against=given, sentences=1)[1]
    assert facts["against"] == (given or "references")
    assert f"against the {given or 'references'}\n" in capsys.readouterr().err


@pytest.mark.parametrize("sentences", [0, 5])
def test_the_source_text_is_scored_as_the_translation_of_the_same_sentences_where_it_is_given(
    known: Known, tmp_path: Path, sentences: int
) -> None:
    given = tmp_path / "source.txt"
    right, references = known.right("test"), read_lines(known.text("test", "target"))
    lines = [*right[1:], right[0]]
    given.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    _, facts = scored(known, known.baseline, tmp_path, text=given, sentences=sentences)
    asked = sentences or 14
    assert facts["copied_bleu"] == pytest.approx(bleu(lines[:asked], references[:asked]), abs=1e-9)
    assert 0 < facts["copied_bleu"] < facts["bleu"]
    assert "copied_bleu" not in scored(known, known.baseline, tmp_path)[1]


@pytest.mark.parametrize("search", FOUND)
def test_a_score_is_by_the_beam_and_the_length_penalty_of_its_settings(
    known: Known, tmp_path: Path, search: tuple[int, float]
) -> None:
    """Each search takes its own of three paths."""
    run = save(path_model(WAYS), tmp_path / "run")
    lines, facts = scored(known, run, tmp_path, beam=search[0], length_penalty=search[1])
    assert lines == [FOUND[search]] * 14
    assert (facts["beam"], facts["length_penalty"]) == search
    assert facts["bleu"] == pytest.approx(bleu(lines, read_lines(known.text("test", "target"))), abs=1e-9)


@pytest.mark.parametrize("scored_with", FOUND)
@pytest.mark.parametrize("asked", [(None, None), (4, None), (None, 0.0), (1, 0.6)])
def test_a_person_gets_the_search_that_the_model_was_scored_with_but_for_what_flags_change(
    known: Known,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
    scored_with: tuple[int, float],
    asked: tuple[int | None, float | None],
) -> None:
    run = save(path_model(WAYS), known.folder / "baseline/seed-2")
    search = dict(zip(("beam", "length_penalty"), scored_with, strict=True))
    write_json(run / "bleu.json", {"bleu": 12.5, **SCORED, **search})
    names = ("beam", "length-penalty")
    flags = [f"--{name}={value}" for name, value in zip(names, asked, strict=True) if value is not None]
    beam, penalty = (value if value is not None else scored_with[i] for i, value in enumerate(asked))
    # Beam size 1 is greedy, and beam size 2 has lost the long path, whatever the length penalty.
    right = FOUND.get((int(beam), penalty), FOUND[int(beam), 0.6])
    assert translated(monkeypatch, capfdbinary, ["a b c", "h"], run, *flags) == [right] * 2


@pytest.mark.parametrize("typing", [True, False])
def test_a_person_who_types_is_answered_line_by_line_and_a_file_in_blocks(
    known: Known, monkeypatch: pytest.MonkeyPatch, *, typing: bool
) -> None:
    out, answered = io.BytesIO(), list[list[str]]()
    lines = read_lines(known.text("test", "source"))[:4]

    def given() -> Iterator[bytes]:
        for line in lines:
            answered.append(out.getvalue().decode().splitlines())
            yield f"{line}\n".encode()

    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=given(), isatty=lambda: typing))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=out, flush=lambda: None))
    flags = [str(known.baseline), "--beam=2", "--length-penalty=0", "--device=cpu"]
    assert main(["translate", *flags]) == 0
    right = known.right("test")[:4]
    assert out.getvalue().decode().splitlines() == right
    assert answered == [right[:number] if typing else [] for number in range(4)]


def run_without_heads(known: Known, model: Transformer, out: Path) -> Path:
    """A model pruned by gates that all close, made by the commands of the workflow."""
    start, gated = save(model, out / "start"), out / "gates/all/lam-1/seed-1"
    closing = settings(out / "gates.yaml", gates={"hard_concrete": {
        "temperature": 0.33, "low": -0.1, "high": 1.1, "log_alpha_init": -5.0}})  # fmt: skip
    command("gates", settings=closing, data=known.bpe, references=known.text("dev", "target"), seed=1, scope="all",
            target="lam-1", start_model=start, device="cpu", model=gated, history=gated / "train.jsonl",
            heads=gated / "heads.tsv", gates_log=gated / "gates.jsonl")  # fmt: skip
    pruned = out / "pruned/all/lam-1/seed-1"
    command("pruned", start_model=gated, gates=gated / "heads.tsv", model=pruned, heads=pruned / "heads.tsv")
    return pruned


def test_a_model_without_any_head_goes_its_known_way_in_every_command(
    known: Known, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """No head had any effect in the original model, so the pruned one translates the same way."""
    whole = path_model(WAYS)
    run = run_without_heads(known, whole, tmp_path / "known")
    assert [row["open"] for row in read_tsv(run / "heads.tsv")] == ["0"] * 18
    assert read_json(run / "model.json")["shape"]["live_heads"] == {kind: [[], []] for kind in EVERY_KIND}
    count = {"full": sum(value.numel() for value in whole.parameters())}
    count["left"] = sum(value.numel() for value in weights(run).values())
    assert count["full"] - count["left"] == 18 * 4 * 64 * 8
    lines, facts = scored(known, run, tmp_path)
    assert lines == ["k o p q"] * 14
    write_json(run / "bleu.json", facts)
    for side in SUBWORDS:
        vocabulary = tmp_path / "known/bpe" / f"{side}.model"
        vocabulary.parent.mkdir(exist_ok=True)
        for path in (vocabulary, vocabulary.with_suffix(".json")):
            path.write_bytes((known.bpe / path.name).read_bytes())
    assert main(["export", str(run), "-o", str(tmp_path / "out")]) == 0
    for folder in (run, tmp_path / "out"):
        assert translated(monkeypatch, capfdbinary, ["a", "b c"], folder) == ["k o p q"] * 2
    page = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    for kind in ("encoder self-attention", "decoder self-attention", "cross-attention"):
        assert f"| {kind} | 0 | 0 | 0 of 6 |" in page
    assert f" {count['left']:,} parameters" in page
    score = f"BLEU {facts['bleu']:.2f} on 14 sentences of the test set, with a beam of 4 and length penalty 0.6."
    assert score in page


def test_a_model_that_lost_all_its_heads_translates_as_if_they_were_masked(known: Known, tmp_path: Path) -> None:
    """Heads whose output projections are zero are as good as removed: only the bias is left."""
    silent, run = known_model(), save(prune(known_model(), EVERY_KIND), tmp_path / "run")
    with torch.no_grad():
        for name, value in silent.named_parameters():
            if name.endswith("attention.output.weight"):
                value.zero_()
    lines, facts = scored(known, run, tmp_path)
    assert lines == scored(known, save(silent, tmp_path / "silent"), tmp_path)[0]
    assert not set(lines) & set(known.right("test"))
    assert facts["bleu"] == pytest.approx(bleu(lines, read_lines(known.text("test", "target"))), abs=1e-9)
