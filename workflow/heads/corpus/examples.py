"""Build the splits of a corpus of labelled examples: filter in a fixed order and count what each filter removes.

A line of the source text is "premise TAB hypothesis" or a single sentence; the same line of the target text is the
label. An example is removed by the first filter that it fails:

1. `unlabelled`: no label was agreed on (`-` in SNLI). The only filter that dev and test go through too, since such an
   example cannot be scored.
2. `control`: a sentence has a control character, as for translations.
3. `max_words`: a sentence has more than `max_words` words, counted by white space.
4. `duplicate`: the same sentences with the same label came earlier. The same sentences with another label are kept,
   since annotators gave both.
5. `leakage`: the two sentences are together in dev or test, in either order, ignoring case and differences in white
   space. Sharing one of two sentences is no leak: SNLI and SICK have several hypotheses for one premise, and SICK
   shares sentences between its splits on purpose.
6. `limit`: examples beyond `limit`; those kept are evenly spaced over all.

The output is in Unicode form NFC with single spaces. Memory holds the training examples, 200 MB for MultiNLI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path

from heads.base.files import UserError, write_lines
from heads.base.names import OUT_OF_DOMAIN, ROLES, SPLITS
from heads.config.corpora import ExamplesCorpus, GrammarPairsCorpus
from heads.corpus.clean import CONTROL, HoldOut, Pair, evenly, filter_table, fingerprint, normalise
from heads.corpus.example_tables import TAB, read_examples
from heads.corpus.grammar.inference import Inference, first_of_split
from heads.corpus.splits import check_splits, text_name, write_split

FILTERS = ("unlabelled", "control", "max_words", "duplicate", "leakage", "limit")


def build_examples(corpus: ExamplesCorpus, stage: Path, downloads: Path) -> list[dict[str, object]]:
    """Write the texts of all splits and return the rows of the filter table.

    Raises UserError for a fault in the tables, an empty split and a label without training examples.
    """
    tallies = {split: Counter[str]() for split in ("train", "dev", "test")}
    held: set[int] = set()
    for split in ("dev", "test"):
        if split not in corpus.hold_out:
            pairs = [(line_of(one), label) for one, label in labelled(corpus, split, downloads, tallies[split])]
            held.update(same_sentences(text) for text, _ in pairs)
            write_split(stage, split, pairs)
    candidates = list(clean(corpus, downloads, tallies["train"]))
    chooser = HoldOut(sum(corpus.hold_out.values()))
    for text, label in candidates:
        chooser.offer(text, label)
    chosen = iter(chooser.pairs())
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
    met = {label for _, label in kept}
    if missing := [label for label in corpus.labels.values() if label not in met]:
        raise UserError(
            f"The {corpus.languages} corpus has no training example with the label {missing[0]!r}: "
            "take it out of labels, or correct columns.label."
        )
    return filter_table(tallies, FILTERS)


def build_grammar_pairs(corpus: GrammarPairsCorpus, stage: Path) -> list[dict[str, object]]:
    """Write the texts of all splits of the grammar, unfiltered, and return the rows of the filter table."""
    tallies = {}
    for split in SPLITS:
        pairs = ((pair.source, pair.label) for pair in grammar_inferences(corpus, split))
        tallies[split] = Counter(read=write_split(stage, split, pairs))
    write_lines(stage / text_name(ROLES, "source"), [])
    return filter_table(tallies, FILTERS[:1])


def grammar_inferences(corpus: GrammarPairsCorpus, split: str) -> Iterator[Inference]:
    """The first `pairs[split]` pairs of a split, the same at every call; each square belongs to one split."""
    return first_of_split(corpus.seed, split, getattr(corpus.pairs, split))


def write_out_of_domain(corpus: ExamplesCorpus, stage: Path, downloads: Path) -> int:
    """Write the out-of-domain test set and return the number of its examples."""
    examples = labelled(corpus, OUT_OF_DOMAIN, downloads, Counter())
    return write_split(stage, OUT_OF_DOMAIN, ((line_of(sentences), label) for sentences, label in examples))


def line_of(sentences: Iterable[str]) -> str:
    """The source line of an example."""
    return TAB.join(map(normalise, sentences))


def labelled(
    corpus: ExamplesCorpus, split: str, downloads: Path, tally: Counter[str]
) -> Iterator[tuple[Sequence[str], str]]:
    """Sentences and labels of the labelled examples; `tally` counts those `read` and those `unlabelled`."""
    for sentences, label in read_examples(corpus, split, downloads):
        tally["read"] += 1
        if label is None:
            tally["unlabelled"] += 1
        else:
            yield sentences, label


def clean(corpus: ExamplesCorpus, downloads: Path, tally: Counter[str]) -> Iterator[Pair]:
    """Source and target lines of train that pass filters 1 to 4; `tally` counts examples `read` and removed."""
    seen: set[Pair] = set()
    for sentences, label in labelled(corpus, "train", downloads, tally):
        if any(map(CONTROL.search, sentences)):
            tally["control"] += 1
        elif max(len(sentence.split()) for sentence in sentences) > corpus.cleaning.max_words:
            tally["max_words"] += 1
        else:
            pair = line_of(sentences), label
            if pair in seen:
                tally["duplicate"] += 1
            else:
                seen.add(pair)
                yield pair


def same_sentences(text: str) -> int:
    """64-bit fingerprint of the sentences of a line, whatever their order."""
    return fingerprint("\0".join(sorted(text.casefold().split(TAB))))
