"""Settings: an experiment is the defaults plus its own changes, checked, then split by stage.

All values that a run uses are in config.yaml; the defaults of the models are written into it. Imported by the
Snakefile, so kept light.
"""

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from heads.base.files import UserError, read_yaml, settings_given
from heads.base.names import AUTO, CHOICE_SCOPE, CLASSIFICATION, KINDS_OF, TASK, TOKENIZE
from heads.config.checks import check_together, sized_by_settings
from heads.config.corpora import AnyCorpus
from heads.config.corpus_entries import LABELLED, check_corpus
from heads.config.experiment import ClassifyingExperiment, Config, Experiment
from heads.config.fields import Closed
from heads.config.messages import nearest, validated
from heads.config.trainings import HardConcrete

OF_ITS_NAME = (
    *("bpe", "selection", "confidence", "lrp", "roles", "alignment_heads", "parser", "speed", "causal", "surgeon"),
    *("ablation", "masking_curve"),
)
"""Stages that get the section of their name alone."""
STAGE_SECTIONS: dict[str, tuple[str, ...]] = {
    **{name: (name,) for name in OF_ITS_NAME},
    "baseline": ("model", "training", "baseline"),
    "imported_bpe": ("baseline",),
    "imported": ("training", "baseline"),
    "gates": ("training", "gates"),
    "gates_from_scratch": ("training", "gates", "scratch"),
    "selected": ("training", "selected"),
    "scratch": ("training", "scratch"),
    "masked": ("translate", "selection"),
    "compared": ("selection",),
    "score": ("translate",),
    "classified": ("translate",),
    "dynamics": ("roles", "confidence"),
    "maps": ("maps", "translate"),
    "importance": ("importance", "training"),
    "checkpoints": ("checkpoints", "importance", "training"),
}
"""The sections of an experiment that each stage gets; a change in any other section does not rerun it."""
WITH_BLEU = ("score", "ablation", "masking_curve", "checkpoints", "masked", "compared")
"""Stages that are given the tokeniser of BLEU, if an experiment names one."""
OF_IMPORTS = (
    *("pretrained", "fine_tuning_updates", "decoder", "new_weights_rate", "labels", "prefix"),
    *("source_language", "target_language"),
)
"""Keys of the section `baseline` that the stage of that name does not get: they are for imported models only."""
LIKE = "like"
"""The key of an experiment that names another one, whose changes it starts from."""
OLD_NAMES = {
    "baseline": {"keep_at": "checkpoint_updates"},
    "gates": {"settled_share": "fixed_gates_share"},
    "sweep": {"penalty_scratch_scopes": "gates_from_scratch_scopes"},
}
"""By section, what keys are called now, by their names until November 2026, which are still read."""


Section = TypeVar("Section", bound=Closed)


def section(kind: type[Section], content: Mapping[str, Any]) -> Section:
    """The settings object of a stage from a mapping with all of its keys; raise UserError if one is wrong."""
    read: Section = validated(kind, content, kind.__name__, whole=True)
    return read


def gates_given(word: str) -> dict[str, HardConcrete]:
    """The distribution of gates of each experiment, from JSON or a YAML file `{EXPERIMENT: {temperature: ...}}`."""
    return {name: section(HardConcrete, content) for name, content in settings_given(word).items()}


