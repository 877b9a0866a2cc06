"""The plan: which runs, files and choices the settings ask for. The rules ask here, so that nothing heavy is imported.

Experiments, corpora and seeds are named as in paths; paths of folders and files start from where Snakemake runs.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from heads.base import criteria
from heads.base.files import UserError
from heads.base.names import (
    CHOICE_SCOPE,
    KINDS,
    ONLY_OF,
    OUT_OF_DOMAIN,
    PARSED_TREES,
    ROLES,
    SCOPES,
    SCORED_FILES,
    TASK,
    TRANSLATION,
)
from heads.base.runs import Run, run_of
from heads.base.targets import CONTROL, Target
from heads.config import corpora, settings, sweep
from heads.config.absent import check_there
from heads.config.corpus_parts import download_name
from heads.config.distillations import Distillations
from heads.config.need import Need
from heads.config.pretrained import pretrained_files, sized_by_folder

SCORED_KINDS = ("baseline", "pruned", "scratch", "selected", "penalty_scratch")
"""The kinds of runs that are scored; those with gates have all their heads."""

PUT_ASIDE = ("trees", "parser_trees", "alignment", OUT_OF_DOMAIN, "compared_with")
"""Keys of a corpus that only the rule which reads them is given, so that a change there leaves the text as it is."""
ROLE_FILES = {"roles.tsv", "alignment.tsv", "positions.tsv", "dynamics.tsv"}
"""What is made of a run only where there are trees."""
ALIGNMENT_FILE = "alignment_heads.tsv"
"""What is made of a run only where there is a word alignment."""
OUT_OF_DOMAIN_FILE = "ablation.out_of_domain.tsv"
"""What is made of a run only where there is a test set of another domain."""


class Plan:
    """A checked configuration, and what follows from it. Questions that have no answer raise UserError."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        """config: as Snakemake has read it. Raises UserError with one sentence that names the key."""
        self.experiments = settings.resolve(config)
        self.corpora: Mapping[str, Mapping[str, Any]] = config["corpora"]
        self.run: list[str] = config["run"]
        self._by_folder: dict[str, Mapping[str, Any]] = {}
        entries = self.corpora.values()
        # Every URL that a corpus names, and the checksums that the settings give, by the name of the downloaded file.
        self.downloads = {download_name(url): url for entry in entries for url in corpora.downloads_of(entry)}
        self.checksums = {
            download_name(url): sha256 for entry in entries for url, sha256 in corpora.checksums_of(entry).items()
        }
        self.distillations = Distillations(self.corpora)

    # Runs

    def run_folders(self, experiment: str, kinds: Collection[str] = SCORED_KINDS) -> list[str]:
        """Folders of an experiment's runs of these kinds: baselines, then by kind, scope and target; seeds last."""
        swept = self.experiments[experiment]["sweep"]
        found: list[tuple[str, str | None, Target | None]] = [("baseline", None, None)]
        for kind in ("gates", "pruned", "scratch", "penalty_gates", "penalty_scratch"):
            found += [(kind, scope, target) for scope in SCOPES for target in self._targets(experiment, kind, scope)]
        choices = [*self.fine_tuned(experiment), *self.trained_on(experiment)]
        # What training on alone does is measured beside whatever is trained on.
        choices = [CONTROL, *choices] if choices else []
        found += [("selected", CHOICE_SCOPE, choice) for choice in choices]
        runs = [Run(*what, seed) for what in found for seed in swept["seeds"]]
        return [f"results/{experiment}/{run.folder}" for run in runs if run.kind in kinds]

    def _targets(self, experiment: str, kind: str, scope: str) -> list[Target]:
        """What is swept of one kind with gates, or of what is left by them."""
        swept = self.experiments[experiment]["sweep"]
        targets = sweep.targets(self._sized(experiment), scope)
        if "scratch" in kind or "penalty" in kind:
            # The paper's comparisons are about lambdas; with a budget they are made when asked for by path.
            scopes = swept["scratch_scopes" if kind == "scratch" else "penalty_scratch_scopes"]
            targets = [target for target in targets if target.has_penalty and scope in scopes]
            if kind == "scratch" and scope in swept["scratch_lambdas"]:
                only = {Target.of_penalty(value) for value in swept["scratch_lambdas"][scope]}
                targets = [target for target in targets if target in only]
            return targets
        if scope == CHOICE_SCOPE:
            targets += [choice for choice in self.fine_tuned(experiment) if choice.by_gates and choice not in targets]
        return targets

    def _sized(self, experiment: str) -> Mapping[str, Any]:
        """An experiment with numbers of heads in the place of shares; of an imported model its folder is asked."""
        resolved = self.experiments[experiment]
        if not (resolved["baseline"]["pretrained"] and sweep.has_shares(resolved)):
            return resolved
        if experiment not in self._by_folder:  # asked hundreds of times, and a folder may take a twentieth of a second
            self._by_folder[experiment] = sized_by_folder(experiment, resolved, self.task(experiment))
        return self._by_folder[experiment]

    def fine_tuned(self, experiment: str) -> list[Target]:
        """The choices of heads, such as `random2-12`, that are cut out of the baseline, which is then trained on."""
        return sweep.choices(self._sized(experiment), fine_tuned=True)

    def task(self, experiment: str) -> str:
        """What the experiment's models are trained for."""
        return str(self.experiments[experiment].get(TASK, TRANSLATION))

    def scored_files(self, experiment: str) -> tuple[str, str]:
        """What is made of every run that is scored: its score, and its translations or labels."""
        return SCORED_FILES[self.task(experiment)]

    def trained_on(self, experiment: str) -> list[Target]:
        """The lambdas whose heads are treated likewise, as targets."""
        if CHOICE_SCOPE not in self.experiments[experiment]["sweep"]["trained_on_scopes"]:
            return []
        targets = sweep.targets(self._sized(experiment), CHOICE_SCOPE)
        return [target for target in targets if target.has_penalty]

    def choices(self, experiment: str) -> list[str]:
        """Every choice of heads that is scored without updates; as text, for Snakemake remembers it."""
        return [str(choice) for choice in sweep.choices(self._sized(experiment), fine_tuned=False)]

    def measures(self, experiment: str, seed: str, choices: Iterable[str]) -> list[str]:
        """The files of a baseline that choices of heads are made from."""
        baseline = f"results/{experiment}/{Run('baseline', None, None, int(seed)).folder}"
        methods = [Target.parse(choice).method for choice in choices]
        return [f"{baseline}/{name}" for name in criteria.files_of(methods)]

    def heads_to_keep(self, experiment: str, choice: str, seed: str) -> str:
        """The table of the heads that a choice keeps, by gates or by a measure."""
        target = Target.parse(choice)
        kind = "pruned" if target.by_gates else "selected"
        return f"results/{experiment}/{Run(kind, CHOICE_SCOPE, target, int(seed)).folder}/heads.tsv"

    def timed_with(self, experiment: str, seed: str) -> list[str]:
        """Folders of the runs pruned from a baseline in the widest scope that is swept: those timed beside it."""
        mine = [
            (folder, run)
            for folder, run in self._runs(experiment, ("pruned",), seed)
            if run.target and run.target.hard_concrete
        ]
        whole = [folder for folder, run in mine if run.scope == "all"]
        return whole or [folder for folder, _ in mine]

    def compared_with(self, experiment: str, seed: str) -> list[str]:
        """Folders of the runs with fewer heads, of all kinds of attention, that came from a baseline by fine-tuning."""
        fewer = self._runs(experiment, ("pruned", "selected"), seed)
        return [folder for folder, run in fewer if run.scope == CHOICE_SCOPE]

    def _runs(self, experiment: str, kinds: Collection[str], seed: str) -> list[tuple[str, Run]]:
        """Folders and runs of these kinds that came from one baseline."""
        found = [(folder, run_of(folder)[1]) for folder in self.run_folders(experiment, kinds)]
        return [(folder, run) for folder, run in found if str(run.seed) == str(seed)]

    # Models of others

    def imported(self) -> list[str]:
        """Experiments whose baseline is not trained here."""
        return [name for name, settings in self.experiments.items() if settings["baseline"]["pretrained"]]

    def pretrained_files(self, experiment: str) -> list[str]:
        """The files of the folder that an experiment's baseline is taken from. Raises UserError if it does not fit."""
        return pretrained_files(experiment, self.experiments[experiment], self.task(experiment))

    # Corpora

    def corpus_of(self, experiment: str) -> str:
        """The folder of the corpus that an experiment uses."""
        return f"results/corpora/{self.experiments[experiment]['corpus']}"

    def language(self, experiment: str) -> str:
        """The source language."""
        return str(self._entry(experiment)["source"])

    def _entry(self, experiment: str) -> Mapping[str, Any]:
        return self.corpora[self.experiments[experiment]["corpus"]]

    def entry_with(self, corpus: str, *keys: str) -> dict[str, Any]:
        """The entry of a corpus with what its text is made of, and of PUT_ASIDE only these keys."""
        aside = {*PUT_ASIDE} - {*keys}
        return {key: value for key, value in self.corpora[corpus].items() if key not in aside}

    def corpus_entry(self, corpus: str) -> dict[str, Any]:
        """What a corpus is made of: nothing that is PUT_ASIDE is a part of it."""
        return self.entry_with(corpus)

    def out_of_domain_entry(self, corpus: str) -> dict[str, Any]:
        """The entry of a corpus with the test set of another domain. Raises UserError where it has none."""
        if OUT_OF_DOMAIN not in self.corpora[corpus]:
            raise UserError(
                f"corpora.{corpus} has no test set of another domain: name its parts under {OUT_OF_DOMAIN}."
            )
        return self.entry_with(corpus, OUT_OF_DOMAIN)

    def treebank_entry(self, corpus: str, split: str) -> dict[str, Any]:
        """The entry of a corpus with the one treebank that stands in the place of a split's trees."""
        return self.entry_with(corpus, "parser_trees" if split == "train" else "trees")

    def treebank_files(self, corpus: str, split: str) -> list[str]:
        """Local files and downloads of that treebank alone."""
        return self._files_besides(corpus, self.treebank_entry(corpus, split))

    def alignment_entry(self, corpus: str, split: str) -> dict[str, Any]:
        """The entry of a corpus with the word alignment of one split, if it is given."""
        entry = self.entry_with(corpus, "alignment")
        if "alignment" in entry:
            entry["alignment"] = {name: file for name, file in entry["alignment"].items() if name == split}
        return entry

    def alignment_files(self, corpus: str, split: str) -> list[str]:
        """Local files and downloads of that alignment alone."""
        return self._files_besides(corpus, self.alignment_entry(corpus, split))

    def _files_besides(self, corpus: str, entry: Mapping[str, Any]) -> list[str]:
        """Those that an entry of a corpus names and its text is not made of."""
        return sorted({*self.files_of(entry)} - {*self.files_of(self.corpus_entry(corpus))})

    def check_there(self, corpus: str, files: Sequence[str], made: Callable[[str], bool]) -> None:
        """Raises UserError for one of the files of a corpus that is neither on disk nor made by a rule."""
        check_there(corpus, self.corpora[corpus], files, made)

    def files_of(self, entry: Mapping[str, Any]) -> list[str]:
        """Downloads and local files that an entry names."""
        downloads = [f"results/downloads/{download_name(url)}" for url in corpora.downloads_of(entry)]
        return downloads + [str(path) for path in corpora.local_files_of(entry)]

    # Trees

    def has_gold(self, experiment: str) -> bool:
        """Whether the experiment's corpus brings trees."""
        return corpora.has_gold(self._entry(experiment))

    def has_trees(self, experiment: str) -> bool:
        """Whether there is anything to measure roles on."""
        return self.has_gold(experiment) or "own" in self.experiments[experiment]["roles"]["trees"]

    def has_alignment(self, experiment: str) -> bool:
        """Whether the experiment's corpus brings a word alignment of dev."""
        return corpora.has_alignment(self._entry(experiment))

    def if_aligned(self, experiment: str, name: str) -> str | list[str]:
        """The file of dev text that belongs to its word alignment, such as `source.words`; none where there is none."""
        return f"{self.corpus_of(experiment)}/dev.{name}.txt" if self.has_alignment(experiment) else []

    def alignment_of(self, experiment: str) -> str:
        """The word alignment of dev. Raises UserError where the corpus brings none."""
        if not self.has_alignment(experiment):
            raise UserError(
                f"corpora.{self.experiments[experiment]['corpus']} has no word alignment: name what an aligner made of "
                "its dev text under alignment: {dev: FILE}."
            )
        return f"{self.corpus_of(experiment)}/dev.alignment.txt"

    def has_out_of_domain(self, experiment: str) -> bool:
        """Whether the experiment's corpus has a test set of another domain."""
        return OUT_OF_DOMAIN in self._entry(experiment)

    def tree_files(self, experiment: str) -> dict[str, str]:
        """The trees that roles are measured on, by source, the one that decides first; gold ones where there are any.

        Raises UserError where there are none at all.
        """
        asked = self.experiments[experiment]["roles"]["trees"]
        files = {name: f"results/{experiment}/parser/{name}.conllu" for name in PARSED_TREES}
        if self.has_gold(experiment) or not self.has_trees(experiment):
            files["gold"] = self.gold_trees(experiment)
        return {name: files[name] for name in asked if name in files}

    def gold_trees(self, experiment: str) -> str:
        """The trees that the corpus brings. Raises UserError where it brings none."""
        if not self.has_gold(experiment):
            raise UserError(
                f"corpora.{self.experiments[experiment]['corpus']} has no gold trees: name a treebank there under "
                f"trees, or own under experiments.{experiment}.roles.trees."
            )
        return f"{self.corpus_of(experiment)}/dev.conllu"

    def with_scored_parser(self, experiments: Iterable[str]) -> list[str]:
        """Experiments whose parser is scored: those measured on the sentences of gold trees, parsed."""
        return [experiment for experiment in experiments if "stanza" in self.experiments[experiment]["roles"]["trees"]]

    def parser_model(self, experiment: str) -> str:
        """The folder of Stanza models that the settings name, or the one to be trained."""
        return self.experiments[experiment]["parser"]["model"] or f"results/{experiment}/parser/model"

    def learnt_trees(self, experiment: str) -> str:
        """The treebank that the parser learns from. Raises UserError where the corpus has none."""
        entry = self._entry(experiment)
        if entry["kind"] not in corpora.GRAMMARS and "parser_trees" not in entry:
            raise UserError(
                f"corpora.{self.experiments[experiment]['corpus']} has no treebank to train a parser on: name one "
                f"under parser_trees, or a folder of Stanza models under experiments.{experiment}.parser.model."
            )
        return f"{self.corpus_of(experiment)}/train.conllu"

    def parsed_words(self, experiment: str, trees: str) -> str:
        """The file whose sentences are parsed: for `stanza` the gold trees, for `own` text of the corpus.

        That text is what it holds out for roles, else its dev set. Raises UserError where there are no gold trees.
        """
        if trees == "stanza":
            return self.gold_trees(experiment)
        held_out = self._entry(experiment).get("hold_out", {})
        return f"{self.corpus_of(experiment)}/{ROLES if ROLES in held_out else 'dev'}.source.txt"

    # Tables and figures

    def runs_read(self, need: Need, experiments: Iterable[str]) -> list[str]:
        """Folders of the runs that a table or figure reads; none of an experiment that lacks what it needs."""
        readable = (experiment for experiment in experiments if self._has_files_of(need, experiment))
        folders = (folder for experiment in readable for folder in self.run_folders(experiment, KINDS))
        return [folder for folder in folders if need.wants(run_of(folder)[1])]

    def _has_files_of(self, need: Need, experiment: str) -> bool:
        """Whether an experiment has what is not optional: models of that task, trees, an alignment."""
        files = {name for names_of_kind in need.files.values() for name in names_of_kind} - {*need.optional}
        return (
            self.task(experiment) in need.tasks
            and (self.has_trees(experiment) or not ROLE_FILES & files)
            and (self.has_alignment(experiment) or ALIGNMENT_FILE not in files)
        )

    def inputs_asked(self, name: str, need: Need, experiments: Sequence[str]) -> list[str]:
        """As `inputs_read`, of a table or figure of this name. Raises UserError where there is nothing to read."""
        if paths := self.inputs_read(need, experiments):
            return paths
        able = [other for other in {**dict.fromkeys(self.run), **self.experiments} if self._has_files_of(need, other)]
        others = " or ".join(able[:3]) or "others"
        raise UserError(f"{name} is not available for {', '.join(experiments)}: ask for it of {others}.")

    def inputs_read(self, need: Need, experiments: Iterable[str]) -> list[str]:
        """The files that a table or figure reads, without those that an experiment does not have."""
        return [
            path for one in experiments for path in need.inputs(self.runs_read(need, [one]), without=self.lacking(one))
        ]

    def lacking(self, experiment: str) -> list[str]:
        """Files that the runs of an experiment do not have: another task's, or what needs trees and the like."""
        had = {
            "roles.tsv": self.has_trees(experiment),
            ALIGNMENT_FILE: self.has_alignment(experiment),
            OUT_OF_DOMAIN_FILE: self.has_out_of_domain(experiment),
            "causal.tsv": bool(self.experiments[experiment]["causal"]["updates"]),
        }
        others = [name for task, names in ONLY_OF.items() if task != self.task(experiment) for name in names]
        return others + [name for name, there in had.items() if not there]
