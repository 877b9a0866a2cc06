"""The word alignment of a split: the grammar's own, or an aligner's for a corpus in files.

Either becomes three files with the same lines as the text: links in Pharaoh format, and the words of each side that
they number. No pair of dev or test is ever removed, so each line of links stays with its pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heads.base.files import UserError, write_lines
from heads.config.corpora import AnyCorpus, FilesCorpus, GrammarCorpus
from heads.config.corpus_parts import FileSpec
from heads.corpus.build import grammar_pairs, of_lines
from heads.corpus.clean import normalise
from heads.corpus.pairs import read_text
from heads.corpus.splits import check_file
from heads.syntax.pharaoh import AlignedPair, Lines, aligned_pairs, line_of, lines_of
from heads.syntax.tokenising import words_of_text


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
