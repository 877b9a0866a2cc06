"""Import a BERT of transformers into a folder of ours, and export an encoder-only model to other formats."""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.bert import DESCRIBING, files_of
from heads.base.files import UserError, write_json, write_text, write_tsv
from heads.base.provenance import made_by
from heads.model.encoder import Encoder
from heads.model.equal_units import with_equal_units
from heads.model.folder import HEADS, load_alone, save_folder
from heads.model.head_removal import COLUMNS, head_rows
from heads.model.shape import ModelShape, facts_of, shape_of
from heads.text.encoding import vocabulary_of
from heads.text.labels import Labels, write_labels
from heads.text.wordpieces import WordPieces, write_word_pieces
from heads.translation.agreement import rounding
from heads.translation.authors_search import not_used
from heads.translation.bert_folder import BertFolder, passed_over, read_bert
from heads.translation.export import copy_vocabularies, export, exported_already, new_folder, refuse_translator
from heads.translation.export_page import head_table
from heads.translation.from_bert import (
    CLASSIFIER,
    EMBEDDING,
    drawn_anew,
    labels_of,
    lacking,
    model_of_bert,
    order_of,
    sentence_encoder_of_bert,
)
from heads.translation.importing import write_origin
from heads.translation.model_folder import PRETRAINED, VOCABULARIES, vocabulary_folder
from heads.translation.to_bert import (
    agreement_of_bert,
    answer,
    random_examples,
    refuse_for_bert,
    write_bert,
    write_tokenizer,
)
from heads.translation.to_onnx import agreement_of_encoder, refuse_for_onnx, write_encoder

FORMATS = ("folder", "huggingface", "onnx")
SOURCE, TARGET = VOCABULARIES

FOLDER_USE = """`source.model` holds the subwords, `target.model` the labels in the order of the logits."""
_ZEROS = (
    """Pruned heads are zeros, as every layer of a BERT has the same number: the model is no smaller and no faster."""
)
_CHECKED = """When it was written, no {what} differed by more than {difference:.1e}{unit} from {those} of the
model it was made from. `heads.tsv` lists the remaining heads, and `origin.json` says how the model was made."""
_LABELS = {"what": "log-probability of a label", "unit": " nats", "those": "those"}
_VECTORS = {"what": "part of a vector (of length 1)", "unit": "", "those": "that"}
_CLASSIFY = """    pip install transformers torch

```python
from transformers import AutoTokenizer, BertForSequenceClassification

tokenizer, model = AutoTokenizer.from_pretrained("."), BertForSequenceClassification.from_pretrained(".")
batch = tokenizer(["A sentence."], ["What it is held against."], return_tensors="pt", padding=True)
print([model.config.id2label[int(row.argmax())] for row in model(**batch).logits])
```"""
_EMBED = """    pip install transformers torch

```python
from transformers import AutoModel, AutoTokenizer

tokenizer, model = AutoTokenizer.from_pretrained("."), AutoModel.from_pretrained(".", add_pooling_layer=False)
batch = tokenizer(["A sentence.", "One that is longer."], return_tensors="pt", padding=True)
{pooled}
vectors = vectors / vectors.norm(dim=-1, keepdim=True)
print(vectors @ vectors.T)
```"""
_POOLED = {
    "mean": """real = batch["attention_mask"][:, :, None]
vectors = (model(**batch).last_hidden_state * real).sum(1) / real.sum(1)""",
    "cls": """vectors = model(**batch).last_hidden_state[:, 0]""",
    "max": """padding = batch["attention_mask"][:, :, None] == 0
vectors = model(**batch).last_hidden_state.masked_fill(padding, -float("inf")).amax(1)""",
}
_ONNX = """    pip install onnxruntime tokenizers numpy

```python
import numpy as np
from onnxruntime import InferenceSession
from tokenizers import Tokenizer

tokenizer, session = Tokenizer.from_file("tokenizer.json"), InferenceSession("encoder.onnx")
tokenizer.enable_padding(pad_id=0)
batch = tokenizer.encode_batch(["A sentence.", "One that is longer."])
ids = np.array([one.ids for one in batch])
print(session.run(None, {{"source": ids, "source_mask": ids > 0}})[0])
```

Pruned heads are removed from its matrices."""


def import_bert(pretrained: Path, out: Path, labels: Sequence[str] = ()) -> str:
    """Import the BERT in a transformers folder, with its WordPieces and labels, into the new folder `out`.

    labels: in the order of its classifier, or those that it is to learn; by default, those of its config.json. A model
    without a classifier embeds sentences if no labels are given. Returns what has to be said about it: parts that are
    drawn anew, settings that are not used. Raises UserError if it is not such a folder.
    """
    folder = read_bert(pretrained)
    embeds = not labels and CLASSIFIER in lacking(folder)
    model: Encoder = sentence_encoder_of_bert(folder) if embeds else model_of_bert(folder, labels)
    note = not_used(passed_over(folder)) if embeds else drawn_anew(folder)
    with new_folder(out) as stage:
        write_subwords_and_labels(folder, stage, EMBEDDING if embeds else labels_of(folder, labels))
        facts = {"experiment": "imported", "run": folder.path.resolve().name, "updates": 0, "total_updates": 0}
        save_folder(model, stage, facts, made_by())
        use = "\n\n".join(filter(None, [FOLDER_USE, note]))
        write_text(stage / "README.md", _page(model.shape, facts, Labels(stage / TARGET).words, use))
    return note


