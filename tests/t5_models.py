"""T5s of all kinds with random weights and tokenisers, saved by transformers: the import's oracle."""

import io
import json
from pathlib import Path
from typing import Any

import sentencepiece
import torch
from torch import Tensor
from transformers.models.mt5 import modeling_mt5
from transformers.models.t5 import modeling_t5
from transformers.models.umt5 import modeling_umt5

from marian_models import SENTENCES, changed, transformers

PREFIX = "translate English to German: "
TEXTS = [*SENTENCES["source"], *SENTENCES["target"]]
T5, MT5, UMT5 = (
    getattr(transformers, name)
    for name in ("T5ForConditionalGeneration", "MT5ForConditionalGeneration", "UMT5ForConditionalGeneration")
)
GATED = {"feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}
SIZES = {"d_model": 12, "d_kv": 5, "d_ff": 14, "num_layers": 2, "num_decoder_layers": 3, "num_heads": 3}
KINDS: dict[str, tuple[Any, dict[str, Any]]] = {
    "T5": (T5, {}),
    "T5, shallow, few buckets": (
        T5,
        {
            "num_layers": 4,
            "num_decoder_layers": 1,
            "relative_attention_num_buckets": 8,
            "relative_attention_max_distance": 5,
        },
    ),
    "T5 1.1, wide heads": (T5, {**GATED, "d_kv": 7}),
    "T5 1.1, swish": (T5, {**GATED, "feed_forward_proj": "gated-silu", "layer_norm_epsilon": 1e-3}),
    "FLAN-T5, 6 heads": (T5, {**GATED, "num_heads": 6, "d_kv": 4}),
    "mT5": (MT5, GATED),
    "UMT5": (UMT5, {**GATED, "num_decoder_layers": 2}),
    "MADLAD-400": (T5, {**GATED, "pad_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 0}),
    "ByT5": (T5, {**GATED, "num_layers": 6, "num_decoder_layers": 2}),
    "tokenizer.json alone": (T5, {}),
}
MORE_ROWS = 9
"""Rows of the matrices that no subword has."""
NORMS: tuple[Any, ...] = (modeling_t5.T5LayerNorm, modeling_mt5.MT5LayerNorm, modeling_umt5.UMT5LayerNorm)


def in_double(norm: Any, states: Tensor) -> Tensor:
    """T5's norm by its formula; transformers takes the mean in single precision whatever the model is in."""
    found: Tensor = norm.weight * states / (states.square().mean(-1, keepdim=True) + norm.variance_epsilon).sqrt()
    return found


def save_subwords(folder: Path, kind: str) -> int:
    """Write the tokeniser of a folder as on the hub, and return the number of its subwords."""
    folder.mkdir(parents=True, exist_ok=True)
    if kind == "ByT5":
        (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "ByT5Tokenizer"}))
        return 384
    madlad, made = kind == "MADLAD-400", io.BytesIO()
    pad, end, unknown = (1, 2, 0) if madlad else (0, 1, 2)
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*TEXTS, PREFIX] * 20),
        model_writer=made,
        vocab_size=110,
        model_type="unigram",
        pad_id=pad,
        eos_id=end,
        unk_id=unknown,
        bos_id=-1,
        pad_piece="<pad>",
        user_defined_symbols=["<2de>", "<2en>"] if madlad else [],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    (folder / "spiece.model").write_bytes(made.getvalue())
    told = {"tokenizer_class": "T5Tokenizer", "extra_ids": 0} if madlad else {"tokenizer_class": "T5Tokenizer"}
    (folder / "tokenizer_config.json").write_text(json.dumps(told))
    pieces = sentencepiece.SentencePieceProcessor(model_proto=made.getvalue()).get_piece_size()
    if kind == "tokenizer.json alone":
        tokeniser = transformers.T5Tokenizer.from_pretrained(folder)
        (folder / "spiece.model").unlink()
        tokeniser.save_pretrained(folder)
    return int(pieces) + (0 if madlad else 100)


def save_t5(folder: Path, kind: str, *, ending: float = 4.0, **changes: Any) -> Any:
    """Write a model with no zero weights and its subwords, and return the model as read back.

    ending: a factor on the weights of EOS. changes: to its configuration.
    """
    made, told = KINDS[kind]
    rows = save_subwords(folder, kind) + (0 if kind == "ByT5" else MORE_ROWS)
    torch.manual_seed(1)
    model = made(made.config_class(**{**SIZES, "vocab_size": rows, "decoder_start_token_id": 0, **told, **changes}))
    if told.get("tie_word_embeddings") is False:
        model.lm_head.weight = torch.nn.Parameter(torch.randn(rows, 12))
    end = model.config.eos_token_id
    with torch.no_grad():
        for name, value in model.named_parameters():
            size = 0.3 if value.dim() == 1 else 0.0 if "lm_head" in name or "shared" in name else 0.4
            value += size * torch.randn(value.shape)
        # So that texts end at different places, by themselves.
        model.lm_head.weight[end] *= ending
    model.generation_config.decoder_start_token_id = 0
    model.save_pretrained(folder)
    if told.get("tie_word_embeddings") is False and made is not UMT5:
        changed(folder / "config.json", tie_word_embeddings=False)
    return made.from_pretrained(folder).eval()
