"""The texts of a plan: files, trees and word alignments of corpora, and what pretrained models translate for them.

The rules use it through `heads.config.plan.Plan`, so that nothing heavy is imported.
"""

import difflib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.base.names import BESIDE, OUT_OF_DOMAIN, REFERENCES, ROLES, UNPRUNED
from heads.base.packaged import slug
from heads.config import corpus_entries
from heads.config.corpus_parts import Distilled, download_name
from heads.interop.formats import format_of

PUT_ASIDE = ("trees", "parser_trees", "alignment", OUT_OF_DOMAIN, "compared_with")
"""Keys of a corpus that only the rule that reads them gets, so that changing them does not remake the text."""


class Texts:
    """Corpora and the experiments that use them. Methods raise UserError if there is no answer."""

    def __init__(self, experiments: Mapping[str, Mapping[str, Any]], entries: Mapping[str, Mapping[str, Any]]) -> None:
        """experiments: resolved. entries: the corpora of a checked configuration, by name."""
        self.experiments, self.corpora = experiments, entries
        # Every URL that a corpus names, and the checksums that the settings give, by the name of the downloaded file.
        named = entries.values()
        self.downloads = {download_name(url): url for entry in named for url in corpus_entries.downloads_of(entry)}
        self.checksums = {
            download_name(url): sha256 for entry in named for url, sha256 in corpus_entries.checksums_of(entry).items()
        }
        self.distillations = Distillations(entries)

    # Corpora

    def corpus_of(self, experiment: str) -> str:
        """The folder of the corpus that an experiment uses."""
        return f"results/corpora/{self.experiments[experiment]['corpus']}"

    def language(self, experiment: str) -> str:
        """The source language of an experiment."""
        return str(self._entry(experiment)["source"])

    def _entry(self, experiment: str) -> Mapping[str, Any]:
        return self.corpora[self.experiments[experiment]["corpus"]]

    def corpus_entry(self, corpus: str, *keys: str) -> dict[str, Any]:
        """The entry of a corpus without the keys in PUT_ASIDE, except these: all that its text is made from."""
        aside = {*PUT_ASIDE} - {*keys}
        return {key: value for key, value in self.corpora[corpus].items() if key not in aside}

    def out_of_domain_entry(self, corpus: str) -> dict[str, Any]:
        """The entry of a corpus with its out-of-domain test set; raise UserError if it has none."""
        if OUT_OF_DOMAIN not in self.corpora[corpus]:
            raise UserError(f"corpora.{corpus} has no out-of-domain test set: name its parts under {OUT_OF_DOMAIN}.")
        return self.corpus_entry(corpus, OUT_OF_DOMAIN)

    def treebank_entry(self, corpus: str, split: str) -> dict[str, Any]:
        """The entry of a corpus with the one treebank that the trees of a split come from."""
        return self.corpus_entry(corpus, "parser_trees" if split == "train" else "trees")

    def treebank_files(self, corpus: str, split: str) -> list[str]:
        """Local files and downloads of that treebank alone."""
        return self._files_besides(corpus, self.treebank_entry(corpus, split))

    def alignment_entry(self, corpus: str, split: str) -> dict[str, Any]:
        """The entry of a corpus with the word alignment of one split, if it has one."""
        entry = self.corpus_entry(corpus, "alignment")
        if "alignment" in entry:
            entry["alignment"] = {name: file for name, file in entry["alignment"].items() if name == split}
        return entry

    def alignment_files(self, corpus: str, split: str) -> list[str]:
        """Local files and downloads of that alignment alone."""
        return self._files_besides(corpus, self.alignment_entry(corpus, split))

    def _files_besides(self, corpus: str, entry: Mapping[str, Any]) -> list[str]:
        """Files that an entry of a corpus names, without those that its text is made from."""
        return sorted({*self.files_of(entry)} - {*self.files_of(self.corpus_entry(corpus))})

    def check_there(self, corpus: str, files: Sequence[str], made: Callable[[str], bool]) -> None:
        """Raise UserError, naming the key, if one of these files of a corpus is neither on disk nor made by a rule.

        made: whether a rule makes a path; the rules know what others will make.
        """
        named = corpus_entries.files_by_key(corpus_entries.parse_corpus(self.corpora[corpus]))
        keys = {str(file.path): key for key, file in reversed([*named]) if file.path}
        for file in files:
            path = Path(file)
            if not path.exists() and not made(file):
                beside = path.parent.iterdir() if path.parent.is_dir() else ()
                close = difflib.get_close_matches(path.name, [one.name for one in beside if str(one) not in keys], n=1)
                raise UserError(
                    f"corpora.{corpus}.{keys[file]} is {file}, which does not exist: correct it or "
                    f"corpora.{corpus}.folder, or put the file there.{f' Did you mean {close[0]}?' if close else ''}"
                )

    def files_of(self, entry: Mapping[str, Any]) -> list[str]:
        """Downloads and local files that an entry names."""
        downloads = [f"results/downloads/{download_name(url)}" for url in corpus_entries.downloads_of(entry)]
        return downloads + [str(path) for path in corpus_entries.local_files_of(entry)]

    # Trees

    def has_gold(self, experiment: str) -> bool:
        """Whether the experiment's corpus has gold trees."""
        return corpus_entries.has_gold(self._entry(experiment))

    def has_trees(self, experiment: str) -> bool:
        """Whether there are trees to measure syntactic roles on."""
        return bool(self.tree_files(experiment))

    def can_parse(self, experiment: str) -> bool:
        """Whether there is a parser: a folder that the settings name, or a treebank to train one on."""
        entry = self._entry(experiment)
        learns = entry["kind"] in corpus_entries.GRAMMARS or "parser_trees" in entry
        return learns or bool(self.experiments[experiment]["parser"]["model"])

    def about_trees(self, experiment: str) -> str:
        """One sentence on the trees that roles.trees names and an experiment cannot have; "" if there are none.

        It may be like an experiment whose corpus has more of them. If it has others, gold is left out silently.
        """
        asked, had = self.experiments[experiment]["roles"]["trees"], self.tree_files(experiment)
        lost = [name for name in asked if name not in had and not (had and name == "gold")]
        if not lost:
            return ""
        where, corpus = f"experiments.{experiment}", f"corpora.{self.experiments[experiment]['corpus']}"
        gold, parser = self.has_gold(experiment), self.can_parse(experiment)
        of_files = self._entry(experiment)["kind"] == "files"
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
        entry = self._entry(experiment)
        return entry["kind"] == "grammar" or "dev" in entry.get("alignment", {})

    def if_aligned(self, experiment: str, name: str) -> str | list[str]:
        """The dev file that goes with its word alignment, such as `source.words`; empty without an alignment."""
        return f"{self.corpus_of(experiment)}/dev.{name}.txt" if self.has_alignment(experiment) else []

    def alignment_of(self, experiment: str) -> str:
        """The word alignment of dev; raise UserError if the corpus has none."""
        if not self.has_alignment(experiment):
            raise UserError(
                f"corpora.{self.experiments[experiment]['corpus']} has no word alignment: name an aligner's output for "
                "its dev text under alignment: {dev: FILE}."
            )
        return f"{self.corpus_of(experiment)}/dev.alignment.txt"

    def has_out_of_domain(self, experiment: str) -> bool:
        """Whether the experiment's corpus has an out-of-domain test set."""
        return OUT_OF_DOMAIN in self._entry(experiment)

    def tree_files(self, experiment: str) -> dict[str, str]:
        """The trees that roles are measured on, by source, the deciding one first; those of roles.trees that there are.

        Empty if there are none: then roles are measured on `text_of_roles`.
        """
        files = {}
        for name in self.experiments[experiment]["roles"]["trees"]:
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
                f"corpora.{self.experiments[experiment]['corpus']} has no gold trees: name a treebank there under "
                f"trees, or own under experiments.{experiment}.roles.trees."
            )
        return f"{self.corpus_of(experiment)}/dev.conllu"

    def with_scored_parser(self, experiments: Iterable[str]) -> list[str]:
        """Experiments whose parser is scored: those that parse the sentences of gold trees."""
        return [experiment for experiment in experiments if "stanza" in self.tree_files(experiment)]

    def parser_model(self, experiment: str) -> str:
        """The folder of Stanza models that the settings name, or of the models to train."""
        return self.experiments[experiment]["parser"]["model"] or f"results/{experiment}/parser/model"

    def learnt_trees(self, experiment: str) -> str:
        """The treebank that the parser is trained on; raise UserError if the corpus has none."""
        entry = self._entry(experiment)
        if entry["kind"] not in corpus_entries.GRAMMARS and "parser_trees" not in entry:
            raise UserError(
                f"corpora.{self.experiments[experiment]['corpus']} has no treebank to train a parser on: name one "
                f"under parser_trees, or a folder of Stanza models under experiments.{experiment}.parser.model."
            )
        return f"{self.corpus_of(experiment)}/train.conllu"

    def parsed_words(self, experiment: str, trees: str) -> str:
        """The file whose sentences are parsed: for `stanza` the gold trees, for `own` text of the corpus.

        That text is the lines held out for roles, else the dev set. Raises UserError if `stanza` has no gold trees.
        """
        if trees == "stanza":
            return self.gold_trees(experiment)
        held_out = self._entry(experiment).get("hold_out", {})
        return f"{self.corpus_of(experiment)}/{ROLES if ROLES in held_out else 'dev'}.source.txt"


