"""A BERT of transformers into a folder of ours, and a classifier of ours into one of transformers."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.bert import DESCRIBING, files_of
from heads.base.files import UserError, write_json, write_text, write_tsv
from heads.base.provenance import made_by
from heads.model.folder import HEADS, load_classifier, save_folder
from heads.model.head_removal import COLUMNS, head_rows
from heads.model.shape import ModelShape, facts_of
from heads.text.bytepieces import vocabulary_of
from heads.text.labels import Labels, write_labels
from heads.text.vocabulary import facts_beside
from heads.text.wordpieces import WordPieces, write_word_pieces
from heads.translation.agreement import TOLERANCE
from heads.translation.bert_folder import BertFolder, read_bert
from heads.translation.export import exported_already, new_folder
from heads.translation.export_page import head_table
from heads.translation.from_bert import drawn_anew, labels_of, model_of_bert, order_of
from heads.translation.importing import write_origin
from heads.translation.model_folder import PRETRAINED, VOCABULARIES, vocabulary_folder
from heads.translation.to_bert import agreement_of_bert, write_bert

FORMATS = ("folder", "huggingface")
SOURCE, TARGET = VOCABULARIES


def import_classifier(pretrained: Path, out: Path, labels: Sequence[str] = ()) -> str:
    """Write the model of a folder of transformers, with its word pieces and labels, to the new folder `out`.

    labels: in the order of its classifier, or those that it is to learn; without any, those of its config.json.
    Returned is what `drawn_anew` says of it. Raises UserError for what is no such folder.
    """
    folder = read_bert(pretrained)
    model = model_of_bert(folder, labels)
    with new_folder(out) as stage:
        write_pieces_and_labels(folder, stage, labels)
        facts = {"experiment": "imported", "run": folder.path.resolve().name, "updates": 0, "total_updates": 0}
        save_folder(model, stage, facts, made_by())
        use = "\n\n".join(filter(None, [FOLDER_USE, anew := drawn_anew(folder)]))
        write_text(stage / "README.md", _page(model.shape, facts, Labels(stage / TARGET).words, use))
    return anew


def write_pieces_and_labels(folder: BertFolder, place: Path, labels: Sequence[str] = ()) -> None:
    """Write word pieces and labels into a folder, and into one inside it what the model came with."""
    pieces = folder.pieces
    write_word_pieces(place / SOURCE, folder.word_pieces, [pieces[number] for number in order_of(folder)])
    write_labels(labels_of(folder, labels), place / TARGET)
    write_origin(folder.path, files_of(folder.path), DESCRIBING, place, {})


def export_classifier(folder: Path, out: Path, form: str = "folder", *, examples: Sequence[str] = ()) -> float | None:
    """Write the classifier of a run's folder, with all that classifying with it takes, to the new folder `out`.

    examples: lines of one sentence, or two with a tab between them, on which a format of others is held against our own
    model; random pieces without any. Returned is the largest difference of a log-probability in nats. Raises UserError
    if `out` is already there, and where a format cannot express the model.
    """
    model, place = load_classifier(folder), vocabulary_folder(folder)
    vocabulary, labels = vocabulary_of(place / SOURCE), Labels(place / TARGET)
    expected = (model.shape.source_pieces, model.shape.labels)
    if (len(vocabulary), len(labels)) != expected:
        raise UserError(
            f"{place} has {len(vocabulary)} pieces and {len(labels)} labels, but {folder} was trained with "
            f"{expected[0]} and {expected[1]}: give back those that it was trained with."
        )
    if place == folder.resolve() and form == "folder":
        raise UserError(exported_already(folder))
    if form not in FORMATS:
        raise UserError(f"--format {form} is of models that translate: take {' or '.join(FORMATS)}.")
    facts, difference = facts_of(folder), None
    with new_folder(out) as stage:
        if form == "folder":
            save_folder(model, stage, facts, facts["provenance"])
            for path in (place / name for name in VOCABULARIES):
                for file in (path, facts_beside(path)):
                    shutil.copyfile(file, stage / file.name)
        else:
            if not isinstance(vocabulary, WordPieces):
                raise UserError(f"{folder} has pieces of its own, and no BERT's: export it with --format folder.")
            write_bert(model, vocabulary, labels.words, stage)
            difference = agreement_of_bert(model, stage, vocabulary.encode(examples))
            if not difference <= TOLERANCE:
                raise ArithmeticError(f"the exported model's log-probabilities differ from ours by {difference}")
            write_tsv(stage / HEADS, head_rows(model.shape), COLUMNS)
            write_json(stage / "origin.json", facts["provenance"])
        if (place / PRETRAINED).is_dir():
            shutil.copytree(place / PRETRAINED, stage / PRETRAINED)
        use = FOLDER_USE if difference is None else HUGGINGFACE_USE.format(difference=difference)
        write_text(stage / "README.md", _page(model.shape, facts, labels.words, use))
    return difference


FOLDER_USE = """`source.model` holds its pieces, `target.model` its labels in the order of the logits."""

HUGGINGFACE_USE = """    pip install transformers torch

```python
from transformers import AutoTokenizer, BertForSequenceClassification

tokenizer, model = AutoTokenizer.from_pretrained("."), BertForSequenceClassification.from_pretrained(".")
batch = tokenizer(["A sentence."], ["What it is held against."], return_tensors="pt", padding=True)
print([model.config.id2label[int(row.argmax())] for row in model(**batch).logits])
```

Heads that are cut out are zeros there, as BERT has as many in every layer: it is no smaller and no faster. When it was
written, no log-probability of a label was further than {difference:.1e} nats from those of the model it was made from.
`heads.tsv` lists the heads that are left, `origin.json` where all came from."""


def _page(shape: ModelShape, facts: Mapping[str, Any], labels: Sequence[str], use: str) -> str:
    """What a stranger should know of a classifier, as Markdown."""
    return f"""# {facts.get("experiment", "a run")}/{facts.get("run", "")}

An encoder that tells {", ".join(labels)} apart.

## Attention heads left

{head_table(shape)}

Layers count from 0. The other heads are cut out of the matrices.

## Use

{use}
"""
