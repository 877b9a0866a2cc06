"""Write the gold dependency trees of a split's source sentences, or a treebank instead, as CoNLL-U."""

from typing import Annotated

from heads.base.names import SPLITS
from heads.cli._flags import CorpusEntry, Downloads, OutFile
from heads.config.corpora import GrammarCorpus, GrammarPairsCorpus
from heads.config.corpus_entries import parse_corpus
from heads.corpus.annotations import grammar_trees, write_treebank
from heads.corpus.splits import text_name
from heads.syntax.conllu import write_conllu


def run(
    settings: CorpusEntry,
    split: Annotated[str, {"choices": SPLITS}, "split whose trees to write"],
    downloads: Downloads,
    out: Annotated[OutFile, "CoNLL-U file to write, in the folder of the built corpus"],
) -> None:
    """Write the trees. Raises UserError if the corpus has none for the split."""
    corpus = parse_corpus(settings)
    text = out.parent / text_name(split, "source")
    if isinstance(corpus, GrammarCorpus | GrammarPairsCorpus):
        write_conllu(out, grammar_trees(corpus, split, text))
    else:
        write_treebank(corpus, split, downloads, out)