def write_subwords_and_labels(folder: BertFolder, place: Path, labels: Sequence[str]) -> None:
    """Write WordPieces and labels into a folder, and the model's original files into a subfolder."""
    subwords = folder.subwords
    write_word_pieces(place / SOURCE, folder.word_pieces, [subwords[number] for number in order_of(folder)])
    write_labels(labels, place / TARGET)
    write_origin(folder.path, files_of(folder.path), DESCRIBING, place, {})


def export_alone(folder: Path, out: Path, form: str = "folder", *, examples: Sequence[str] = ()) -> float | None:
    """Export the encoder of a run's folder, with everything needed to use it, to the new folder `out`.

    examples: lines of one sentence, or of two separated by a tab, on which other formats are compared with our own
    model; by default, random subwords. Returns the largest difference of a log-probability in nats, or of a vector
    component. Raises UserError if `out` already exists, or as `refuse_encoder` does.
    """
    model, place = load_alone(folder), vocabulary_folder(folder)
    refuse_encoder(model.shape, place, form)
    vocabulary, labels = vocabulary_of(place / SOURCE), Labels(place / TARGET)
    expected = (model.shape.source_subwords, model.shape.target_subwords)
    if (len(vocabulary), len(labels)) != expected:
        raise UserError(
            f"{place} has {len(vocabulary)} subwords and {len(labels)} labels, but {folder} was trained with "
            f"{expected[0]} and {expected[1]}: restore those it was trained with."
        )
    if place == folder.resolve() and form == "folder":
        raise UserError(exported_already(folder))
    facts, difference = facts_of(folder), None
    with new_folder(out) as stage:
        if form == "folder":
            save_folder(model, stage, facts, facts["provenance"])
            copy_vocabularies(place, stage, with_facts=True)
        else:
            assert isinstance(vocabulary, WordPieces)
            given = vocabulary.encode(examples) or random_examples(model.shape)
            limit = rounding([answer(model, ids) for ids in given])
            if form == "onnx":
                write_tokenizer(model.shape, vocabulary, stage)
                write_encoder(model, stage)
                difference = agreement_of_encoder(model, stage, given)
            else:
                write_bert(with_equal_units(model), vocabulary, labels.words, stage)
                difference = agreement_of_bert(model, stage, given)
            if not difference <= limit:
                raise ArithmeticError(f"the output of the exported model differs from ours by {difference}")
            write_tsv(stage / HEADS, head_rows(model.shape), COLUMNS)
            write_json(stage / "origin.json", facts["provenance"])
        if (place / PRETRAINED).is_dir():
            shutil.copytree(place / PRETRAINED, stage / PRETRAINED)
        use = _use_of(form, model.shape, difference)
        write_text(stage / "README.md", _page(model.shape, facts, labels.words, use))
    return difference


def refuse_encoder(shape: ModelShape, place: Path, form: str) -> None:
    """Raise UserError if an encoder cannot be written in a format, or not with the libraries that are installed.

    place: the folder of its subwords.
    """
    if form not in FORMATS:
        raise UserError(f"--format {form} is for translation models: use {' or '.join(FORMATS)}.")
    if form == FORMATS[0]:
        return
    if not isinstance(vocabulary_of(place / SOURCE), WordPieces):
        raise UserError(f"{place} has its own subwords, not those of a BERT: export it with --format folder.")
    if form == "onnx":
        refuse_for_onnx(shape)
    else:
        refuse_for_bert(shape)


def refuse_format(folder: Path, form: str) -> None:
    """Raise UserError if the model of a folder, or a pruned one, cannot be written in a format, before any is made."""
    shape, place = shape_of(folder), vocabulary_folder(folder)
    (refuse_encoder if shape.alone else refuse_translator)(shape, place, form)


def export_any(folder: Path, out: Path, form: str, *, sentences: Sequence[str] = (), **options: Any) -> float | None:
    """Export any model of a run's folder to the new folder `out`: by `export`, with `options`, or by `export_alone`."""
    if shape_of(folder).alone:
        return export_alone(folder, out, form, examples=sentences)
    return export(folder, out, form, sentences=sentences, **options)


def _use_of(form: str, shape: ModelShape, difference: float | None) -> str:
    """Usage section of the README. difference: from our own model, or None if nothing was compared with it."""
    if difference is None:
        return FOLDER_USE
    checked = _CHECKED.format(difference=difference, **(_LABELS if shape.classifies else _VECTORS))
    if form == "onnx":
        return "\n\n".join([_ONNX.format(), checked])
    script = _CLASSIFY if shape.classifies else _EMBED.format(pooled=_POOLED[shape.pooling])
    return "\n\n".join([script, f"{_ZEROS} {checked}"])


def _page(shape: ModelShape, facts: Mapping[str, Any], labels: Sequence[str], use: str) -> str:
    """README of an exported encoder, as Markdown."""
    does = f"classifies as {', '.join(labels)}" if shape.classifies else "turns a sentence into one vector"
    return f"""# {facts.get("experiment", "a run")}/{facts.get("run", "")}

An encoder that {does}.

## Attention heads left

{head_table(shape)}

Layers are numbered from 0. All other heads are pruned.

## Use

{use}
"""
