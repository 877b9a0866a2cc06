"""The commands of an experiment with a Marian baseline: import, further training with gates, pruning, measures."""

import gzip
import re
import runpy
from pathlib import Path

import pytest
import torch

from checkouts import ROOT, documents
from heads.__main__ import main
from heads.base.files import read_json, read_jsonl, read_tsv, read_yaml, write_lines
from heads.model.checkpoint import load_tensors
from heads.model.folder import load_folder
from heads.text.vocabulary import Vocabulary
from imported_runs import cut_out, encode, run, train, train_gates
from marian_models import SENTENCES, save_marian, save_tokeniser, transformers


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Marian model, text, and the output of imported_bpe, encode and imported."""
    place = tmp_path_factory.mktemp("taken")
    save_tokeniser(place / "theirs")
    save_marian(place / "theirs")
    encode(place, SENTENCES)
    train(place, "imported", "baseline")
    return place


README_RUNS = re.findall(r"^(heads|python benchmarks/exported.py) (.*opus.*)$", documents(), re.MULTILINE)


@pytest.mark.slow
def test_what_the_readme_does_with_a_model_of_others_can_be_done(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: pip install -r envs/dev.txt")
    runs = {"baseline/seed-1": folder / "baseline", "pruned/all/keep-72/seed-1": cut_out(folder, "keep-9")}
    monkeypatch.chdir(tmp_path)
    for run_folder, made in runs.items():
        place = Path("results/pretrained", run_folder)
        place.parent.mkdir(parents=True)
        place.symlink_to(made)
    Path("Helsinki-NLP").mkdir()
    Path("Helsinki-NLP/opus-mt-en-de").symlink_to(folder / "theirs")
    write_lines(Path("source.txt"), SENTENCES["source"])
    for side, language in (("source", "en"), ("target", "de")):
        Path("data/mine").mkdir(parents=True, exist_ok=True)
        with gzip.open(f"data/mine/test.{language}.gz", "wt", encoding="utf-8") as text:
            text.writelines(f"{line}\n" for line in SENTENCES[side])
    assert [tool for tool, _ in README_RUNS].count("heads") == 5
    said = {}
    for tool, line in README_RUNS:
        words, _, text = line.partition(" < ")
        with Path(text or "source.txt").open(encoding="utf-8") as stream:
            if tool == "heads":
                monkeypatch.setattr("sys.stdin", stream)
                assert main(words.split()) == 0
            else:
                monkeypatch.setattr("sys.argv", [tool, *words.split()])
                runpy.run_path(str(ROOT / tool.split()[1]), run_name="__main__")
        said[words.split()[0]] = capsys.readouterr().out.splitlines()
    assert len(said["translate"]) == len(SENTENCES["source"])
    rows = [row.split("\t") for row in said["data/mine/test.en.gz"]]
    assert [row[:2] for row in rows] == [["folder", "heads"], ["opus-ct2", "24"], ["opus-72-ct2", "9"]]
    assert [row[2].split("_")[0] for row in rows[1:]] == ["float32", "int8"]
    heads = transformers.MarianMTModel.from_pretrained("opus-72-hf").config.encoder_attention_heads
    assert heads == 3


def test_the_imported_baseline_is_the_model_after_no_update_with_its_scores_on_dev(folder: Path) -> None:
    facts, (line,) = read_json(folder / "baseline/model.json"), read_jsonl(folder / "baseline/train.jsonl")
    assert facts["updates"] == facts["total_updates"] == line["update"] == 0 and facts["pretrained"] is True
    assert facts["dev_loss"] == line["dev_loss"]
    model = load_folder(folder / "baseline")
    source, target = (Vocabulary(folder / f"bpe/{side}.model") for side in SENTENCES)
    total, tokens = 0.0, 0
    for one, other in zip(source.encode(SENTENCES["source"]), target.encode(SENTENCES["target"]), strict=True):
        ids = torch.tensor([[*one, 2]])
        states = model(ids, torch.ones_like(ids, dtype=torch.bool), torch.tensor([[1, *other]]))
        log_probs = model.projection(states)[0].log_softmax(-1)
        total -= float(log_probs[torch.arange(len(other) + 1), torch.tensor([*other, 2])].sum())
        tokens += len(other) + 1
    assert facts["dev_loss"] == pytest.approx(total / tokens, rel=1e-5)
    assert [*(folder / "baseline/checkpoints").iterdir()] == []
    assert (folder / "bpe/pretrained/vocab.json").read_bytes() == (folder / "theirs/vocab.json").read_bytes()


def changed(folder: Path, made: Path) -> set[str]:
    """Names of weights that a training moved."""
    before, after = (load_tensors(place / "model.safetensors")[0] for place in (folder / "baseline", made))
    assert before.keys() == after.keys()
    return {name for name in before if not torch.equal(before[name], after[name])}


def test_gates_on_all_train_the_one_matrix_that_is_embedding_and_projection(folder: Path) -> None:
    made = train_gates(folder, "all", "keep-9")
    moved = changed(folder, made)
    assert {"source_embedding.subwords.weight", "projection.bias", "decoder.0.self_attention.query.bias"} <= moved
    assert not [name for name in moved if name in ("projection.weight", "target_embedding.subwords.weight")]
    assert read_json(made / "model.json")["total_updates"] == 6 and "pretrained" not in read_json(made / "model.json")
    assert sum(int(row["open"]) for row in read_tsv(made / "heads.tsv")) == 9


@pytest.mark.slow
def test_gates_on_the_encoder_leave_all_that_the_decoder_uses_as_it_was(folder: Path) -> None:
    moved = changed(folder, train_gates(folder, "enc_self", "keep-3"))
    assert moved and all(name.startswith("encoder.") for name in moved)


@pytest.mark.slow
def test_what_is_left_of_it_is_pruned_and_explained_by_every_rule(folder: Path) -> None:
    small = cut_out(folder, "keep-9")
    assert len(load_folder(small).shape.heads()) == 9
    for model in (folder / "baseline", small):
        sides = [f"--{side}={folder / f'bpe/dev.{side}.safetensors'}" for side in SENTENCES]
        out = ["--out", str(model / "lrp.tsv"), "--conservation", str(model / "lrp_conservation.tsv")]
        run(folder, "lrp", "--model", str(model), *sides, *out, "--device", "cpu")
        rows = read_tsv(model / "lrp_conservation.tsv")
        kept = [row for row in rows if row["conservation"] == "shares"]
        assert kept and all(float(row["steps_off"]) <= 0.1 * float(row["steps"]) for row in kept)
        assert len({row["rule"] for row in rows}) == len(read_yaml(ROOT / "config.yaml")["defaults"]["lrp"]["rules"])
