"""An exported folder translates on its own, describes itself, holds no pickle, and is complete or absent."""

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

import heads.interop.export
from heads.__main__ import main
from heads.base.files import UserError, read_json, write_json, write_text
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.model.folder import load_folder
from heads.translation.stream import Translator
from model_folders import SOURCE, Experiment, write_experiment

FILES = {
    "model.safetensors",
    "model.json",
    "source.model",
    "source.json",
    "target.model",
    "target.json",
    "bleu.json",
    "README.md",
}


@pytest.fixture
def experiment(tmp_path: Path) -> Experiment:
    return write_experiment(tmp_path / "results" / "tiny")


def translations(folder: Path) -> list[str]:
    """A model's translations of three sentences, one at a time and by the search it was scored with."""
    bundle = saved_bundle(folder)
    model, vocabularies = bundle.translates()
    beam, length_penalty = bundle.search
    translator = Translator(model, *vocabularies, torch.device("cpu"), beam, length_penalty, 1, max_subwords=90)
    return translator.translate([[ids] for ids in translator.source.encode(SOURCE)])


def test_an_export_translates_the_same_when_everything_else_is_gone(experiment: Experiment, tmp_path: Path) -> None:
    expected = translations(experiment.pruned)
    out = tmp_path / "new" / "mine"
    assert main(["export", str(experiment.pruned), "-o", str(out)]) == 0
    shutil.rmtree(tmp_path / "results")
    moved = (tmp_path / "new").rename(tmp_path / "elsewhere") / "mine"
    assert {path.name for path in moved.iterdir()} == FILES
    assert translations(moved) == expected
    assert len(set(expected)) > 1


def test_nothing_of_an_export_is_unpickled(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export(saved_bundle(experiment.pruned), tmp_path / "out")

    def refuse(*arguments: Any, **keywords: Any) -> None:
        raise AssertionError("something was unpickled")

    for module, name in ((pickle, "load"), (pickle, "loads"), (pickle, "Unpickler"), (torch, "load")):
        monkeypatch.setattr(module, name, refuse)
    assert len(translations(tmp_path / "out")) == 3


def test_the_page_counts_the_heads_left_and_names_score_origin_and_command(
    experiment: Experiment, tmp_path: Path
) -> None:
    export(saved_bundle(experiment.pruned), tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    for line in (
        "# tiny/pruned/all/lam-0.2/seed-1",
        "| encoder self-attention | 2 | 0 | 2 of 6 |",
        "| decoder self-attention | 3 | 1 | 4 of 6 |",
        "| cross-attention | 2 | 3 | 5 of 6 |",
    ):
        assert f"\n{line}\n" in f"\n{page}"
    origin = read_json(experiment.pruned / "model.json")["provenance"]
    for text in ("\nBLEU 12.35 on 7 sentences", "nrefs:1|tok:13a", origin["commit"], "heads translate FOLDER <"):
        assert text in page


def test_the_page_calls_a_score_fidelity_where_a_model_wrote_the_targets(
    experiment: Experiment, tmp_path: Path
) -> None:
    score = experiment.pruned / "bleu.json"
    write_json(score, {**read_json(score), "against": "unpruned model"})
    export(saved_bundle(experiment.pruned), tmp_path / "out")
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "\nBLEU (fidelity) 12.35 on 7" in page and "were written by the unpruned model, not" in page


def test_the_facts_about_a_model_travel_with_it(experiment: Experiment, tmp_path: Path) -> None:
    export(saved_bundle(experiment.pruned), tmp_path / "out")
    before, after = (read_json(folder / "model.json") for folder in (experiment.pruned, tmp_path / "out"))
    assert after == {**before, "experiment": "tiny", "run": "pruned/all/lam-0.2/seed-1"}


def test_a_model_with_gates_is_exported_without_its_closed_heads_and_as_not_scored(
    experiment: Experiment, tmp_path: Path
) -> None:
    export(saved_bundle(experiment.gates), tmp_path / "out")
    expected = read_json(experiment.pruned / "model.json")["shape"]
    assert read_json(tmp_path / "out" / "model.json")["shape"] == expected
    assert {path.name for path in (tmp_path / "out").iterdir()} == FILES - {"bleu.json"}
    page = (tmp_path / "out" / "README.md").read_text(encoding="utf-8")
    assert "It was not scored." in page
    assert "--beam" in page


def test_an_export_that_fails_leaves_nothing_behind(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*arguments: Any) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(heads.interop.export, "write_text", fail)
    with pytest.raises(OSError, match="disk full"):
        export(saved_bundle(experiment.pruned), tmp_path / "there" / "out")
    assert list((tmp_path / "there").iterdir()) == []


def test_only_a_run_of_an_experiment_can_be_exported(experiment: Experiment, tmp_path: Path) -> None:
    export(saved_bundle(experiment.pruned), tmp_path / "out")
    with pytest.raises(UserError, match="already an exported model"):
        export(saved_bundle(tmp_path / "out"), tmp_path / "again")
    with pytest.raises(UserError, match=r"bpe has no model\.safetensors"):
        export(saved_bundle(experiment.bpe), tmp_path / "again")
    assert not (tmp_path / "again").exists()


@pytest.mark.parametrize("size", [None, 0, 7, 120])
def test_a_model_with_gates_whose_table_is_missing_or_cut_off_is_not_exported(
    experiment: Experiment, tmp_path: Path, capsys: pytest.CaptureFixture[str], size: int | None
) -> None:
    table = experiment.gates / "heads.tsv"
    whole = table.read_bytes()
    table.unlink()
    if size is not None:
        table.write_bytes(whole[:size])
    assert main(["export", str(experiment.gates), "-o", str(tmp_path / "out")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"error: {table}") and said.count("\n") == 1
    assert not (tmp_path / "out").exists()


def test_a_model_with_gates_that_lies_elsewhere_is_known_by_its_log(experiment: Experiment, tmp_path: Path) -> None:
    moved = shutil.copytree(experiment.gates, tmp_path / "moved")
    (moved / "heads.tsv").unlink()
    write_text(moved / "gates.jsonl", "{}\n")
    with pytest.raises(UserError, match=r"moved/heads\.tsv is missing"):
        load_folder(moved)


@pytest.mark.parametrize("place", ["there", "file/out", "file/above/out", "/proc/out"])
def test_a_folder_that_is_there_or_can_not_be_made_is_one_sentence(
    experiment: Experiment, tmp_path: Path, place: str
) -> None:
    write_text(tmp_path / "file", "no folder\n")
    (tmp_path / "there").mkdir()
    with pytest.raises(UserError, match="there is already there" if place == "there" else "out cannot be made"):
        export(saved_bundle(experiment.pruned), tmp_path / place)
    assert (tmp_path / "file").read_text(encoding="utf-8") == "no folder\n" and not [*(tmp_path / "there").iterdir()]


def test_the_folder_one_stands_in_is_there_already(experiment: Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(experiment.pruned)
    with pytest.raises(UserError, match=r"^\. is already there: delete it"):
        export(saved_bundle(experiment.baseline), Path())


def test_a_damaged_score_is_named_and_not_exported(experiment: Experiment, tmp_path: Path) -> None:
    write_text(experiment.pruned / "bleu.json", '{"beam": 2, "length_penalty": 0.7, "bleu": "good"}')
    with pytest.raises(UserError, match=r"bleu\.json is damaged"):
        export(saved_bundle(experiment.pruned), tmp_path / "out")
    assert not (tmp_path / "out").exists()
