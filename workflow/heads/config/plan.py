"""The plan: which runs, files and choices the settings ask for. The rules use it, so it imports nothing heavy.

Experiments, corpora and seeds are named as in paths; paths are relative to the folder where Snakemake runs.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base import methods
from heads.base.files import UserError
from heads.base.names import (
    ALIGNMENT_FILE,
    CAUSAL_FILE,
    CHOICE_SCOPE,
    CLASSIFICATION,
    EMBEDDING,
    KINDS,
    ONE_MODEL,
    ONLY_OF,
    OUT_OF_DOMAIN_FILE,
    SCORED_FILES,
    TRANSLATION,
    UNIT_SCOPES,
)
from heads.base.runs import Need, Run
from heads.base.targets import Target
from heads.config import settings, sweep
from heads.config.checks import sized
from heads.config.experiment import Experiment
from heads.config.texts import Texts
from heads.interop.format import Format, Heads
from heads.interop.formats import format_of

SCORED_KINDS = ("baseline", "pruned", "scratch", "selected", "pruned_from_scratch")
"""The kinds of runs that are scored; models with gates are not, since they still have all heads."""

DOING = {TRANSLATION: "translate", CLASSIFICATION: "classify", EMBEDDING: "embed sentences"}
DOING |= {ONE_MODEL: "are inspected one by one"}
"""What models do, by their task."""
CHOSEN_FILE = "masked.tsv"
"""The file of a run that is made only if heads are chosen by other means than gates."""


class Plan(Texts):
    """A checked configuration, and what follows from it. Methods raise UserError if there is no answer."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """config: as read by Snakemake. Raises UserError with one sentence that names the key."""
        config = settings.with_current_names(config)
        corpora = settings.corpora_of(config)
        super().__init__(settings.experiments_of(config, corpora), corpora)
        self.run: list[str] = config["run"]
        self._by_folder: dict[str, Experiment] = {}
        self._runs: dict[str, list[Run]] = {}

    def notes(self) -> list[str]:
        """What the experiments that `run` names cannot measure, one sentence each."""
        return [note for note in map(self.about_trees, self.run) if note]

    # Runs

    def runs(self, experiment: str, kinds: Collection[str] = SCORED_KINDS) -> list[Run]:
        """An experiment's runs of these kinds: baselines, then by kind, scope, target and seed."""
        if experiment not in self._runs:  # asked for hundreds of times
            self._runs[experiment] = sweep.runs(self._sized(experiment))
        return [run for run in self._runs[experiment] if run.kind in kinds]

    def run_folders(self, experiment: str, kinds: Collection[str] = SCORED_KINDS) -> list[str]:
        """The folders of these runs."""
        return [_folder(experiment, run) for run in self.runs(experiment, kinds)]

    def _sized(self, experiment: str) -> Experiment:
        """An experiment with numbers of heads in place of shares; for an imported model, its folder is read."""
        resolved = self.experiments[experiment]
        if not (resolved.baseline.pretrained and sweep.has_shares(resolved)):
            return resolved
        if experiment not in self._by_folder:  # reading a folder may take 50 ms
            _, folder, heads = self._pretrained(experiment)
            if not heads:
                raise UserError(
                    f"experiments.{experiment}.sweep has shares of heads, but {folder} does not say how many there "
                    "are: copy it from the model's source again, or give numbers of heads."
                )
            self._by_folder[experiment] = sized(f"experiments.{experiment}", resolved, heads)
        return self._by_folder[experiment]

    def task(self, experiment: str) -> str:
        """The task that the experiment's models are trained for."""
        return self.experiments[experiment].task

    def scored_files(self, experiment: str) -> tuple[str, str]:
        """The files of every scored run: its score, and its translations or labels."""
        return SCORED_FILES[self.task(experiment)]

    def choices(self, experiment: str) -> list[str]:
        """All choices of heads that are scored without updates; as text, because Snakemake stores it."""
        return [str(choice) for choice in sweep.choices(self._sized(experiment), fine_tuned=False)]

    def has_choices(self, experiment: str) -> bool:
        """Whether heads are chosen by other means than gates, or fine-tuned like such choices."""
        return bool(self.choices(experiment) or self.runs(experiment, ("selected",)))

    def has_unit_gates(self, experiment: str) -> bool:
        """Whether hidden units have gates in any of an experiment's scopes."""
        return any(run.scope in UNIT_SCOPES for run in self.runs(experiment, ("pruned",)))

    def measures(self, experiment: str, seed: str, choices: Iterable[str]) -> list[str]:
        """The files of a baseline that these choices of heads are made from."""
        baseline = self._baseline(experiment, seed)
        named = [Target.parse(choice).method for choice in choices]
        return [f"{baseline}/{name}" for name in methods.files_read_by(named)]

    def grams(self, experiment: str, seed: str, choices: Iterable[str]) -> list[str]:
        """The file of a baseline by which heads make up for others, if any of these choices is the surgeon's."""
        by_surgeon = any(Target.parse(choice).method == methods.SURGEON for choice in choices)
        return [f"{self._baseline(experiment, seed)}/{methods.GRAMS}"] * by_surgeon

    def heads_to_keep(self, experiment: str, choice: str, seed: str) -> str:
        """The table of the heads that a choice keeps, by gates or by a measure."""
        target = Target.parse(choice)
        kind = "pruned" if target.by_gates else "selected"
        return f"{_folder(experiment, Run(kind, CHOICE_SCOPE, target, int(seed)))}/heads.tsv"

    def _baseline(self, experiment: str, seed: str) -> str:
        """The folder of a baseline."""
        return _folder(experiment, Run("baseline", None, None, int(seed)))

    def timed_with(self, experiment: str, seed: str) -> list[str]:
        """Folders of the pruned runs that are timed with a baseline: those in the widest scope that is swept."""
        pruned = self._with_seed(experiment, ("pruned",), seed)
        mine = [run for run in pruned if run.target and run.target.hard_concrete]
        whole = [run for run in mine if run.scope == "all"]
        return [_folder(experiment, run) for run in whole or mine]

    def compared_with(self, experiment: str, seed: str) -> list[str]:
        """Folders of the runs fine-tuned from a baseline with fewer heads of all kinds of attention."""
        fewer = self._with_seed(experiment, ("pruned", "selected"), seed)
        return [_folder(experiment, run) for run in fewer if run.scope == CHOICE_SCOPE]

    def _with_seed(self, experiment: str, kinds: Collection[str], seed: str) -> list[Run]:
        """Runs of these kinds with the seed of one baseline."""
        return [run for run in self.runs(experiment, kinds) if str(run.seed) == str(seed)]

    # Pretrained models

    def imported(self) -> list[str]:
        """Experiments whose baseline is imported."""
        return [name for name, experiment in self.experiments.items() if experiment.baseline.pretrained]

    def pretrained_files(self, experiment: str) -> list[str]:
        """The files that an experiment's baseline is imported from.

        Raises UserError if there is no such model, or if it has fewer heads than the experiment would keep.
        """
        found, folder, heads = self._pretrained(experiment)
        if heads:
            sized(f"experiments.{experiment}", self.experiments[experiment], heads)
        return [str(path) for path in found.files(folder)]

    def _pretrained(self, experiment: str) -> tuple[Format, Path, Heads]:
        """The format, folder and heads of a pretrained model, including new decoder self-attention.

        Raises UserError if there is no such model, or if its decoder cannot have new self-attention.
        """
        where, baseline = f"experiments.{experiment}.baseline", self.experiments[experiment].baseline
        try:
            found, folder = format_of(baseline.pretrained, self.task(experiment))
        except UserError as error:
            raise UserError(f"{where}.pretrained: {error}") from None
        heads = found.heads(folder)
        if not baseline.decoder or not heads:
            return found, folder, heads
        if "dec_self" in heads or "dec_enc" not in heads:
            raise UserError(
                f"{where}.decoder is for a decoder without self-attention, which {folder} does not have: take it out."
            )
        return found, folder, {**heads, "dec_self": heads["dec_enc"]}

    # Attention maps

    def sentences_shown(self, experiment: str) -> str:
        """The file of the sentences shown: the trees that decide roles, else dev; always dev for classifiers."""
        if self.task(experiment) == CLASSIFICATION or not self.has_trees(experiment):
            return f"{self.corpus_of(experiment)}/dev.source.txt"
        return next(iter(self.tree_files(experiment).values()))

    def labels_shown(self, experiment: str) -> list[str]:
        """The file with the labels of the examples; empty for translation."""
        return [f"{self.corpus_of(experiment)}/dev.target.txt"] if self.task(experiment) == CLASSIFICATION else []

    def trees_shown(self, experiment: str) -> list[str]:
        """The file with the gold trees of the examples' sentences in order; empty if these have no gold trees."""
        return [self.gold_trees(experiment)] if self._corpus(experiment).kind == "grammar_pairs" else []

    # Tables and figures

    def runs_read(self, need: Need, experiments: Iterable[str]) -> list[str]:
        """Folders of the runs that a table or figure reads, without experiments that lack what it needs."""
        readable = (experiment for experiment in experiments if self._has_files_of(need, experiment))
        return [_folder(one, run) for one in readable for run in self.runs(one, KINDS) if need.wants(run)]

    def _has_files_of(self, need: Need, experiment: str) -> bool:
        """Whether an experiment has all that is needed: the task, trees, an alignment, chosen heads, gates on units."""
        files = {name for names_of_kind in need.files.values() for name in names_of_kind} - {*need.optional}
        return (
            self.task(experiment) in need.tasks
            and (self.has_trees(experiment) or not need.syntactic)
            and (self.has_alignment(experiment) or ALIGNMENT_FILE not in files)
            and (CHOSEN_FILE not in files or self.has_choices(experiment))
            and ({*need.scopes}.isdisjoint(UNIT_SCOPES) or self.has_unit_gates(experiment))
        )

    def inputs_asked(self, name: str, need: Need, experiments: Sequence[str]) -> list[str]:
        """Like `inputs_read`, but raise UserError with the name of the table or figure if there is nothing to read."""
        if paths := self.inputs_read(need, experiments):
            return paths
        able = [other for other in {**dict.fromkeys(self.run), **self.experiments} if self._has_files_of(need, other)]
        others = " or ".join(able[:3]) or "others"
        raise UserError(f"{name} is not available for {', '.join(experiments)}: make it for {others}.")

    def inputs_read(self, need: Need, experiments: Iterable[str]) -> list[str]:
        """The files that a table or figure reads, except those that an experiment does not have."""
        return [
            path for one in experiments for path in need.inputs(self.runs_read(need, [one]), without=self.lacking(one))
        ]

    def check_made(self, experiment: str, name: str) -> None:
        """Raise UserError if the runs of an experiment have no file of this name, by their task or settings."""
        own = self.task(experiment)
        if wrong := [task for task, names in ONLY_OF.items() if name in names and task != own]:
            raise UserError(
                f"{name} is of models that {DOING[wrong[0]]}, but those of {experiment} {DOING[own]}: ask for others."
            )
        if name == CAUSAL_FILE and not self.experiments[experiment].causal.updates:
            raise UserError(
                f"experiments.{experiment}.causal.updates is 0, so no gates are fitted: set one, such as 60."
            )

    def lacking(self, experiment: str) -> list[str]:
        """Files that the runs of an experiment do not have: of another task, or that need an alignment and the like."""
        had = {
            ALIGNMENT_FILE: self.has_alignment(experiment),
            OUT_OF_DOMAIN_FILE: self.has_out_of_domain(experiment),
            CAUSAL_FILE: bool(self.experiments[experiment].causal.updates),
        }
        others = [name for task, names in ONLY_OF.items() if task != self.task(experiment) for name in names]
        return [*dict.fromkeys(others + [name for name, there in had.items() if not there])]


def _folder(experiment: str, run: Run) -> str:
    return f"results/{experiment}/{run.folder}"
