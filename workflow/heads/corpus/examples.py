"""Build the splits of a corpus of labelled examples: read tables, filter in a fixed order, count what filters remove.

A table has one example per line and columns separated by tabs, without quoting: in the files of GLUE, SNLI and
MultiNLI a quotation mark may open and never close, and a CSV reader would then take hundreds of lines for one.

A line of the source text is "premise TAB hypothesis" or a single sentence; the same line of the target text is the
label. An example is removed by the first filter that it fails:

1. `unlabelled`: no label was agreed on (`-` in SNLI). The only filter that dev and test go through too, since such an
   example cannot be scored.
2. `control`: a sentence has a control character, as for translations.
3. `max_words`: a sentence has more than `max_words` words, counted as in `heads.corpus.clean`.
4. `duplicate`: the same sentences with the same label came earlier. The same sentences with another label are kept,
   since annotators gave both.
5. `leakage`: the two sentences are together in dev or test, in either order, ignoring case and differences in white
   space. Sharing one of two sentences is no leak: SNLI and SICK have several hypotheses for one premise, and SICK
   shares sentences between its splits on purpose.
6. `limit`: examples beyond `limit`; those kept are evenly spaced over all.

The output is in Unicode form NFC with single spaces. Memory holds the training examples, 200 MB for MultiNLI.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import chain, islice
from pathlib import Path

from heads.base.files import UserError, normalise, write_lines
from heads.base.names import OUT_OF_DOMAIN, ROLES, SPLITS
from heads.base.scripts import words_in
from heads.config.corpora import ExamplesCorpus, GrammarPairsCorpus
from heads.config.corpus_parts import GrammarExamples, Table
from heads.config.messages import nearest
from heads.corpus.clean import CONTROL, HoldOut, Pair, evenly, filter_table, fingerprint
from heads.corpus.grammar.inference import LABELS, Inference, first_of_split
from heads.corpus.pairs import read_text
from heads.corpus.splits import check_splits, text_name, write_split
from heads.text.labels import spelled

FILTERS = ("unlabelled", "control", "max_words", "duplicate", "leakage", "limit")
TAB = "\t"
SEED = 1
"""Seed of the grammar's pairs, the same as in the corpus that consists of them alone."""

Example = tuple[Sequence[str], str | None]
"""One or two sentences and their label, which is None if the table marks them as unlabelled."""


def build_examples(corpus: ExamplesCorpus, stage: Path, downloads: Path) -> list[dict[str, object]]:
    """Write the texts of all splits and return the rows of the filter table.

    Raises UserError for a fault in the tables, an empty split and a label without training examples.
    """
    tallies = {split: Counter[str]() for split in SPLITS}
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
    """Sentences and labels of the labelled examples of a split, from its tables (unchanged) or from the grammar.

    `tally` counts those `read` and those `unlabelled`. Raises UserError, naming file and line, for a missing or damaged
    file, text that is not UTF-8, a missing column, a line with a different number of columns, a label that the settings
    do not list and an empty sentence.
    """
    for part in corpus.parts[split]:
        if isinstance(part, GrammarExamples):
            examples = _of_grammar(corpus, part, split)
        else:
            examples = _of_table(corpus, part, downloads)
        for sentences, label in examples:
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
        elif max(map(words_in, sentences)) > corpus.cleaning.max_words:
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


def _of_grammar(corpus: ExamplesCorpus, part: GrammarExamples, split: str) -> Iterator[Example]:
    """Pairs of the grammar that are in no other split. Raises UserError if they do not fit the corpus."""
    if len(corpus.columns.sentences) != 2 or not {*LABELS} <= {*corpus.labels.values()}:
        raise UserError(
            f"The {corpus.languages} corpus cannot have pairs of the grammar under {split}: they have two sentences "
            f"and the labels {', '.join(LABELS)}."
        )
    for pair in first_of_split(SEED, "test" if split == OUT_OF_DOMAIN else split, part.grammar):
        yield pair.source.split(TAB), pair.label


def _of_table(corpus: ExamplesCorpus, part: Table, downloads: Path) -> Iterator[Example]:
    lines = (
        (number, text.removesuffix("\r").split(TAB)) for number, text in enumerate(read_text(part.table, downloads), 1)
    )
    first = next(lines, None)
    if first is None:
        raise UserError(f"{part.table} is empty: give a table with one example per line.")
    place = partial(_place, part, first[1])
    sentences, label = [place(column) for column in corpus.columns.sentences], place(corpus.columns.label)
    only = {place(column): word for column, word in part.only.items()}
    width, last = len(first[1]), max(*sentences, label, *only)
    for number, cells in lines if corpus.columns.named else chain([first], lines):
        where = f"{part.table}, line {number}"
        if len(cells) != width and not (part.ragged and last < len(cells) < width):
            raise UserError(f"{where} has {len(cells)} columns, but its first line has {width}: fix it.")
        if all(cells[column] == word for column, word in only.items()):
            yield _example(corpus, [cells[column] for column in sentences], cells[label].strip(), where)


def _place(part: Table, first: Sequence[str], column: int | str) -> int:
    """Position from 0 of a column, by number or by name in the first line. Raises UserError for a missing one."""
    if isinstance(column, int):
        if column < len(first):
            return column
        raise UserError(
            f"{part.table} has {len(first)} columns, so no column {column} counted from 0: correct columns."
        )
    if first.count(column) != 1:
        how = "several columns" if column in first else "no column"
        raise UserError(f"{part.table} has {how} {column!r} in its first line.{nearest(column, first)}")
    return first.index(column)


def _example(corpus: ExamplesCorpus, sentences: Sequence[str], word: str, where: str) -> Example:
    known = (*corpus.labels, *corpus.unlabelled)
    if word not in known:
        word = next((other for other in known if spelled(other) == spelled(word)), word)
    if word in corpus.unlabelled:
        return sentences, None
    if word not in corpus.labels:
        raise UserError(f"{where} has the label {word!r}, which labels does not list: add it there, or to unlabelled.")
    for name, sentence in zip(("premise", "hypothesis"), sentences, strict=False):
        if not sentence.strip():
            raise UserError(f"{where} has an empty {name}: fill it in or take the line out.")
    return sentences, corpus.labels[word]
