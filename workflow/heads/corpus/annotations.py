"""Gold annotations of a corpus: dependency trees and word alignments, from the grammar or from files beside the text.

The word alignment of a split is three files with the same lines as its text: links in Pharaoh format, and the words of
each side that they number. No pair of dev or test is ever removed, so each line of links stays with its pair.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from heads.base.fetch import open_bytes
from heads.base.files import UserError, atomic_path, normalise, read_lines, write_lines
from heads.config.corpora import AnyCorpus, ExamplesCorpus, FilesCorpus, GrammarCorpus, GrammarPairsCorpus
from heads.config.corpus_parts import FileSpec, GrammarTrees
from heads.corpus.build import grammar_pairs, of_lines
from heads.corpus.examples import grammar_inferences
from heads.corpus.grammar import first_of_split
from heads.corpus.pairs import BROKEN_FILE, read_text
from heads.corpus.splits import check_file
from heads.syntax.conllu import Sentence, read_conllu, write_conllu
from heads.syntax.pharaoh import AlignedPair, Lines, aligned_pairs, line_of, lines_of
from heads.syntax.tokenising import words_of_text

SEED = 1
"""Seed of the sentences used in place of a treebank: the demo's, so that the demo's dev sentences come first."""


def grammar_trees(corpus: GrammarCorpus | GrammarPairsCorpus, split: str, text: Path) -> Iterator[Sentence]:
    """The tree of each line of `text`, from the grammar's stream; those of a premise and its hypothesis in turn."""
    lines = read_lines(text)
    if isinstance(corpus, GrammarCorpus):
        yield from (pair.tree for pair in of_lines(grammar_pairs(corpus, split, with_trees=True), str(text), lines))
    else:
        for pair in of_lines(grammar_inferences(corpus, split), str(text), lines):
            yield pair.premise.tree
            yield pair.hypothesis.tree


def write_treebank(corpus: FilesCorpus | ExamplesCorpus, split: str, downloads: Path, out: Path) -> None:
    """Write the treebank of a corpus in files: the grammar's, or an unpacked copy once it has been read in full.

    For dev this is the treebank under `trees`, for train the one under `parser_trees`. Raises UserError naming the
    treebank if it is missing, damaged, not CoNLL-U or empty.
    """
    learnt = corpus.parser_trees if isinstance(corpus, FilesCorpus) else None
    treebank_file = {"dev": corpus.trees, "train": learnt}.get(split)
    if isinstance(treebank_file, GrammarTrees):
        # No grammar corpus trains on sentences of dev.
        pairs = first_of_split(SEED, "dev", treebank_file.grammar, with_trees=True)
        write_conllu(out, (pair.tree for pair in pairs))
        return
    if treebank_file is None:
        raise UserError(
            f"The {corpus.languages} corpus has no trees for {split}: "
            "name a treebank under trees and ask for dev, or under parser_trees and ask for train."
        )
    check_file(treebank_file, downloads)
    try:
        with open_bytes(treebank_file.on_disk(downloads), treebank_file.member) as treebank:
            content = treebank.read()
    except BROKEN_FILE as error:
        raise UserError(f"{treebank_file} cannot be read to its end ({error}): put a complete file there.") from error
    with atomic_path(out) as temporary:
        temporary.write_bytes(content)
        try:
            sentences = sum(1 for _ in read_conllu(temporary))
        except UserError as error:
            raise UserError(str(error).replace(str(temporary), str(treebank_file))) from None
        if not sentences:
            raise UserError(f"{treebank_file} holds no sentences: name a treebank in CoNLL-U.")


def alignment_of(corpus: AnyCorpus, split: str, texts: Sequence[Path], downloads: Path) -> list[AlignedPair]:
    """The pairs of a split with their words and links; `texts` are the split's source and target files.

    Raises UserError for a corpus without an alignment of the split and, naming file and line, for a fault in one.
    """
    lines = [lines_of(path) for path in texts]
    if isinstance(corpus, GrammarCorpus):
        links, words = _of_grammar(corpus, split, lines)
    elif isinstance(corpus, FilesCorpus):
        links, words = _given(corpus, split, lines, downloads)
    else:
        raise UserError(
            f"The {corpus.languages} corpus has labels in place of translations, so there are no words to align."
        )
    return aligned_pairs(links, lines, words)


def write_alignment(pairs: Sequence[AlignedPair], links: Path, words: Sequence[Path]) -> None:
    """Write one line per pair: the links, and the words of source and target separated by spaces."""
    write_lines(links, [line_of(pair.links) for pair in pairs])
    for path, sentences in zip(words, zip(*((pair.source, pair.target) for pair in pairs), strict=True), strict=True):
        write_lines(path, [" ".join(token.form for token in sentence) for sentence in sentences])


def _of_grammar(corpus: GrammarCorpus, split: str, texts: Sequence[Lines]) -> tuple[Lines, list[Lines]]:
    """Links and words from the grammar's stream."""
    pairs = of_lines(grammar_pairs(corpus, split, with_trees=True), *texts[0])
    links = [line_of(pair.links) for pair in pairs]
    words = [[" ".join(word.form for word in words_of_text(line)) for line in text.lines] for text in texts]
    return Lines("the grammar", links), [Lines("the grammar", lines) for lines in words]


def _given(corpus: FilesCorpus, split: str, texts: Sequence[Lines], downloads: Path) -> tuple[Lines, list[Lines]]:
    """Links and words from the files that the corpus names; without word files, its own text."""
    given = corpus.alignment.get(split)
    if given is None:
        raise UserError(
            f"The {corpus.source}-{corpus.target} corpus has no word alignment of {split}: name a file in Pharaoh "
            f"format under alignment: {{{split}: FILE}}."
        )
    words = [
        text if file is None else _lines(file, downloads, lowercase=corpus.lowercase)
        for text, file in zip(texts, (given.source, given.target), strict=True)
    ]
    return _lines(given.links, downloads), words


def _lines(file: FileSpec, downloads: Path, *, lowercase: bool = False) -> Lines:
    """The lines of a file, normalised like the text of the corpus."""
    check_file(file, downloads)
    lines = [normalise(line) for line in read_text(file, downloads)]
    return Lines(str(file), [line.lower() for line in lines] if lowercase else lines)
