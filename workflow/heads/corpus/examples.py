"""The splits of a corpus of labelled examples, and its filters, in a fixed order, each counted.

A line of the source text is "premise TAB hypothesis", or one sentence alone; that of the target text is the label. An
example is taken out by the first filter that it fails:

1. `unlabelled`: no label was agreed on (`-` in SNLI). The only one that dev and test pass too, since nobody can be
   scored on such an example.
2. `control`: a sentence with a control character, as of translations.
3. `max_words`: a sentence of more than `max_words` words, counted by white space.
4. `duplicate`: the same sentences with the same label came before. The same sentences with another label stay, for
   that is what people said of them.
5. `leakage`: the two sentences stand together in dev or test, in either order and compared in folded case and white
   space. One sentence of two is no leak: SNLI and SICK write several hypotheses for one premise, and SICK shares them
   between its splits on purpose.
6. `limit`: examples beyond `limit`, taken evenly from all.

What is kept is written in Unicode's form NFC with single spaces. Memory holds the training examples,
200 MB of MultiNLI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

from heads.base.files import UserError, write_lines
from heads.base.names import OUT_OF_DOMAIN, ROLES, SPLITS
from heads.config.corpora import ExamplesCorpus, GrammarPairsCorpus
from heads.corpus.clean import CONTROL, HoldOut, Pair, evenly, filter_rows, fingerprint, normalise
from heads.corpus.example_tables import TAB, Example, read_examples
from heads.corpus.grammar.inference import Inference, first_of_split
from heads.corpus.splits import check_splits, text_name, write_split

FILTERS = ("unlabelled", "control", "max_words", "duplicate", "leakage", "limit")


def build_examples(corpus: ExamplesCorpus, stage: Path, downloads: Path) -> list[dict[str, object]]:
    """Write the texts of all splits; give the rows of the table of filters.

    Raises UserError for a fault in the tables, a split that is empty and a label that no training example has.
    """
    tallies = {split: Counter[str]() for split in ("train", "dev", "test")}
    held: set[int] = set()
    for split in ("dev", "test"):
        if split not in corpus.hold_out:
            pairs = list(labelled(read_examples(corpus, split, downloads), tallies[split]))
            held.update(same_sentences(text) for text, _ in pairs)
            write_split(stage, split, pairs)
    candidates = list(clean(corpus, read_examples(corpus, "train", downloads), tallies["train"]))
    chosen = iter(_chosen(candidates, sum(corpus.hold_out.values())))
    for split, size in corpus.hold_out.items():
        pairs = list(islice(chosen, size))
        held.update(same_sentences(text) for text, _ in pairs)
        tallies[split]["read"] = write_split(stage, split, pairs)
    free = [pair for pair in candidates if same_sentences(pair[0]) not in held]
    kept = list(evenly(free, len(free), corpus.limit or len(free)))
    tallies["train"] += Counter(leakage=len(candidates) - len(free), limit=len(free) - len(kept))
    write_split(stage, "train", kept)
    write_lines(stage / text_name(ROLES, "source"), [])
    check_splits(corpus.languages, corpus.hold_out, tallies, FILTERS)
    _check_labels(corpus, {label for _, label in kept})
    rows = filter_rows("train", tallies["train"], FILTERS)
    return rows + [row for split in ("dev", "test") for row in filter_rows(split, tallies[split], FILTERS[:1])]


def build_grammar_pairs(corpus: GrammarPairsCorpus, stage: Path) -> list[dict[str, object]]:
    """Write the texts of all splits of a grammar, which need no cleaning; give the rows of the table of filters."""
    rows = []
    for split in SPLITS:
        pairs = ((pair.text, pair.label) for pair in grammar_inferences(corpus, split))
        rows += filter_rows(split, Counter(read=write_split(stage, split, pairs)), FILTERS[:1])
    write_lines(stage / text_name(ROLES, "source"), [])
    return rows


def grammar_inferences(corpus: GrammarPairsCorpus, split: str) -> Iterator[Inference]:
    """The first `pairs[split]` pairs of a split, whose squares stand in it whole; the same at every call."""
    return first_of_split(corpus.seed, split, getattr(corpus.pairs, split))


def write_out_of_domain(corpus: ExamplesCorpus, stage: Path, downloads: Path) -> int:
    """Write the test set of another domain, and give the number of its examples."""
    return write_split(stage, OUT_OF_DOMAIN, labelled(read_examples(corpus, OUT_OF_DOMAIN, downloads), Counter()))


def labelled(examples: Iterable[Example], tally: Counter[str]) -> Iterator[Pair]:
    """The lines of the examples that have a label; `tally` counts how many were `read` and how many have none."""
    for sentences, label in examples:
        tally["read"] += 1
        if label is None:
            tally["unlabelled"] += 1
        else:
            yield TAB.join(map(normalise, sentences)), label


def clean(corpus: ExamplesCorpus, examples: Iterable[Example], tally: Counter[str]) -> Iterator[Pair]:
    """The lines of those examples that pass filters 1 to 4; `tally` counts what was `read` and what each took."""
    seen: set[Pair] = set()
    for sentences, label in examples:
        tally["read"] += 1
        if label is None:
            tally["unlabelled"] += 1
        elif any(map(CONTROL.search, sentences)):
            tally["control"] += 1
        elif max(len(sentence.split()) for sentence in sentences) > corpus.cleaning.max_words:
            tally["max_words"] += 1
        else:
            pair = TAB.join(map(normalise, sentences)), label
            if pair in seen:
                tally["duplicate"] += 1
            else:
                seen.add(pair)
                yield pair


def same_sentences(text: str) -> int:
    """64 bits of the sentences of a line, whatever their order."""
    return fingerprint("\0".join(sorted(text.casefold().split(TAB))))


def _chosen(candidates: Iterable[Pair], size: int) -> list[Pair]:
    """So many of the candidates, every distinct one with the same chance."""
    chooser = HoldOut(size)
    for text, label in candidates if size else ():
        chooser.offer(text, label)
    return chooser.pairs()


def _check_labels(corpus: ExamplesCorpus, met: set[str]) -> None:
    """Raise UserError for a label that nothing could be learnt of."""
    for label in corpus.labels.values():
        if label not in met:
            raise UserError(
                f"The {corpus.languages} corpus has no training example with the label {label!r}: "
                "take it out of labels, or correct columns.label."
            )
