"""BERTs with random weights and tokenisers, made and saved by transformers: the oracle for importing them."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from safetensors.torch import load_file, save_file

from heads.model.folder import load_encoder_only
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import PAD

transformers: Any = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install -r envs/dev.txt", exc_type=ImportError
)

WORDS = (
    *("the", "a", "cat", "dog", "white", "saw", "sleep", "un", "##s", "##ing", "##able", "##ed", "##a", "##b"),
    *(".", ",", "'", "-", "5", "b", "caf", "##é", "cafe", "ß"),
)
SUBWORDS = ("[PAD]", "[unused0]", "[UNK]", "[CLS]", "house", "[SEP]", "[MASK]", *WORDS)
"""With special tokens in an order that none of our models uses."""
EXAMPLES = (
    "The cat sleeps.\tA dog saw the houses, unable.",
    "Café ß 5-b xyz!\ta",
    "the white house",
    "sleeping dogs sleep\tthe cat",
)
ALONE = [line.split("\t")[0] for line in EXAMPLES]
LABELS = {0: "neutral", 1: "Entailment", 2: "CONTRADICTION"}
SIZES: dict[str, Any] = {
    "vocab_size": len(SUBWORDS),
    "hidden_size": 12,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 14,
    "max_position_embeddings": 37,
    "id2label": LABELS,
}


def save_tokeniser(folder: Path, *, form: str = "tokenizer.json", lowercase: bool = True) -> Any:
    """Write the vocabulary in one of its two forms and return the tokeniser."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("".join(f"{subword}\n" for subword in SUBWORDS), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": lowercase}), encoding="utf-8"
    )
    tokeniser = transformers.BertTokenizerFast(
        vocab={subword: number for number, subword in enumerate(SUBWORDS)}, do_lower_case=lowercase
    )
    if form == "tokenizer.json":
        (folder / "vocab.txt").unlink()
        tokeniser.backend_tokenizer.save(str(folder / "tokenizer.json"))
    return tokeniser


def save_bert(folder: Path, kind: str = "BertForSequenceClassification", *, pooler: bool = True, **changes: Any) -> Any:
    """Write a model whose weights, norms and biases are all large enough to matter; pooler: for a BertModel only."""
    torch.manual_seed(0)
    options = {} if pooler else {"add_pooling_layer": False}
    model = getattr(transformers, kind)(transformers.BertConfig(**{**SIZES, **changes}), **options).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            value.copy_(torch.randn_like(value) * 0.4 + ("LayerNorm.weight" in name))
    model.save_pretrained(folder)
    return model


def rename(folder: Path, *pairs: tuple[str, str]) -> None:
    """Rewrite the weights of a folder with parts of their names replaced."""
    renamed = {}
    for name, value in load_file(folder / "model.safetensors").items():
        for old, new in pairs:
            name = name.replace(old, new)
        renamed[name] = value
    save_file(renamed, folder / "model.safetensors", metadata={"format": "pt"})


def encoded(tokeniser: Any, lines: Sequence[str]) -> Any:
    """Examples (a tab between two sentences) as a batch for transformers."""
    parts = [line.split("\t") for line in lines]
    rows = [tokeniser(*part) for part in parts]
    return tokeniser.pad(rows, return_tensors="pt")


@torch.no_grad()
def vectors_of(folder: Path) -> NDArray[np.float32]:
    """A sentence encoder's vectors of ALONE, all at once, padded."""
    rows = vocabulary_of(folder / "source.model").encode(ALONE)
    source = torch.full((len(rows), max(map(len, rows)) + 2), PAD)
    for number, row in enumerate(rows):
        source[number, : len(row)] = torch.tensor(row)
    found: NDArray[np.float32] = load_encoder_only(folder)(source, source > PAD)[:, 0].numpy()
    return found