class Distillations:
    """The distilled parts of corpora by the name of their files, and their models by the name of a folder."""

    def __init__(self, corpora: Mapping[str, Mapping[str, Any]]) -> None:
        """corpora: entries by name.

        Raises UserError if a model would have the folder of another or of logs, and as `writer_of_test` does.
        """
        self.writers = {corpus: writer_of_test(corpus, entry) for corpus, entry in corpora.items()}
        self.parts = {
            name: part for entry in corpora.values() for name, part in corpus_entries.distilled_of(entry).items()
        }
        self.models: dict[str, str] = {}
        for part in self.parts.values():
            name = slug(part.distilled_by)
            if name in BESIDE:
                raise UserError(
                    f"distilled_by: {part.distilled_by} would lie in results/models/{name}, which has another use: "
                    "rename it."
                )
            other = self.models.setdefault(name, part.distilled_by)
            if other != part.distilled_by:
                raise UserError(
                    f"distilled_by: {other} and {part.distilled_by} would share a folder: rename one of the two."
                )

    def files_of_model(self, model: str) -> list[str]:
        """The files that a model is imported from, by the name of its folder in results/models.

        Raises UserError if there is no such model.
        """
        try:
            found, folder = format_of(self.models[model])
        except UserError as error:
            raise UserError(f"distilled_by: {error}") from None
        return [str(path) for path in found.files(folder)]

    def model_of(self, part: str) -> str:
        """The folder of the model that translates a part."""
        return f"results/models/{slug(self.parts[part].distilled_by)}"

    def text_of(self, part: str) -> list[str]:
        """The file of the sentences to translate, local or downloaded; empty if they are documentation."""
        source = self.parts[part].source
        return [] if source is None else [str(source.on_disk(Path("results/downloads")))]

    def member_of(self, part: str) -> str:
        """The name of the sentences' file in an archive; empty if it is in none."""
        source = self.parts[part].source
        return (source and source.member) or ""

    def against(self, experiment: Mapping[str, Any]) -> str:
        """What a resolved experiment is scored against: references, or the model that wrote the targets of test."""
        writer = self.writers[experiment["corpus"]]
        if not writer:
            return REFERENCES
        return UNPRUNED if writer == experiment["baseline"]["pretrained"] else f"model {writer}"


def writer_of_test(corpus: str, entry: Mapping[str, Any]) -> str:
    """The model that wrote the targets of a test set, which may be cut from train; "" if people did.

    Raises UserError if there are several writers, since a score would be against all of them at once.
    """
    parts = corpus_entries.parse_corpus(entry).parts
    tested = parts["test"] or parts["train"]
    writers = {part.distilled_by if isinstance(part, Distilled) else "" for part in tested}
    if len(writers) > 1:
        raise UserError(
            f"corpora.{corpus}.test has targets by several writers, so a score would measure neither quality nor "
            "fidelity: name parts there that are all distilled_by one model, or none of them (without any, test is cut "
            "from train)."
        )
    return min(writers, default="")
