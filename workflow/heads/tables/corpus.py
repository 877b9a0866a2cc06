"""The table of corpora: sizes and lengths of every split, and what cleaning removed."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from heads.base.files import open_text, read_tsv
from heads.base.names import SIDES, SPLITS
from heads.text.encoding import opened
from heads.text.vocabulary import Tokens


def corpus_table(sources: dict[str, tuple[Path, Path]], paper: pd.DataFrame) -> pd.DataFrame:
    """A row for each experiment and split.

    sources: for each experiment the folder of its corpus and the folder of its token files (see `CORPUS_FILES` in
    `heads.tables.needs`). paper: the paper's numbers, added to the training split. Words are separated by blanks. A
    label counts as one word and one subword.
    """
    rows = []
    for experiment, (corpus, bpe) in sources.items():
        for split in SPLITS:
            row: dict[str, object] = {"experiment": experiment, "corpus": corpus.name, "split": split}
            row |= _texts(corpus, split) | _subwords(bpe, split) | _filters(corpus / "filters.tsv", split)
            rows.append(row | _paper(paper, split))
    return pd.DataFrame(rows)


def _texts(corpus: Path, split: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for side in SIDES:
        sentences = words = 0
        with open_text(corpus / f"{split}.{side}.txt") as stream:
            for line in stream:
                sentences += 1
                words += len(line.split())
        row["pairs"] = sentences
        row[f"{side}_words_per_sentence"] = words / sentences if sentences else None
    return row


def _subwords(bpe: Path, split: str) -> dict[str, object]:
    row: dict[str, object] = {}
    for side in SIDES:
        lengths = Tokens(bpe / f"{split}.{side}.safetensors").lengths
        row[f"{side}_subwords_per_sentence"] = float(lengths.mean()) if len(lengths) else None
        row[f"{side}_vocabulary"] = len(opened(bpe / f"{side}.model"))
    return row


def _filters(path: Path, split: str) -> dict[str, object]:
    steps = [row for row in read_tsv(path) if row["split"] == split]
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
