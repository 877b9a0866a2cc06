"""Usage section of an exported encoder's README, by format and by what the model outputs."""

from __future__ import annotations

from heads.model.shape import ModelShape

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
real = batch["attention_mask"][:, :, None]
vectors = (model(**batch).last_hidden_state * real).sum(1) / real.sum(1)
vectors = vectors / vectors.norm(dim=-1, keepdim=True)
print(vectors @ vectors.T)
```"""
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


def use_of(form: str, shape: ModelShape, difference: float | None) -> str:
    """Usage section of the README. difference: from our own model, or None if nothing was compared with it."""
    if difference is None:
        return FOLDER_USE
    checked = _CHECKED.format(difference=difference, **(_LABELS if shape.classifies else _VECTORS))
    if form == "onnx":
        return "\n\n".join([_ONNX.format(), checked])
    return "\n\n".join([_CLASSIFY if shape.classifies else _EMBED, f"{_ZEROS} {checked}"])
