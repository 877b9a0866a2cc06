"""Export an encoder-only model to other formats, and any model to any."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heads.base.files import UserError, write_json, write_text
from heads.base.outputs import new_folder
from heads.interop.agreement import rounding
from heads.interop.bert.exporting import (
    agreement_of_bert,
    answer,
    random_examples,
    refuse_for_bert,
    write_bert,
    write_tokenizer,
)
from heads.interop.bundle import Bundle
from heads.interop.export import export, names_of, refuse_copy, refuse_translator
from heads.interop.export_page import head_table
from heads.interop.families import OURS
from heads.interop.to_onnx import agreement_of_encoder, refuse_for_onnx, write_encoder
from heads.model.encoder_only import ExampleEncoder
from heads.model.equal_units import with_equal_units
from heads.model.folder import HEADS, check_encoder_only, save_folder
from heads.model.head_removal import write_heads
from heads.model.shape import ModelShape
from heads.text.labels import Labels
from heads.text.wordpieces import WordPieces

FORMATS = ("folder", "huggingface", "onnx")

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


def export_encoder(bundle: Bundle, out: Path, form: str = OURS, *, examples: Sequence[str] = ()) -> float | None:
    """Export an encoder, with everything needed to use it, to the new folder `out`.

    examples: lines of one sentence, or of two separated by a tab, on which other formats are compared with our own
    model; by default, random subwords. Returns the largest difference of a log-probability in nats, or of a vector
    component. Raises UserError if `out` already exists, or as `refuse_encoder` does.
    """
    encoder, labels = check_encoder_only(bundle.model, bundle.place), bundle.target
    refuse_encoder(bundle, form)
    assert isinstance(labels, Labels)
    shape, vocabulary = bundle.shape, bundle.source
    if (len(vocabulary), len(labels)) != (shape.source_subwords, shape.target_subwords):
        raise UserError(
            f"{vocabulary.path.parent} has {len(vocabulary)} subwords and {len(labels)} labels, but {bundle.place} was "
            f"trained with {shape.source_subwords} and {shape.target_subwords}: restore those it was trained with."
        )
    refuse_copy(bundle, form)
    facts, difference = {**bundle.facts, **names_of(bundle)}, None
    with new_folder(out) as stage:
        if form == OURS:
            save_folder(encoder, stage, facts, facts["provenance"])
            bundle.write_vocabularies(stage)
        else:
            assert isinstance(vocabulary, WordPieces)
            given = vocabulary.encode(examples) or random_examples(shape)
            difference = _written(form, encoder, vocabulary, labels.words, given, stage)
            write_heads(stage / HEADS, shape)
            write_json(stage / "origin.json", facts["provenance"])
        bundle.write_origin(stage)
        use = _use_of(form, shape, difference)
        write_text(stage / "README.md", encoder_page(shape, facts, labels.words, use))
    return difference


def _written(
    form: str,
    model: ExampleEncoder,
    vocabulary: WordPieces,
    labels: Sequence[str],
    examples: Sequence[Sequence[int]],
    stage: Path,
) -> float:
    """Write an encoder in another format and return its difference from ours; raises ArithmeticError if too large."""
    limit = rounding([answer(model, ids) for ids in examples])
    if form == "onnx":
        write_tokenizer(model.shape, vocabulary, stage)
        write_encoder(model, stage)
        difference = agreement_of_encoder(model, stage, examples)
    else:
        write_bert(with_equal_units(model), vocabulary, labels, stage)
        difference = agreement_of_bert(model, stage, examples)
    if not difference <= limit:
        raise ArithmeticError(f"the output of the exported model differs from ours by {difference}")
    return difference


def refuse_encoder(bundle: Bundle, form: str) -> None:
    """Raise UserError if an encoder cannot be written in a format, or not with the libraries that are installed."""
    if form not in FORMATS:
        raise UserError(f"--format {form} is for translation models: use {' or '.join(FORMATS)}.")
    if form == OURS:
        return
    if not isinstance(bundle.source, WordPieces):
        where = bundle.source.path.parent
        raise UserError(f"{where} has its own subwords, not those of a BERT: export it with --format folder.")
    if form == "onnx":
        refuse_for_onnx(bundle.shape)
    else:
        refuse_for_bert(bundle.shape)


def refuse_format(bundle: Bundle, form: str) -> None:
    """Raise UserError if a model, or a pruned one of it, cannot be written in a format, before any is made."""
    (refuse_encoder if bundle.shape.encoder_only else refuse_translator)(bundle, form)


def export_any(bundle: Bundle, out: Path, form: str, *, sentences: Sequence[str] = (), **options: Any) -> float | None:
    """Export any model: by `export`, with `options`, or by `export_encoder`."""
    if bundle.shape.encoder_only:
        return export_encoder(bundle, out, form, examples=sentences)
    return export(bundle, out, form, sentences=sentences, **options)


def _use_of(form: str, shape: ModelShape, difference: float | None) -> str:
    """Usage section of the README. difference: from our own model, or None if nothing was compared with it."""
    if difference is None:
        return FOLDER_USE
    checked = _CHECKED.format(difference=difference, **(_LABELS if shape.classifies else _VECTORS))
    if form == "onnx":
        return "\n\n".join([_ONNX.format(), checked])
    script = _CLASSIFY if shape.classifies else _EMBED.format(pooled=_POOLED[shape.pooling])
    return "\n\n".join([script, f"{_ZEROS} {checked}"])


def encoder_page(shape: ModelShape, facts: Mapping[str, Any], labels: Sequence[str], use: str) -> str:
    """README of an exported encoder, as Markdown."""
    does = f"classifies as {', '.join(labels)}" if shape.classifies else "turns a sentence into one vector"
    return f"""# {facts["experiment"]}/{facts["run"]}

An encoder that {does}.

## Attention heads left

{head_table(shape)}

Layers are numbered from 0. All other heads are pruned.

## Use

{use}
"""
