"""Marian models with random weights and tokenisers, made and saved by transformers: the oracle for the import."""

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from heads.text.special_ids import UNK

transformers: Any = pytest.importorskip(
    "transformers", reason="transformers is not installed: pip install -r envs/dev.txt", exc_type=ImportError
)

SENTENCES = {
    "source": (
        "the cat sees a small dog .",
        "a white house stands here , near the old river !",
        "dogs bark loudly .",
        "who reads the books of my sisters ?",
    ),
    "target": (
        "die Katze sieht einen kleinen Hund .",
        "ein weißes Haus steht hier , nahe dem alten Fluss !",
        "Hunde bellen laut .",
        "wer liest die Bücher meiner Schwestern ?",
    ),
}
CUT = {
    "enc_self": [[True, False, True], [False] * 3],
    "dec_self": [[False] * 3, [True, True, False], [True] * 3],
    "dec_enc": [[False, True, True], [True] * 3, [False] * 3],
}
"""The heads that are left after an uneven pruning."""
SIZES: dict[str, Any] = {
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 14,
    "decoder_ffn_dim": 14,
    "dropout": 0.1,
    "max_position_embeddings": 64,
}


def changed(path: Path, **values: Any) -> None:
    """Change values in a JSON file."""
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **values}), encoding="utf-8")


def drawn(lengths: Sequence[int], subwords: int, seed: int) -> list[list[int]]:
    """Random sentences in our ids."""
    draw = np.random.default_rng(seed)
    return [draw.integers(UNK, subwords, length).tolist() for length in lengths]


def segmenter(sentences: Sequence[str], subwords: int, kind: str) -> bytes:
    """A SentencePiece model as in OPUS-MT, with its own numbering."""
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*sentences] * 20),
        model_writer=made,
        vocab_size=subwords,
        model_type=kind,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return made.getvalue()


def subwords_of(model: bytes) -> list[str]:
    """The subwords that a SentencePiece model may cut a text into."""
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(len(processor)) if not processor.is_control(i) and i]


def save_tokeniser(
    folder: Path, *, kind: str = "unigram", separate: bool = False, languages: Sequence[str] = ()
) -> Any:
    """Write source.spm, target.spm and vocabularies that lack three subwords of each; return the tokeniser.

    Separate vocabularies have the same size, as with Marian's converter.
    """
    folder.mkdir(parents=True, exist_ok=True)
    cut: dict[str, list[str]] = {}
    for side, sentences in SENTENCES.items():
        content = segmenter(sentences, {"source": 60, "target": 70}[side], kind)
        (folder / f"{side}.spm").write_bytes(content)
        # Those of several letters, so that words are cut into missing subwords.
        cut[side] = sorted(subwords_of(content), key=lambda subword: (-len(subword), subword))[3:]
    if separate:
        least = min(map(len, cut.values()))
        cut = {side: subwords[-least:] for side, subwords in cut.items()}
    draw = torch.Generator().manual_seed(7)

    def numbered(subwords: Sequence[str]) -> dict[str, int]:
        names = [name for name in dict.fromkeys(subwords) if name not in ("<unk>", "</s>", "<pad>")]
        order = torch.randperm(len(names), generator=draw).tolist()
        row = ["</s>", "<unk>", *(names[i] for i in order), *languages, "<pad>"]
        return {name: number for number, name in enumerate(row)}

    joint = {"vocab.json": [*cut["source"], *cut["target"]]}
    for name, subwords in (
        {"vocab.json": cut["source"], "target_vocab.json": cut["target"]} if separate else joint
    ).items():
        (folder / name).write_text(json.dumps(numbered(subwords)), encoding="utf-8")
    tokeniser = transformers.MarianTokenizer(
        str(folder / "source.spm"),
        str(folder / "target.spm"),
        str(folder / "vocab.json"),
        target_vocab_file=str(folder / "target_vocab.json") if separate else None,
        separate_vocabs=separate,
    )
    tokeniser.save_pretrained(folder)
    return tokeniser


def save_marian(folder: Path, *, biases: float = 0.1, half: bool = False, shards: str = "50GB", **changes: Any) -> Any:
    """Write a model with no zero weights beside the tokeniser of a folder, and return it in fp32.

    changes: to its configuration; the embedding of padding stays zero, as in OPUS-MT's converter.
    """
    subwords = len(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    pad = subwords - 1
    special = {"pad_token_id": pad, "decoder_start_token_id": pad, "eos_token_id": 0, "forced_eos_token_id": None}
    vocabulary = {"vocab_size": subwords, "decoder_vocab_size": subwords}
    own = {"activation_function": "swish", "scale_embedding": True}
    config = transformers.MarianConfig(**{**SIZES, **own, **special, **vocabulary, **changes})
    torch.manual_seed(1)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "embed_positions" not in name:
                # No trained model has biases far larger than what they are added to; no ratio without them would hold.
                value += (0.4 if value.dim() > 1 else biases) * torch.randn(value.shape)
        model.final_logits_bias += 0.5 * torch.randn(model.final_logits_bias.shape)
        model.get_encoder().embed_tokens.weight[pad] = 0
        model.get_decoder().embed_tokens.weight[pad] = 0
    if half:
        model = model.half()
    model.generation_config.bad_words_ids = [[pad]]
    model.generation_config.num_beams, model.generation_config.max_length = 4, 64
    model.save_pretrained(folder, max_shard_size=shards)
    return transformers.MarianMTModel.from_pretrained(folder, dtype=torch.float32).eval()
