"""A classifier from the command line: training, pruning, scoring, masking, choosing and timing heads."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from heads.__main__ import main
from heads.analysis.ablation import gates_without
from heads.analysis.masking import evaluation_of, read_text
from heads.base.files import UserError, read_json, read_lines, read_tsv, read_yaml, write_lines, write_text
from heads.config.analyses import TranslateSettings
from heads.config.settings import merged, stage_settings
from heads.model.folder import load_classifier, save_folder
from heads.model.head_removal import prune
from heads.model.shape import shape_of
from known_experiment import command
from tiny_examples import LABELS, experiment, write_examples

CHANGES: dict[str, Any] = {
    "model": {"layers": 2, "heads": 3, "width": 12, "feedforward": 7, "dropout": 0.0, "attention_dropout": 0.0},
    "training": {
        "batch_tokens": 150,
        "micro_batch_tokens": 150,
        "learning_rate": 0.0316228,
        "learning_rate_scale": 0.0,
        "warmup_updates": 10,
        "precision": "fp32",
        "evaluate_every": 20,
    },
    "baseline": {"updates": 40, "average_last": 1, "checkpoint_updates": [5]},
    "gates": {"updates": 20, "record_every": 10, "average_last": 1, "gate_learning_rate": 0.3},
    "selected": {"updates": 3, "average_last": 1},
    "scratch": {"updates": 3, "average_last": 1},
    "ablation": {"sentences": 8, "dev_sentences": 6},
    "masking_curve": {"step": 0.5, "random_orders": 1, "resamples": 100},
    "checkpoints": {"step": 0.5, "resamples": 100},
    "speed": {"batch_sizes": [1, 3], "sentences": 6, "repeats": 2},
    "sweep": {"lambdas": {"enc_self": []}},
}
CPU = torch.device("cpu")
HEADS = [("enc_self", layer, head) for layer in range(2) for head in range(3)]


class Made:
    """A folder of results, made command by command; `runs` is laid out as the rules would."""

    def __init__(self, folder: Path) -> None:
        self.bpe = write_examples(folder)
        self.text, self.runs = folder, folder / "results/tiny"
        defaults = read_yaml(Path(__file__).parents[2] / "config.yaml")["defaults"]
        self.experiment = experiment(merged(defaults, {"sweep": {"lambdas": {"enc_self": []}}}), CHANGES)
        self.baseline = self.runs / "baseline/seed-1"

    def settings(self, stage: str) -> Path:
        path = self.text / f"settings/{stage}.yaml"
        write_text(path, yaml.safe_dump(stage_settings(self.experiment, stage)))
        return path

    def run(self, stage: str, flags: Mapping[str, Any]) -> None:
        command(stage, settings=self.settings(stage), **flags)

    def train(self, stage: str, folder: Path, flags: Mapping[str, Any]) -> Path:
        shared = {"model": folder, "history": folder / "train.jsonl", "data": self.bpe, "seed": 1, "device": "cpu"}
        self.run(stage, {**shared, "references": self.text / "dev.target.txt", **flags})
        return folder

    def tested(self, split: str = "test") -> dict[str, Path]:
        return {
            "source": self.bpe / f"{split}.source.safetensors",
            "references": self.text / f"{split}.target.txt",
            "target_bpe": self.bpe / "target.model",
        }

    def score(self, folder: Path) -> None:
        files = {"predictions": folder / "predictions.txt", "accuracy": folder / "accuracy.json"}
        self.run("classified", {"model": folder, **self.tested(), **files})


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """A trained and scored baseline."""
    made = Made(tmp_path_factory.mktemp("classified"))
    made.train("baseline", made.baseline, {"checkpoints": made.baseline / "checkpoints"})
    made.score(made.baseline)
    return made


@pytest.fixture(scope="module")
def ablated(made: Made) -> Made:
    """The baseline with every head masked alone, and with importance and confidence measured."""
    sides = {f"dev_{name}": path for name, path in made.tested("dev").items() if name != "target_bpe"}
    names = {"masked": "ablation", "masked_dev": "ablation.dev", "alone": "alone", "alone_dev": "alone.dev"}
    out = {flag: made.baseline / f"{name}.tsv" for flag, name in {**names, "layers": "layers_to_one"}.items()}
    made.run("ablation", {"model": made.baseline, **made.tested(), **sides, **out})
    sides = {"source": made.bpe / "dev.source.safetensors", "target": made.bpe / "dev.target.safetensors"}
    made.run("importance", {"model": made.baseline, **sides, "out": made.baseline / "importance.tsv"})
    made.run("confidence", {"model": made.baseline, **sides, "out": made.baseline / "confidence.tsv"})
    return made


def test_a_classifier_is_scored_by_the_share_of_its_labels_that_are_right(made: Made) -> None:
    labels, wanted = (read_lines(path) for path in (made.baseline / "predictions.txt", made.text / "test.target.txt"))
    score = read_json(made.baseline / "accuracy.json")
    assert {*labels} <= {*LABELS} and len(labels) == 10
    right = sum(label == word for label, word in zip(labels, wanted, strict=True))
    assert score["accuracy"] == pytest.approx(100 * right / 10) and right > 6
    assert (score["examples"], score["majority"]) == (10, 40.0)
    facts = read_json(made.baseline / "model.json")
    assert facts["shape"]["labels"] == 3 and facts["dev_accuracy"] > 60


def test_correct_labels_count_however_they_are_written_and_an_unknown_one_is_named(made: Made, tmp_path: Path) -> None:
    files, wanted = made.tested(), read_lines(made.text / "test.target.txt")
    write_lines(tmp_path / "test.txt", [f" {label.title()}  " for label in wanted])
    assert read_text(files["source"], tmp_path / "test.txt", files["target_bpe"]).references == wanted
    write_lines(tmp_path / "test.txt", [*wanted[:4], "maybe", *wanted[5:]])
    with pytest.raises(UserError, match=r"test\.txt, line 5: 'maybe' is not one of the labels, which are"):
        read_text(files["source"], tmp_path / "test.txt", files["target_bpe"])


def test_gates_close_heads_which_are_then_cut_out_with_no_label_changed(made: Made) -> None:
    gates = made.runs / "gates/all/keep-2/seed-1"
    flags = {"scope": "all", "target": "keep-2", "heads": gates / "heads.tsv", "gates_log": gates / "gates.jsonl"}
    made.train("gates", gates, {**flags, "start_model": made.baseline})
    pruned = made.runs / "pruned/all/keep-2/seed-1"
    flags = {"start_model": gates, "gates": gates / "heads.tsv", "model": pruned, "heads": pruned / "heads.tsv"}
    command("pruned", **flags)
    assert len(shape_of(pruned).heads()) == 2 and shape_of(pruned).classifies
    rows = read_tsv(pruned / "heads.tsv")
    assert [(row["attention"], int(row["layer"]), int(row["head"])) for row in rows] == HEADS
    for folder in (gates, pruned):
        made.score(folder)
    assert read_lines(gates / "predictions.txt") == read_lines(pruned / "predictions.txt")
    scratch = made.runs / "scratch/all/keep-2/seed-1"
    made.train("scratch", scratch, {"unpruned": made.baseline, "heads": pruned / "heads.tsv"})
    assert shape_of(scratch) == shape_of(pruned)


def test_every_head_is_masked_alone_and_left_alone_by_accuracy(ablated: Made) -> None:
    base = 100 * sum(
        label == word
        for label, word in zip(
            read_lines(ablated.baseline / "predictions.txt")[:8],
            read_lines(ablated.text / "test.target.txt"),
            strict=False,
        )
    )
    rows = read_tsv(ablated.baseline / "ablation.tsv")
    beside = ["matthews", "matthews_change", "matthews_p_value"]
    assert list(rows[0]) == ["attention", "layer", "head", "accuracy", "accuracy_change", "p_value", *beside]
    assert len({round(float(row["matthews"]) - float(row["matthews_change"]), 9) for row in rows}) == 1
    assert [(row["attention"], int(row["layer"]), int(row["head"])) for row in rows] == HEADS
    for row in rows:
        assert float(row["accuracy"]) - float(row["accuracy_change"]) == pytest.approx(base / 8)
        assert 0 <= float(row["p_value"]) <= 1
    layers = read_tsv(ablated.baseline / "layers_to_one.tsv")
    alone = {(row["layer"], row["head"]): row["accuracy"] for row in read_tsv(ablated.baseline / "alone.tsv")}
    assert [row["accuracy"] for row in layers] == [alone[row["layer"], row["head_chosen"]] for row in layers]


def test_the_curve_goes_from_all_heads_to_none_by_every_order(ablated: Made) -> None:
    files = {"importance": "importance.tsv", "ablation_dev": "ablation.dev.tsv", "ablation_test": "ablation.tsv"}
    measured = {flag: ablated.baseline / name for flag, name in {**files, "out": "masking_curve.tsv"}.items()}
    ablated.run("masking_curve", {"model": ablated.baseline, **ablated.tested(), **measured})
    rows = read_tsv(ablated.baseline / "masking_curve.tsv")
    assert {row["order"] for row in rows} >= {"example", "ablation", "ablation_oracle", "random-1"}
    assert len({row["accuracy"] for row in rows if row["masked"] == "6"}) == 1
    score = read_json(ablated.baseline / "accuracy.json")["accuracy"]
    assert [float(row["accuracy"]) for row in rows if row["masked"] == "0"] == pytest.approx([score] * 8)


def test_checkpoints_have_a_curve_each(ablated: Made) -> None:
    sides = {
        f"{split}_{side}": ablated.bpe / f"{split}.{side}.safetensors"
        for split in ("dev", "train")
        for side in ("source", "target")
    }
    flags = {"checkpoints": ablated.baseline / "checkpoints", "out": ablated.baseline / "checkpoints.tsv"}
    ablated.run("checkpoints", {"model": ablated.baseline, **ablated.tested(), **sides, **flags})
    rows = read_tsv(ablated.baseline / "checkpoints.tsv")
    assert [(row["update"], row["finished"]) for row in rows[::3]] == [("5", "0"), ("40", "1")]
    assert "accuracy" in rows[0]


def test_answers_follow_the_weights_of_a_model_that_is_given_others(made: Made) -> None:
    """`checkpoints` loads new weights into one model; answers of its old weights must not be reused."""
    tested = made.tested()
    model = load_classifier(made.baseline)
    text = read_text(tested["source"], tested["references"], tested["target_bpe"])
    answer, _, _ = evaluation_of(model, CPU, text, TranslateSettings(sentences=0))
    before = answer(None)
    with torch.no_grad():
        model.projection.weight.neg_()
        model.projection.bias.neg_()
        model.source_embedding.subwords.weight.mul_(-3)
    fresh, _, _ = evaluation_of(model, CPU, text, TranslateSettings(sentences=0))
    for gates in (None, gates_without(model, [HEADS[-1]])):
        assert answer(gates) == fresh(gates)
    assert answer(None) != before


def test_heads_are_chosen_masked_cut_out_trained_on_and_compared(ablated: Made) -> None:
    chosen = ablated.runs / "selected/all/ablation-2/seed-1"
    targets = ["ablation-2", "example_layer-4", "random1-3", "confidence-2", "optimal-3"]
    selection = ablated.baseline / "selection.tsv"
    ablated.run("selection", {"baseline": ablated.baseline, "targets": targets, "out": selection})
    out = ablated.baseline / "masked.tsv"
    ablated.run("masked", {"model": ablated.baseline, **ablated.tested(), "selection": selection, "out": out})
    masked = read_tsv(out)
    assert [row["target"] for row in masked] == targets and "accuracy_change" in masked[0]
    heads = chosen / "heads.tsv"
    ablated.run("selection", {"baseline": ablated.baseline, "targets": targets[:1], "out": heads})
    ablated.train("selected", chosen, {"start_model": ablated.baseline, "heads": heads})
    ablated.score(chosen)
    compared = ablated.baseline / "compared.tsv"
    flags = {"baseline": ablated.baseline, "runs": [chosen], "references": ablated.text / "test.target.txt"}
    ablated.run("compared", {**flags, "out": compared})
    (row,) = read_tsv(compared)
    assert (row["run"], row["kept"], row["of"], row["updates"]) == ("selected/all/ablation-2/seed-1", "2", "6", "3")
    assert float(row["accuracy"]) == pytest.approx(read_json(chosen / "accuracy.json")["accuracy"])


@pytest.mark.slow
def test_models_are_timed_at_telling_labels(made: Made) -> None:
    smaller, out = made.runs / "pruned/all/lam-9/seed-1", made.baseline / "speed.tsv"
    model = load_classifier(made.baseline)
    save_folder(prune(model, {"enc_self": [[True, False, False], [False] * 3]}), smaller, {}, {})
    source = made.tested()["source"]
    flags = {"baseline": made.baseline, "runs": [smaller], "source": source, "device": "cpu", "out": out}
    made.run("speed", flags)
    rows = read_tsv(out)
    assert [(row["run"], row["batch_sentences"], row["heads"]) for row in rows] == [
        (name, size, heads)
        for size in "13"
        for name, heads in (("baseline/seed-1", "6"), ("pruned/all/lam-9/seed-1", "1"))
    ]
    assert {row["subwords_per_example"] for row in rows} == {"1"}


def test_other_stages_refuse_a_classifier_in_one_sentence(made: Made, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["translate", str(made.baseline)]) == 1
    said = capsys.readouterr().err
    assert "holds a model that classifies and does not translate" in said and said.count("\n") == 1
