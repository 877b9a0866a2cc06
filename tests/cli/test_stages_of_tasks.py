"""Every stage with every kind of model, one that translates, classifies or embeds: it works, or says why not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from every_task import METRIC, World, write_world
from heads.__main__ import FOR_PEOPLE, command, main
from heads.base.files import read_tsv
from heads.base.names import CLASSIFICATION, EMBEDDING, HEAD, TRANSLATION
from heads.config.settings import stage_settings
from heads.model.folder import WEIGHTS, load_model
from test_house import MODULES

TASKS = (TRANSLATION, CLASSIFICATION, EMBEDDING)
READ = ("model", "start-model", "unpruned", "baseline")
"""Flags that name the folder of a model."""
OTHER_MODELS = ("bpe", "parser", "parser_model", "imported")
"""Stages with such a flag for a vocabulary, for Stanza's models, or that import a model of others: those have tests."""
ENCODERS = (CLASSIFICATION, EMBEDDING)
REFUSED: dict[str, tuple[str, ...]] = {
    "classified": (TRANSLATION, EMBEDDING),
    **dict.fromkeys(("score", "causal", "distilled", "alignment_heads", "cross_attention_roles"), ENCODERS),
    # These need answers that are right or wrong,
    **dict.fromkeys(("importance", "lrp", "maps", "checkpoints", "compared"), (EMBEDDING,)),
    # and these trainings have no model whose vectors they could stay close to.
    **dict.fromkeys(("baseline", "penalty_gates", "scratch", "selected"), (EMBEDDING,)),
}
"""The tasks whose models a stage refuses. No experiment embeds sentences."""


def stages() -> list[str]:
    """The stages that read a model or train one."""
    commands = {name.removeprefix("cli.") for name in MODULES if name.startswith("cli.")}
    own = sorted(name for name in commands - {*FOR_PEOPLE, *OTHER_MODELS} if not name.startswith("_"))
    flags = {
        name: {word for action in command(name, "heads")[1]._actions for word in action.option_strings} for name in own
    }
    return [name for name in own if {f"--{flag}" for flag in READ} & flags[name]]


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, World]:
    return {task: write_world(tmp_path_factory.mktemp(task), task) for task in TASKS}


def flags_of(stage: str, world: World, data: World, out: Path) -> dict[str, Any]:
    """What a stage is told to do with the model of `world` and the text of `data`."""

    def sides(split: str, prefix: str = "") -> dict[str, Path]:
        return {f"{prefix}{side}": data.tokens(split, side) for side in ("source", "target")}

    def texts(split: str) -> dict[str, Path]:
        return {side: data.text(split, side) for side in ("source", "target")}

    model = {"model": world.model, "device": "cpu"}
    bpe = {f"{side}-bpe": data.bpe(side) for side in ("source", "target")}
    measured = {**model, **sides("dev"), "out": out / "out.tsv"}
    masked = {
        **model,
        "source": data.tokens("test", "source"),
        "references": data.text("test", "target"),
        "target-bpe": data.bpe("target"),
    }
    trained = {
        "data": data.bpe("source").parent,
        "references": data.text("dev", "target"),
        "seed": 1,
        "model": out / "model",
        "history": out / "train.jsonl",
        "device": "cpu",
    }
    gated = {"scope": "all", "target": "lam-1", "heads": out / "heads.tsv", "gates-log": out / "gates.jsonl"}
    heads = {"heads": world.gates / "heads.tsv"}
    looked = {**model, "source-bpe": data.bpe("source"), "train-source": data.tokens("train", "source")}
    looked |= {"text": data.text("dev", "source"), "out": out / "out.tsv"}
    linked = {f"{side}-words": data.text("dev", side) for side in ("source", "target")}
    linked |= {"links": data.folder / "links.txt", "out": out / "out.tsv"}
    course = {"checkpoints": world.model / "checkpoints"}
    dev = {"dev-source": data.tokens("dev", "source"), "dev-references": data.text("dev", "target")}
    table = {"importance": "importance.tsv", "ablation-dev": "ablation.dev.tsv", "ablation-test": "ablation.tsv"}
    alone = ("masked", "masked-dev", "alone", "alone-dev", "layers")
    told: dict[str, dict[str, Any]] = {
        "baseline": {**trained, "checkpoints": out / "checkpoints"},
        "gates": {**trained, **gated, "start-model": world.model},
        "penalty_gates": {**trained, **gated, "unpruned": world.model},
        "scratch": {**trained, **heads, "unpruned": world.model},
        "selected": {**trained, **heads, "start-model": world.model},
        "pruned": {
            "start-model": world.gates,
            "gates": world.gates / "heads.tsv",
            "model": out / "model",
            "heads": out / "heads.tsv",
        },
        "score": {**masked, "translations": out / "t.txt", "bleu": out / "bleu.json"},
        "classified": {**masked, "predictions": out / "p.txt", "accuracy": out / "accuracy.json"},
        "confidence": measured,
        "importance": measured,
        "causal": measured,
        "lrp": {**measured, "conservation": out / "conservation.tsv"},
        "surgeon": {**measured, **sides("train", "train-"), "grams": out / "grams.safetensors"},
        "roles": {**looked, "coverage": out / "coverage.tsv", "positions": out / "positions.tsv"},
        "dynamics": {**looked, **course, **sides("dev")},
        "maps": {
            **model,
            **bpe,
            "sentences": data.text("dev", "source"),
            "labels": data.text("dev", "target"),
            "out": out / "maps.json",
        },
        "alignment_heads": {**model, **bpe, **texts("dev"), **linked},
        "cross_attention_roles": {**model, **bpe, **texts("dev"), **linked},
        "ablation": {**masked, **dev, **{name: out / f"{name}.tsv" for name in alone}},
        "ablation_out_of_domain": {**masked, "masked": out / "out.tsv"},
        "masking_curve": {**masked, **{n: world.model / f for n, f in table.items()}, "out": out / "out.tsv"},
        "checkpoints": {**masked, **course, **sides("dev", "dev-"), **sides("train", "train-"), "out": out / "out.tsv"},
        "masked": {**masked, "selection": world.model / "selection.tsv", "out": out / "out.tsv"},
        "speed": {
            "baseline": world.model,
            "runs": world.pruned,
            "source": data.tokens("test", "source"),
            "device": "cpu",
            "out": out / "out.tsv",
        },
        "selection": {"baseline": world.model, "targets": "confidence-2", "out": out / "out.tsv"},
        "compared": {
            "baseline": world.model,
            "runs": world.pruned,
            "references": data.text("test", "target"),
            "out": out / "out.tsv",
        },
        "distilled": {
            **model,
            "sentences": 2,
            "text": data.text("train", "source"),
            "source": out / "source.txt",
            "target": out / "target.txt",
        },
    }
    assert stage in told, f"{stage} is new: say above what it reads"
    settings = stage_settings(data.experiment, SETTINGS_OF.get(stage, stage)) if stage not in BARE else None
    return {**told[stage], **({} if settings is None else {"settings": json.dumps(settings)})}