def merged(base: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """`base` with `changes` merged into it recursively; lists and single values are replaced."""
    result = dict(copy.deepcopy(base))
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = merged(result[key], value)
        else:
            result[key] = copy.deepcopy(value)
    return result


def configuration(folder: Path) -> dict[str, Any]:
    """All settings of a checkout, as its Snakefile lays config.yaml over the files of config/experiments."""
    whole: dict[str, Any] = {}
    for file in [*sorted((folder / "config/experiments").glob("*.yaml")), folder / "config.yaml"]:
        whole = merged(whole, read_yaml(file))
    return whole


def with_current_names(config: Mapping[str, Any]) -> dict[str, Any]:
    """A configuration with keys as they are called now; nothing is checked."""
    found = {key: _current(value) if key == "defaults" else value for key, value in config.items()}
    if isinstance(experiments := config.get("experiments"), Mapping):
        found["experiments"] = {name: _current(sections) for name, sections in experiments.items()}
    return found


def _current(sections: Any) -> Any:
    """Sections of an experiment with keys as they are called now; where both names stand, the old one is the user's."""
    if not isinstance(sections, Mapping):
        return sections
    found = dict(sections)
    for name, current in OLD_NAMES.items():
        part = found.get(name)
        if isinstance(part, Mapping) and (old := current.keys() & part.keys()):
            kept = {key: value for key, value in part.items() if key not in old}
            found[name] = kept | {current[key]: part[key] for key in old}
    return found


def resolve(config: Mapping[str, Any]) -> dict[str, Experiment]:
    """All experiments of a configuration, resolved and checked.

    Shares of heads become numbers, except for imported models. Raises UserError with one sentence that names the key
    and the most similar one that exists.
    """
    config = with_current_names(config)
    return experiments_of(config, corpora_of(config))


def corpora_of(config: Mapping[str, Any]) -> Mapping[str, AnyCorpus]:
    """The corpora of a configuration, of which all keys are checked, each for itself. Raises UserError as `resolve`."""
    read: Config = validated(Config, config)
    for corpus in read.corpora.values():
        check_corpus(corpus)
    return read.corpora


def experiments_of(config: Mapping[str, Any], corpora: Mapping[str, AnyCorpus]) -> dict[str, Experiment]:
    """What `resolve` gives, of a configuration whose corpora are read."""
    validated(Experiment, config["defaults"], "defaults", whole=True)
    experiments = {}
    # Experiments without `like` come first, so that an error is reported where it was written.
    for name in sorted(config["experiments"], key=lambda name: LIKE in (config["experiments"][name] or {})):
        changes = changes_of(name, config["experiments"])
        whole = merged(config["defaults"], changes)
        corpus = corpora.get(whole["corpus"])
        if corpus is not None and corpus.kind in LABELLED:
            experiment: Experiment = classifying(name, whole, changes)
        else:
            experiment = validated(Experiment, whole, f"experiments.{name}", whole=True)
        check_together(name, experiment, corpora)
        # Only its folder says how many heads an imported model has; `heads.config.plan` reads it when needed.
        trained_here = not experiment.baseline.pretrained
        experiments[name] = sized_by_settings(f"experiments.{name}", experiment) if trained_here else experiment
    for name in config["run"]:
        if name not in experiments:
            raise UserError(f"run names {name!r}, which is not under experiments.{nearest(name, experiments)}")
    return experiments


def changes_of(name: str, experiments: Mapping[str, Any], below: tuple[str, ...] = ()) -> dict[str, Any]:
    """An experiment's changes to the defaults: its own, merged into those of the experiment that `like` names.

    below: the experiments that led here. Raises UserError if `like` names an unknown experiment or one of these.
    """
    own = dict(experiments[name] or {})
    other = own.pop(LIKE, None)
    if other is None:
        return own
    if other not in experiments:
        raise UserError(
            f"experiments.{name}.{LIKE} names {other!r}, which is not under experiments.{nearest(other, experiments)}"
        )
    if other in (name, *below):
        raise UserError(f"experiments.{name}.{LIKE} leads back to {other}: leave out one {LIKE} of the cycle.")
    return merged(changes_of(other, experiments, (name, *below)), own)


def classifying(name: str, whole: Mapping[str, Any], changes: Mapping[str, Any]) -> ClassifyingExperiment:
    """A classification experiment from its whole settings, without those of a decoder or of the scope enc_self.

    Raises UserError if its own changes use the scope enc_self, since the encoder is the whole model.
    """
    sweep, own = whole["sweep"], changes.get("sweep", {})
    for key in ("lambdas", "budgets", "scratch_lambdas", "scratch_scopes", "gates_from_scratch_scopes"):
        named = own.get(key, ())
        if named.get("enc_self") if isinstance(named, Mapping) else "enc_self" in named:
            raise UserError(
                f"experiments.{name}.sweep.{key} names enc_self, but a model that classifies has no other heads: "
                "move it to all."
            )
    swept = {
        key: {CHOICE_SCOPE: [], **{scope: each for scope, each in sweep[key].items() if scope != "enc_self"}}
        for key in ("lambdas", "budgets")
    }
    at_least = whole["selection"]["at_least"]
    kept = {key: number for key, number in at_least.items() if key.partition(".")[0] in KINDS_OF[CLASSIFICATION]}
    selection = {**whole["selection"], "at_least": kept}
    read: ClassifyingExperiment = validated(
        ClassifyingExperiment,
        {**whole, "sweep": {**sweep, **swept}, "selection": selection},
        f"experiments.{name}",
        whole=True,
    )
    return read


def stage_settings(experiment: Experiment, stage: str) -> dict[str, Any]:
    """The part of a resolved experiment that one stage gets, as it is written."""
    sections: dict[str, Any] = {name: experiment.written[name] for name in STAGE_SECTIONS[stage]}
    if stage == "baseline":
        sections[stage] = {key: value for key, value in sections[stage].items() if key not in OF_IMPORTS}
    if stage in ("bpe", "imported_bpe", "imported") and experiment.task == CLASSIFICATION:
        sections[TASK] = experiment.task
    if stage in WITH_BLEU and experiment.tokenize != AUTO:
        sections[TOKENIZE] = experiment.tokenize
    return sections
