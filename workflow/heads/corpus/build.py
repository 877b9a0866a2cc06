"""Build plain text from a `corpora:` entry: `{train,dev,test}.{source,target}.txt` and the filter table.

Beside them it writes `roles.source.txt`: the source lines that a corpus in files holds out for the roles of heads,
which are in no training pair; empty if none is held out. Labelled examples have their own filters, see
`heads.corpus.examples`. Translations are streamed; memory holds the fingerprints of dev and test, the held-out pairs
and a Bloom filter against duplicates.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

from heads.base.files import UserError, normalise, write_lines, write_tsv
from heads.base.names import OUT_OF_DOMAIN, ROLES, SPLITS
from heads.base.pool import chunks, in_order
from heads.config.corpora import ExamplesCorpus, FilesCorpus, GrammarCorpus, GrammarPairsCorpus
from heads.config.corpus_entries import files_of_corpus, parse_corpus
from heads.corpus import grammar
from heads.corpus.clean import (
    FILTERS,
    TABLE_COLUMNS,
    HeldSentences,
    HoldOut,
    Pair,
    clean,
    evenly,
    filter_table,
    fingerprint,
)
from heads.corpus.distinct import SeenBefore
from heads.corpus.examples import build_examples, build_grammar_pairs, write_out_of_domain
from heads.corpus.grammar.inference import Inference
from heads.corpus.pairs import RawPair, open_pairs
from heads.corpus.splits import (
    FILTER_TABLE,
    OUT_OF_DOMAIN_NAMES,
    OUTPUT_NAMES,
    check_file,
    check_splits,
    staged,
    text_name,
    write_split,
)

CANDIDATES = "candidates.txt"
CHUNK_LINES = 5000
# Room for the paper's largest corpus, 26 million pairs of subtitles: 77 MB, used only as it fills. At worst
# one pair in ten thousand is then wrongly taken for a duplicate.
DISTINCT_PAIRS = 32_000_000
WRONG_DUPLICATES = 0.0001

Corpus = GrammarCorpus | FilesCorpus
Found = TypeVar("Found", grammar.Pair, Inference)


def build(entry: Mapping[str, Any], out_folder: Path, downloads: Path, workers: int = 1) -> None:
    """Write the corpus of `entry` to `out_folder`, all files or none; files of URLs are in `downloads`.

    `workers` processes clean the text; the files are the same for any number of them. Raises UserError for a fault in
    the sources and for a split that is empty after cleaning.
    """
    corpus = parse_corpus(entry)
    # Before hours of work, not after.
    for file in files_of_corpus(corpus):
        check_file(file, downloads)
    with staged(out_folder, OUTPUT_NAMES) as stage:
        if isinstance(corpus, ExamplesCorpus):
            rows = build_examples(corpus, stage, downloads)
        elif isinstance(corpus, GrammarPairsCorpus):
            rows = build_grammar_pairs(corpus, stage)
        else:
            rows = build_translations(corpus, stage, downloads, workers)
        write_tsv(stage / FILTER_TABLE, rows, TABLE_COLUMNS)


def build_out_of_domain(entry: Mapping[str, Any], out_folder: Path, downloads: Path) -> None:
    """Write both sides of the out-of-domain test set in the same way as dev and test.

    Raises UserError if the corpus has none, or if its files are faulty or hold no pairs.
    """
    corpus = parse_corpus(entry)
    pair = corpus.languages
    if isinstance(corpus, GrammarCorpus | GrammarPairsCorpus) or not corpus.parts[OUT_OF_DOMAIN]:
        raise UserError(f"The {pair} corpus has no test set of another domain: name its parts under {OUT_OF_DOMAIN}.")
    for file in files_of_corpus(corpus):
        check_file(file, downloads)
    with staged(out_folder, OUT_OF_DOMAIN_NAMES) as stage:
        if isinstance(corpus, ExamplesCorpus):
            count = write_out_of_domain(corpus, stage, downloads)
        else:
            pairs = checked(raw_pairs(corpus, OUT_OF_DOMAIN, downloads), OUT_OF_DOMAIN)
            count = write_split(stage, OUT_OF_DOMAIN, pairs)
        if not count:
            raise UserError(f"The files under {OUT_OF_DOMAIN} of the {pair} corpus hold no pair: give files with text.")


def raw_pairs(corpus: Corpus, split: str, downloads: Path) -> Iterator[RawPair]:
    """The raw pairs of a split, in lower case if the corpus asks for it."""
    if isinstance(corpus, GrammarCorpus):
        numbered = enumerate(grammar_pairs(corpus, split), 1)
        return (RawPair(pair.source, pair.target, "the grammar", line, None) for line, pair in numbered)
    languages = (corpus.source, corpus.target)
    pairs = chain.from_iterable(open_pairs(part, downloads, languages) for part in corpus.parts[split])
    if corpus.lowercase:
        return (pair._replace(source=pair.source.lower(), target=pair.target.lower()) for pair in pairs)
    return pairs


def grammar_pairs(corpus: GrammarCorpus, split: str, *, with_trees: bool = False) -> Iterator[grammar.Pair]:
    """The first `pairs[split]` pairs of a split, the same at every call."""
    return grammar.first_of_split(corpus.seed, split, getattr(corpus.pairs, split), with_trees=with_trees)


def of_lines(pairs: Iterator[Found], text: str, lines: Iterable[str]) -> Iterator[Found]:
    """The pair of each source line of a text as built, where cleaning may have removed lines.

    Raises UserError, naming `text`, at a line that the grammar did not write.
    """
    for number, line in enumerate(lines, 1):
        found = next((pair for pair in pairs if pair.source == line), None)
        if found is None:
            raise UserError(f"{text}, line {number} does not come from this grammar corpus: build the corpus again.")
        yield found


def build_translations(corpus: Corpus, stage: Path, downloads: Path, workers: int) -> list[dict[str, object]]:
    """Write the texts of all splits and return the rows of the filter table."""
    hold_out = corpus.hold_out if isinstance(corpus, FilesCorpus) else {}
    held = HeldSentences()
    tallies = {name: Counter[str]() for name in (*SPLITS, ROLES)}
    for split in ("dev", "test"):
        if split not in hold_out:
            pairs = checked(raw_pairs(corpus, split, downloads), split)
            tallies[split]["read"] = write_split(stage, split, held.remember(pairs))
    chooser = HoldOut(sum(hold_out.values()))
    seen = SeenBefore(DISTINCT_PAIRS, WRONG_DUPLICATES)
    with (stage / CANDIDATES).open("w", encoding="utf-8", newline="\n") as stream:
        raw = raw_pairs(corpus, "train", downloads)
        for source, target in clean(raw, corpus.cleaning, seen, tallies["train"], workers):
            stream.write(f"{source}\t{target}\n")
            chooser.offer(source, target)
    chosen = iter(chooser.pairs())
    for split in ("dev", "test"):
        if split in hold_out:
            pairs = islice(chosen, hold_out[split])
            tallies[split]["read"] = write_split(stage, split, held.remember(pairs))
    # Last, so that dev and test are the same with and without them.
    sources = [source for source, _ in islice(chosen, hold_out.get(ROLES, 0))]
    held.sources.update(map(fingerprint, sources))
    write_lines(stage / text_name(ROLES, "source"), sources)
    tallies[ROLES]["read"] = len(sources)
    write_train(corpus, stage, held, tallies["train"], workers)
    check_splits(corpus.languages, hold_out, tallies, FILTERS)
    return filter_table(tallies, FILTERS)


def write_train(corpus: Corpus, stage: Path, held: HeldSentences, tally: Counter[str], workers: int) -> None:
    """Write the candidates that do not leak, up to the limit; `tally` gains what both filters removed."""
    before = tally["read"] - sum(tally[name] for name in FILTERS)
    limit = corpus.limit if isinstance(corpus, FilesCorpus) else None

    def leak_free() -> Iterator[Pair]:
        with (stage / CANDIDATES).open(encoding="utf-8", newline="\n") as stream:
            search = partial(without_leaks, held, corpus.cleaning.leakage)
            yield from chain.from_iterable(in_order(search, chunks(stream, CHUNK_LINES), workers))

    if limit is None:
        free = written = write_split(stage, "train", leak_free())
    else:
        free = sum(1 for _ in leak_free())
        written = write_split(stage, "train", evenly(leak_free(), free, limit))
    tally["leakage"] = before - free
    tally["limit"] = free - written


def without_leaks(held: HeldSentences, rule: str, lines: list[str]) -> list[Pair]:
    """The pairs, one per line, that are not in dev or test."""
    pairs = (line.removesuffix("\n").split("\t") for line in lines)
    return [(source, target) for source, target in pairs if not held.leaks(source, target, rule)]


def checked(pairs: Iterable[RawPair], split: str) -> Iterator[Pair]:
    """Normalised pairs of dev or test; raises UserError naming the line of an empty side."""
    for raw in pairs:
        source, target = normalise(raw.source), normalise(raw.target)
        if not source or not target:
            side = "target" if source else "source"
            where = f"The {split} pair at line {raw.line} of {raw.file}"
            raise UserError(f"{where} has an empty {side}: take it out or fill it in.")
        yield source, target
