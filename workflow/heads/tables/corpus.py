"""Tables of what models are trained on: sizes of corpora, what cleaning removed, and how accurate the parser is."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from heads.base.files import UserError, open_text, read_tsv
from heads.base.names import SIDES, SPLITS
from heads.base.scripts import words_in
from heads.syntax.attachment_scores import attachment_rows
from heads.syntax.conllu import read_conllu
from heads.tables.reading import load_reference
from heads.text.encoding import vocabulary_or_labels
from heads.text.vocabulary import Tokens

PARSER_COLUMNS = ("experiment", "measure", "relation", "gold", "parsed", "correct")
PERCENT = ("precision", "recall", "f1")


def corpus_table(experiments: Sequence[Path], corpora: Sequence[Path]) -> pd.DataFrame:
    """A row for each experiment and split, with the paper's numbers in the training split.

    experiments: folders `results/EXPERIMENT`. corpora: the corpus folder of each; for their files, see `CORPUS_FILES`
    in `heads.tables.catalogue`. Words are counted as in cleaning. A label counts as one word and one subword. Raises
    UserError if there are more of one than of the other.
    """
    paper, rows = load_reference("voita_data.csv"), []
    for experiment, corpus in _paired(experiments, corpora):
        for split in SPLITS:
            row: dict[str, object] = {"experiment": experiment.name, "corpus": corpus.name, "split": split}
            row |= _texts(corpus, split) | _subwords(experiment / "bpe", split) | _filters(corpus, split)
            rows.append(row | _paper(paper, split))
    return pd.DataFrame(rows)


def _paired(experiments: Sequence[Path], corpora: Sequence[Path]) -> list[tuple[Path, Path]]:
    if len(experiments) != len(corpora):
        raise UserError("--experiments and --corpora differ in number: give one corpus folder for each experiment.")
    return list(zip(experiments, corpora, strict=True))


def _texts(corpus: Path, split: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for side in SIDES:
        with open_text(corpus / f"{split}.{side}.txt") as stream:
            sentences = words = 0
            for line in stream:
                sentences, words = sentences + 1, words + words_in(line)
        row["pairs"] = sentences
        row[f"{side}_words_per_sentence"] = words / sentences if sentences else None
    return row


def _subwords(bpe: Path, split: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for side in SIDES:
        lengths = Tokens(bpe / f"{split}.{side}.safetensors").lengths
        row[f"{side}_subwords_per_sentence"] = float(lengths.mean()) if len(lengths) else None
        row[f"{side}_vocabulary"] = len(vocabulary_or_labels(bpe / f"{side}.model"))
    return row


def _filters(corpus: Path, split: str) -> dict[str, object]:
    steps = [row for row in read_tsv(corpus / "filters.tsv") if row["split"] == split]
    return {
        "pairs_before_filters": int(steps[0]["pairs_in"]) if steps else None,
        "pairs_removed_by_filters": sum(int(step["pairs_removed"]) for step in steps) if steps else None,
    }


def _paper(paper: pd.DataFrame, split: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for fact in paper.to_dict("records"):
        name = f"paper_{fact['corpus'].lower()}_{fact['item']}"
        row[name] = fact["value"] if split == "train" else None
        row[f"{name}_tag"] = fact["tag"] if split == "train" else None
    return row


def parser_table(experiments: Sequence[Path], corpora: Sequence[Path]) -> pd.DataFrame:
    """A row for tags (UPOS), heads (UAS), heads with relations (LAS) and each relation, of each experiment.

    experiments: folders `results/EXPERIMENT`, with the gold trees as Stanza parses their words. corpora: the corpus
    folder of each, with the gold trees. Raises UserError if one has no trees, or the numbers of folders differ.
    """
    rows = []
    for experiment, corpus in _paired(experiments, corpora):
        gold, parsed = (read_conllu(path) for path in (corpus / "dev.conllu", experiment / "parser/stanza.conllu"))
        for row in attachment_rows(gold, parsed):
            percent = {f"{name}_percent": 100 * row[name] for name in PERCENT if row[name] is not None}
            rows.append({**row, **percent, "experiment": experiment.name})
    table = pd.DataFrame(rows, columns=[*PARSER_COLUMNS, *(f"{name}_percent" for name in PERCENT)])
    return table.astype(dict.fromkeys(("gold", "parsed", "correct"), int))
