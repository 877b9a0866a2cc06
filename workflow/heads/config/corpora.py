"""The kinds of `corpora:` entries in the settings: their keys with types, bounds and descriptions.

The Snakefile imports this module while it is parsed, so nothing heavy may be imported.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import Discriminator, Field, Tag, ValidationInfo

from heads.base.names import OUT_OF_DOMAIN, PAPER_CORPORA, ROLES, SPLITS, WMT
from heads.config.corpus_parts import (
    Alignment,
    ExampleColumns,
    ExampleParts,
    File,
    Labels,
    Parts,
    Treebank,
    keys_of,
)
from heads.config.fields import (
    AsWritten,
    Closed,
    Count,
    CountOrZero,
    Number,
    Share,
    Text,
    YesNo,
    meant,
    one_of,
    required,
    setting,
)
from heads.config.messages import fault, nearest, unknown

Language = Annotated[Text, Field(pattern="^[A-Za-z-]+$"), meant("a language such as en, of letters and hyphens")]


class Cleaning(Closed):
    """Limits of the filters, see `heads.corpus.clean`."""

    max_words: Count = required("pairs with more words on a side are removed")
    max_length_ratio: Annotated[Number, Field(ge=1)] = required("so are those whose ratio of words is above this")
    min_overlap: Share | None = setting(None, "so are subtitles whose relative time overlap is smaller")
    leakage: Annotated[str, one_of("either", "source")] = setting(
        "either", "remove pairs with either side in dev or test, or only those with their source there"
    )


class ExampleCleaning(Closed):
    """Limits of the filters, see `heads.corpus.examples`."""

    max_words: Count = required("examples with more words in a sentence are removed")


class _Entry(AsWritten):
    """What all kinds of corpora have in common."""

    @classmethod
    def check_keys(cls, content: Any, info: ValidationInfo) -> Any:
        """As in every model, after the errors that leave the kind of corpus unclear."""
        keys, either = keys_of(content), {key for kind in KINDS.values() for key in kind.model_fields}
        if strange := [key for key in keys if key not in either]:
            raise fault(unknown(strange[0], either))
        if isinstance(content, Mapping) and "kind" not in keys:
            raise fault(" lacks the key kind: add it.")
        if keys and (kind := content["kind"]) not in [*KINDS]:
            raise fault(f".kind is {kind!r}, which is not a known kind.{nearest(str(kind), KINDS)}")
        if keys and info.context is not None:  # read before its files, whose paths start there
            info.context["folder"] = str(content.get("folder", "."))
        return super().check_keys(content, info)

    @classmethod
    def about_unknown(cls, key: object) -> str:
        """The message about a key that only other kinds of corpora have."""
        return f".{key} is not a setting of this kind of corpus: take it out."

    @property
    def languages(self) -> str:
        """The languages, by which messages name the corpus, such as en-ru."""
        return "-".join(str(getattr(self, side)) for side in ("source", "target") if hasattr(self, side))

    @property
    def parts(self) -> dict[str, Sequence[Any]]:
        """The parts or tables of each split and of `out_of_domain`; none for the embedded grammar."""
        return {split: getattr(self, split, ()) for split in (*SPLITS, OUT_OF_DOMAIN)}

    def has(self, key: str) -> bool:
        """Whether anything is named under a key, which some kinds of corpora do not have."""
        return bool(getattr(self, key, None))


class Pairs(Closed):
    """Number of pairs in each split."""

    train: Count = required("to train on, before cleaning")
    dev: Count = required("to tune on")
    test: Count = required("to score on")


class GrammarCorpus(_Entry):
    """The embedded corpus, with the number of pairs in each split."""

    kind: Annotated[str, one_of("grammar")] = required("grammar: the embedded corpus, English to Russian")
    source: Annotated[str, one_of("en")] = required("the source language")
    target: Annotated[str, one_of("ru")] = required("the target language")
    seed: CountOrZero = required("of the sentences")
    pairs: Pairs = required("number of pairs in each split")
    cleaning: Cleaning = required("what is removed from training")


class GrammarPairsCorpus(_Entry):
    """Premises and hypotheses of the embedded grammar, nine pairs at a time, see `heads.corpus.grammar.inference`."""

    kind: Annotated[str, one_of("grammar_pairs")] = required("grammar_pairs: embedded pairs of premise and hypothesis")
    source: Annotated[str, one_of("en")] = required("the language of the sentences")
    seed: CountOrZero = required("of the sentences")
    pairs: Pairs = required("number of pairs in each split, best a multiple of nine")


Alignments = Mapping[Annotated[str, one_of("dev", "test")], Alignment]
HeldOut = Annotated[Mapping[Annotated[str, one_of("dev", "test", ROLES)], Count], Field(min_length=1)]


class FilesCorpus(_Entry):
    """A corpus in files, by split, and optionally an out-of-domain test set.

    `hold_out` has the sizes of what is cut from train: dev and test if they have no parts, and source lines to parse
    for the roles of heads. `trees` is the treebank that heads are measured on, `parser_trees` the one that a parser is
    trained on. `alignment` is for the lines of dev as they are written: all parts in order, or the lines held out.
    """

    kind: Annotated[str, one_of("files")] = required("files: text on disk, at URLs, or from sacrebleu")
    source: Language = required("the source language, such as en")
    target: Language = required("the target language")
    train: Parts = required("parts to train on, in order")
    cleaning: Cleaning = required("what is removed from training")
    folder: Text = setting(".", "the folder that paths start from")
    dev: Parts = setting((), "to tune on; without any parts, hold_out says how many pairs")
    test: Parts = setting((), "to score on; without any parts, hold_out says how many pairs")
    out_of_domain: Parts = setting((), "an out-of-domain test set, for Michel et al.'s Fig 2")
    hold_out: HeldOut = setting(
        {}, "pairs cut from training for dev and test, and lines for roles, to be parsed if roles.trees names own"
    )
    limit: Count | None = setting(None, "at most this many training pairs are kept, evenly from all parts")
    compared_with: Annotated[str, one_of(*PAPER_CORPORA)] = setting(
        WMT, "the corpus whose numbers in Voita et al. claims are compared with: those of WMT and OpenSubtitles differ"
    )
    lowercase: YesNo = setting(False, "true: lowercase all text, that of test sets too")
    trees: Treebank | None = setting(
        None, "parsed source-language sentences, for the roles of heads; or grammar: N, for N of the embedded grammar"
    )
    parser_trees: File | None = setting(None, "treebank to train Stanza on, if roles.trees names stanza or own")
    alignment: Alignments = setting({}, "an aligner's output for the lines of dev, for alignment heads; and for test")


class ExamplesCorpus(_Entry):
    """Labelled examples in tables, or of the grammar: two sentences and a label, or one sentence and a label.

    `labels` gives the label for every word in the label column, apart from the words in `unlabelled`, whose examples
    are left out. `hold_out` is as in FilesCorpus.
    """

    kind: Annotated[str, one_of("pairs_of_sentences")] = required("pairs_of_sentences: with a label each, in tables")
    source: Language = required("the language of the sentences")
    columns: ExampleColumns = required("the columns of sentences and labels")
    labels: Labels = required("the labels as a list, or by the words that stand for them in the tables")
    train: ExampleParts = required("tables to train on, in order")
    cleaning: ExampleCleaning = required("what is removed from training")
    folder: Text = setting(".", "the folder that paths start from")
    unlabelled: tuple[Text, ...] = setting((), "words in place of a label, whose examples are left out everywhere")
    dev: ExampleParts = setting((), "to tune on; without any parts, hold_out says how many examples")
    test: ExampleParts = setting((), "to score on; without any parts, hold_out says how many examples")
    out_of_domain: ExampleParts = setting((), "an out-of-domain test set, for Michel et al.'s Fig 2")
    hold_out: Annotated[Mapping[Annotated[str, one_of("dev", "test")], Count], Field(min_length=1)] = setting(
        {}, "examples cut from training for dev and test"
    )
    limit: Count | None = setting(None, "at most this many training examples are kept, evenly from all tables")
    trees: Treebank | None = setting(
        None, "parsed sentences of the language, for the roles of heads; or grammar: N, for N of the embedded grammar"
    )


KINDS: dict[str, Any] = {
    "grammar": GrammarCorpus,
    "grammar_pairs": GrammarPairsCorpus,
    "files": FilesCorpus,
    "pairs_of_sentences": ExamplesCorpus,
}


def _kind(value: Any) -> str:
    kind = keys_of(value) and value.get("kind")
    return f"<{kind}>" if isinstance(kind, str) and kind in KINDS else "<files>"


AnyCorpus = GrammarCorpus | GrammarPairsCorpus | FilesCorpus | ExamplesCorpus
Corpus = Annotated[
    Annotated[GrammarCorpus, Tag("<grammar>")]
    | Annotated[GrammarPairsCorpus, Tag("<grammar_pairs>")]
    | Annotated[FilesCorpus, Tag("<files>")]
    | Annotated[ExamplesCorpus, Tag("<pairs_of_sentences>")],
    Discriminator(_kind),
]
