"""The texts of a plan: files, trees and word alignments of corpora.

The rules use it through `heads.config.plan.Plan`, so that nothing heavy is imported.
"""

import difflib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.names import OUT_OF_DOMAIN, ROLES, SPLITS
from heads.config import corpus_entries
from heads.config.corpora import AnyCorpus
from heads.config.corpus_parts import download_name
from heads.config.distillations import Distillations
from heads.config.experiment import Experiment

PUT_ASIDE = ("trees", "parser_trees", "alignment", OUT_OF_DOMAIN, "compared_with")
"""Keys of a corpus that only the rule that reads them gets, so that changing them does not remake the text."""


class Texts:
    """Corpora and the experiments that use them. Methods raise UserError if there is no answer."""

    def __init__(self, experiments: Mapping[str, Experiment], corpora: Mapping[str, AnyCorpus]) -> None:
        """experiments: resolved. corpora: those of a checked configuration, by name."""
        self.experiments, self.corpora = experiments, corpora
        # Every URL that a corpus names, and the checksums that the settings give, by the name of the downloaded file.
        named = corpora.values()
        self.downloads = {download_name(url): url for corpus in named for url in corpus_entries.downloads_of(corpus)}
        self.checksums = {
            download_name(url): sha256
            for corpus in named
            for url, sha256 in corpus_entries.checksums_of(corpus).items()
        }
        self.distillations = Distillations(corpora)

    # Corpora

    def corpus_of(self, experiment: str) -> str:
        """The folder of the corpus that an experiment uses."""
        return f"results/corpora/{self.experiments[experiment].corpus}"

    def language(self, experiment: str) -> str:
        """The source language of an experiment."""
        return self._corpus(experiment).source

    def _corpus(self, experiment: str) -> AnyCorpus:
        return self.corpora[self.experiments[experiment].corpus]

    def corpus_entry(self, corpus: str, *keys: str) -> dict[str, Any]:
        """The entry of a corpus without the keys in PUT_ASIDE, except these: all that its text is made from."""
        return {key: value for key, value in self.corpora[corpus].written.items() if key not in _aside(*keys)}

    def files_of(self, corpus: str) -> list[str]:
        """Downloads and local files that the text of a corpus is made from."""
        return self._files(corpus, _aside())

    def _files(self, corpus: str, without: Collection[str]) -> list[str]:
        """Downloads and local files of a corpus, but for those under these keys."""
        of_corpus = self.corpora[corpus]
        downloads = [
            f"results/downloads/{download_name(url)}" for url in corpus_entries.downloads_of(of_corpus, without)
        ]
        return downloads + [str(path) for path in corpus_entries.local_files_of(of_corpus, without)]

    def _files_besides(self, corpus: str, without: Collection[str]) -> list[str]:
        """Files of a corpus but for those under these keys, and for those that its text is made from."""
        return sorted({*self._files(corpus, without)} - {*self.files_of(corpus)})

    def out_of_domain_entry(self, corpus: str) -> dict[str, Any]:
        """The entry of a corpus with its out-of-domain test set; raise UserError if it has none."""
        self._check_out_of_domain(corpus)
        return self.corpus_entry(corpus, OUT_OF_DOMAIN)

    def out_of_domain_files(self, corpus: str) -> list[str]:
        """Downloads and local files of a corpus with those of that test set; raise UserError if it has none."""
        self._check_out_of_domain(corpus)
        return self._files(corpus, _aside(OUT_OF_DOMAIN))

    def _check_out_of_domain(self, corpus: str) -> None:
        if not self.corpora[corpus].has(OUT_OF_DOMAIN):
            raise UserError(f"corpora.{corpus} has no out-of-domain test set: name its parts under {OUT_OF_DOMAIN}.")

    def treebank_entry(self, corpus: str, split: str) -> dict[str, Any]:
        """The entry of a corpus with the one treebank that the trees of a split come from."""
        return self.corpus_entry(corpus, _treebank_of(split))

    def treebank_files(self, corpus: str, split: str) -> list[str]:
        """Local files and downloads of that treebank alone."""
        return self._files_besides(corpus, _aside(_treebank_of(split)))

    def alignment_entry(self, corpus: str, split: str) -> dict[str, Any]:
        """The entry of a corpus with the word alignment of one split, if it has one."""
        entry = self.corpus_entry(corpus, "alignment")
        if "alignment" in entry:
            entry["alignment"] = {name: file for name, file in entry["alignment"].items() if name == split}
        return entry

    def alignment_files(self, corpus: str, split: str) -> list[str]:
        """Local files and downloads of that alignment alone."""
        others = {f"alignment.{other}" for other in SPLITS if other != split}
        return self._files_besides(corpus, _aside("alignment") | others)

    def check_there(self, corpus: str, files: Sequence[str], made: Callable[[str], bool]) -> None:
        """Raise UserError, naming the key, if one of these files of a corpus is neither on disk nor made by a rule.

        made: whether a rule makes a path; the rules know what others will make.
        """
        named = [*corpus_entries.files_by_key(self.corpora[corpus])]
        keys = {str(file.path): key for key, file in reversed(named) if file.path}
        for file in files:
            path = Path(file)
            if not path.exists() and not made(file):
                beside = path.parent.iterdir() if path.parent.is_dir() else ()
                close = difflib.get_close_matches(path.name, [one.name for one in beside if str(one) not in keys], n=1)
                raise UserError(
                    f"corpora.{corpus}.{keys[file]} is {file}, which does not exist: correct it or "
                    f"corpora.{corpus}.folder, or put the file there.{f' Did you mean {close[0]}?' if close else ''}"
                )

    # Trees

    def has_gold(self, experiment: str) -> bool:
        """Whether the experiment's corpus has gold trees."""
        return corpus_entries.has_gold(self._corpus(experiment))

    def has_trees(self, experiment: str) -> bool:
        """Whether there are trees to measure syntactic roles on."""
        return bool(self.tree_files(experiment))

    def can_parse(self, experiment: str) -> bool:
        """Whether there is a parser: a folder that the settings name, or a treebank to train one on."""
        corpus = self._corpus(experiment)
        learns = corpus.kind in corpus_entries.GRAMMARS or corpus.has("parser_trees")
        return learns or bool(self.experiments[experiment].parser.model)

    def about_trees(self, experiment: str) -> str:
        """One sentence on the trees that roles.trees names and an experiment cannot have; "" if there are none.

        It may be like an experiment whose corpus has more of them. If it has others, gold is left out silently.
        """
        asked, had = self.experiments[experiment].roles.trees, self.tree_files(experiment)
        lost = [name for name in asked if name not in had and not (had and name == "gold")]
        if not lost:
            return ""
        where, corpus = f"experiments.{experiment}", f"corpora.{self.experiments[experiment].corpus}"
        gold, parser = self.has_gold(experiment), self.can_parse(experiment)
        of_files = self._corpus(experiment).kind == "files"
        model = f"a folder of Stanza models under {where}.parser.model"
        learnt = f"a treebank to train a parser on under {corpus}.parser_trees" if of_files else model
        ways = {
            f"a treebank under {corpus}.trees": not gold and {*lost} != {"own"},
            learnt: not parser and {*lost} != {"gold"},
            f"gold under {where}.roles.trees": gold and not had,
            f"own under {where}.roles.trees": parser and not had,
        }
        what = f"leaves {' and '.join(lost)} out of its roles.trees" if had else "measures no syntactic roles"
        way = " or ".join(each for each, helps in ways.items() if helps)
        return f"{where} {what}, for lack of a treebank in {corpus}: to change that, name {way}."

    def has_alignment(self, experiment: str) -> bool:
        """Whether the experiment's corpus has a word alignment of dev: that of the grammar, or an aligner's."""
        corpus = self._corpus(experiment)
        return corpus.kind == "grammar" or "dev" in getattr(corpus, "alignment", ())

    def if_aligned(self, experiment: str, name: str) -> str | list[str]:
        """The dev file that goes with its word alignment, such as `source.words`; empty without an alignment."""
        return f"{self.corpus_of(experiment)}/dev.{name}.txt" if self.has_alignment(experiment) else []

    def alignment_of(self, experiment: str) -> str:
        """The word alignment of dev; raise UserError if the corpus has none."""
        if not self.has_alignment(experiment):
            raise UserError(
                f"corpora.{self.experiments[experiment].corpus} has no word alignment: name an aligner's output for "
                "its dev text under alignment: {dev: FILE}."
            )
        return f"{self.corpus_of(experiment)}/dev.alignment.txt"

    def has_out_of_domain(self, experiment: str) -> bool:
        """Whether the experiment's corpus has an out-of-domain test set."""
        return self._corpus(experiment).has(OUT_OF_DOMAIN)

    def tree_files(self, experiment: str) -> dict[str, str]:
        """The trees that roles are measured on, by source, the deciding one first; those of roles.trees that there are.

        Empty if there are none: then roles are measured on `text_of_roles`.
        """
        files = {}
        for name in self.experiments[experiment].roles.trees:
            if name == "gold" and self.has_gold(experiment):
                files[name] = self.gold_trees(experiment)
            elif self.can_parse(experiment) and (name == "own" or (name == "stanza" and self.has_gold(experiment))):
                files[name] = f"results/{experiment}/parser/{name}.conllu"
        return files

    def text_of_roles(self, experiment: str) -> list[str]:
        """The file of the sentences that roles are measured on if there are no trees; empty if there are."""
        return [] if self.has_trees(experiment) else [self.parsed_words(experiment, "own")]

    def gold_trees(self, experiment: str) -> str:
        """The gold trees of the corpus; raise UserError if it has none."""
        if not self.has_gold(experiment):
            raise UserError(
                f"corpora.{self.experiments[experiment].corpus} has no gold trees: name a treebank there under "
                f"trees, or own under experiments.{experiment}.roles.trees."
            )
        return f"{self.corpus_of(experiment)}/dev.conllu"

    def with_scored_parser(self, experiments: Iterable[str]) -> list[str]:
        """Experiments whose parser is scored: those that parse the sentences of gold trees."""
        return [experiment for experiment in experiments if "stanza" in self.tree_files(experiment)]

    def parser_model(self, experiment: str) -> str:
        """The folder of Stanza models that the settings name, or of the models to train."""
        return self.experiments[experiment].parser.model or f"results/{experiment}/parser/model"

    def learnt_trees(self, experiment: str) -> str:
        """The treebank that the parser is trained on; raise UserError if the corpus has none."""
        corpus = self._corpus(experiment)
        if corpus.kind not in corpus_entries.GRAMMARS and not corpus.has("parser_trees"):
            raise UserError(
                f"corpora.{self.experiments[experiment].corpus} has no treebank to train a parser on: name one "
                f"under parser_trees, or a folder of Stanza models under experiments.{experiment}.parser.model."
            )
        return f"{self.corpus_of(experiment)}/train.conllu"

    def parsed_words(self, experiment: str, trees: str) -> str:
        """The file whose sentences are parsed: for `stanza` the gold trees, for `own` text of the corpus.

        That text is the lines held out for roles, else the dev set. Raises UserError if `stanza` has no gold trees.
        """
        if trees == "stanza":
            return self.gold_trees(experiment)
        held_out = getattr(self._corpus(experiment), "hold_out", ())
        return f"{self.corpus_of(experiment)}/{ROLES if ROLES in held_out else 'dev'}.source.txt"


def _aside(*keys: str) -> set[str]:
    """The keys in PUT_ASIDE except these."""
    return {*PUT_ASIDE} - {*keys}


def _treebank_of(split: str) -> str:
    """The key of the treebank that the trees of a split come from."""
    return "parser_trees" if split == "train" else "trees"