BARE = ("pruned", "distilled")
"""Stages without settings."""
SETTINGS_OF = {"ablation_out_of_domain": "ablation", "cross_attention_roles": "alignment_heads"}
"""Stages with the settings of another one."""


def done(stage: str, flags: Mapping[str, Any]) -> int:
    """The exit status of a stage."""
    words = [f"--{name}={value}" for name, value in flags.items()]
    return main(["stage", stage, *words])


def written(out: Path) -> list[Path]:
    """The files of a stage, without those of a training that may go on."""
    return [path for path in out.rglob("*") if path.is_file() and "unfinished" not in str(path.relative_to(out))]


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("stage", stages())
def test_a_stage_works_with_a_model_of_every_task_or_refuses_it_in_one_sentence(
    worlds: Mapping[str, World], tmp_path: Path, capsys: pytest.CaptureFixture[str], stage: str, task: str
) -> None:
    world = worlds[task]
    status = done(stage, flags_of(stage, world, world, tmp_path))
    said = capsys.readouterr().err
    if task in REFUSED.get(stage, ()):
        assert status == 1 and said.startswith("error: ") and said.count("\n") == 1
        assert not written(tmp_path)
        return
    assert status == 0, said
    files = written(tmp_path)
    assert files
    if (tmp_path / "model" / WEIGHTS).exists():
        shape = load_model(tmp_path / "model").shape
        assert (shape.kinds, shape.classifies, shape.embeds) == (
            world.shape.kinds,
            task == CLASSIFICATION,
            task == EMBEDDING,
        )
    for path in files:
        if path.suffix == ".tsv" and (rows := read_tsv(path)) and {*HEAD} <= {*rows[0]}:
            assert {row["attention"] for row in rows} <= {*world.shape.kinds}, path
        if path.suffix == ".tsv" and rows:
            assert not {f"{name}_change" for name in METRIC.values() if name != METRIC[task]} & {*rows[0]}, path


ANSWERED = ("ablation", "ablation_out_of_domain", "masking_curve", "checkpoints", "masked", "classified")
"""Stages that compare a model's answers with those of the text."""
BY_LABEL = ("confidence", "importance", "lrp", "dynamics", "gates", "penalty_gates", "scratch", "selected")
"""Stages that need one label for each example if the model has no decoder."""


WRONG = [
    *((stage, TRANSLATION, CLASSIFICATION) for stage in ANSWERED),
    *((stage, CLASSIFICATION, TRANSLATION) for stage in (*ANSWERED, *BY_LABEL)),
]


@pytest.mark.parametrize(("stage", "task", "other"), WRONG)
def test_answers_of_another_kind_than_the_models_are_refused_in_one_sentence(
    worlds: Mapping[str, World],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    stage: str,
    task: str,
    other: str,
) -> None:
    assert done(stage, flags_of(stage, worlds[task], worlds[other], tmp_path)) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("error: ")
    assert not written(tmp_path)
