"""Every stage with every kind of model, one that translates, classifies or embeds: it works, or says why not."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from every_task import METRIC, World, write_world
from heads.__main__ import FOR_PEOPLE, command, main
from heads.base.files import read_tsv
from heads.base.names import CLASSIFICATION, EMBEDDING, HEAD, SIDES, TRANSLATION
from heads.cli._signature import Stage, flags_of, outputs_of
from heads.config.settings import stage_settings
from heads.model.folder import WEIGHTS, load_model
from test_house import MODULES

TASKS = (TRANSLATION, CLASSIFICATION, EMBEDDING)
READ = ("model", "start_model", "unpruned", "baseline")
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
    **dict.fromkeys(("baseline", "gates_from_scratch", "scratch", "selected"), (EMBEDDING,)),
}
"""The tasks whose models a stage refuses. No experiment embeds sentences."""


def stages() -> list[str]:
    """The stages that read a model or train one."""
    commands = {name.removeprefix("cli.") for name in MODULES if name.startswith("cli.")}
    own = sorted(name for name in commands - {*FOR_PEOPLE, *OTHER_MODELS} if not name.startswith("_"))
    return [name for name in own if {*READ} & {flag.name for flag in flags_of(run_of(name))}]


def run_of(stage: str) -> Stage:
    """The function of a stage."""
    found: Stage = command(stage, "heads")[0].run
    return found


@pytest.fixture(scope="module")
def worlds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, World]:
    return {task: write_world(tmp_path_factory.mktemp(task), task) for task in TASKS}


def told(stage: str, world: World, data: World, out: Path) -> dict[str, Any]:
    """What a stage is told to do with the model of `world` and the text of `data`: all that it has to be told."""
    own, outputs = own_of(world, data).get(stage, {}), outputs_of(run_of(stage))
    given = [flag for flag in flags_of(run_of(stage)) if flag.keywords.get("required") or flag.name in (*own, "device")]
    values: dict[str, Any] = {
        **dict.fromkeys(READ, world.model),
        **{f"{side}_bpe": data.bpe(side) for side in SIDES},
        **{f"{split}_{side}": data.tokens(split, side) for split in ("train", "dev") for side in SIDES},
        **{"data": data.bpe("source").parent, "checkpoints": world.model / "checkpoints"},
        **{"seed": 1, "scope": "all", "device": "cpu"},
        **own,
    }
    for flag in given:
        if flag.name == "settings":
            values["settings"] = json.dumps(stage_settings(data.experiment, SETTINGS_OF.get(stage, stage)))
        if flag.name in outputs:
            values[flag.name] = out / f"{flag.name}{'.tsv' if 'table' in flag.keywords['help'] else ''}"
        assert flag.name in values, f"{stage} is new, or has a new flag: say in own_of what --{flag.name} is"
    return {flag.name.replace("_", "-"): values[flag.name] for flag in given}


def own_of(world: World, data: World) -> dict[str, dict[str, Any]]:
    """By stage, what the names of its flags do not say."""
    dev = {side: data.tokens("dev", side) for side in SIDES}
    answered = {"source": data.tokens("test", "source"), "references": data.text("test", "target")}
    trained = {"references": data.text("dev", "target")}
    gated, left = {**trained, "target": "lam-1"}, {**trained, "heads": world.gates / "heads.tsv"}
    looked = {"text": data.text("dev", "source")}
    linked = {f"{side}{words}": data.text("dev", side) for side in SIDES for words in ("", "_words")}
    linked["links"] = data.folder / "links.txt"
    table = {"importance": "importance.tsv", "ablation_dev": "ablation.dev.tsv", "ablation_test": "ablation.tsv"}
    return {
        "baseline": trained,
        **dict.fromkeys(("gates", "gates_from_scratch"), gated),
        **dict.fromkeys(("scratch", "selected"), left),
        "pruned": {"start_model": world.gates, "gates": world.gates / "heads.tsv"},
        **dict.fromkeys(("score", "classified", "ablation_out_of_domain", "checkpoints"), answered),
        **dict.fromkeys(("confidence", "importance", "causal", "lrp", "surgeon"), dev),
        "roles": looked,
        "dynamics": {**looked, **dev},
        "maps": {"sentences": data.text("dev", "source"), "labels": data.text("dev", "target")},
        **dict.fromkeys(("alignment_heads", "cross_attention_roles"), linked),
        "ablation": {**answered, "dev_references": data.text("dev", "target")},
        "masking_curve": {**answered, **{name: world.model / file for name, file in table.items()}},
        "masked": {**answered, "selection": world.model / "selection.tsv"},
        "speed": {"runs": world.pruned, "source": data.tokens("test", "source")},
        "selection": {"targets": "confidence-2"},
        "compared": {"runs": world.pruned, "references": data.text("test", "target")},
        "distilled": {"sentences": 2, "text": data.text("train", "source")},
    }


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
    status = done(stage, told(stage, world, world, tmp_path))
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
BY_LABEL = ("confidence", "importance", "lrp", "dynamics", "gates", "gates_from_scratch", "scratch", "selected")
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
    assert done(stage, told(stage, worlds[task], worlds[other], tmp_path)) == 1
    *_, last = capsys.readouterr().err.splitlines()
    assert last.startswith("error: ")
    assert not written(tmp_path)
