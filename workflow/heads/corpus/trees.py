"""The gold dependency trees of a corpus: those of the grammar's sentences, or a treebank."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from heads.base.files import UserError, atomic_path, read_lines
from heads.config.corpora import ExamplesCorpus, FilesCorpus, GrammarCorpus, GrammarPairsCorpus
from heads.config.corpus_parts import GrammarTrees
from heads.corpus.build import grammar_pairs, of_lines
from heads.corpus.examples import grammar_inferences
from heads.corpus.fetch import open_bytes
from heads.corpus.grammar import first_of_split
from heads.corpus.pairs import BROKEN_FILE
from heads.corpus.splits import check_file
from heads.syntax.conllu import Sentence, read_conllu, write_conllu

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
