"""M2M100, NLLB, BART and mBART with random weights and tokenisers, saved by transformers: the import's oracle."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import tokenizers
import torch
from transformers.models.m2m_100 import tokenization_m2m_100 as m2m100
from transformers.models.mbart import tokenization_mbart as mbart25
from transformers.models.mbart50 import tokenization_mbart50 as mbart50
from transformers.models.nllb import tokenization_nllb as nllb

from heads.interop.fairseq.reading import read_fairseq
from heads.interop.marian.importing import numberings_of
from heads.interop.marian.reading import read_marian
from heads.interop.numbering import Numbering
from heads.interop.original import OriginalFiles
from marian_models import SENTENCES, SIZES, segmenter, subwords_of, transformers

CLASSES = {
    "m2m100": transformers.M2M100ForConditionalGeneration,
    "nllb": transformers.M2M100ForConditionalGeneration,
    "bart": transformers.BartForConditionalGeneration,
    "mbart": transformers.MBartForConditionalGeneration,
    "mbart25": transformers.MBartForConditionalGeneration,
}
LANGUAGES = {"m2m100": ("en", "de"), "nllb": ("eng_Latn", "deu_Latn"), "mbart": ("en_XX", "de_DE"), "bart": ("", "")}
LANGUAGES |= {"mbart25": LANGUAGES["mbart"], "marian": ("", "")}
"""Source and target languages under each model's own names."""
ALL_LANGUAGES = {
    "m2m100": [f"__{code}__" for code in m2m100.FAIRSEQ_LANGUAGE_CODES["m2m100"]],
    "nllb": [*nllb.FAIRSEQ_LANGUAGE_CODES],
    "mbart": [*mbart50.FAIRSEQ_LANGUAGE_CODES],
    "mbart25": [*mbart25.FAIRSEQ_LANGUAGE_CODES],
}
TEXTS = [*SENTENCES["source"], *SENTENCES["target"]]
SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]
TOKENISERS = {
    "bart": transformers.BartTokenizer,
    "mbart": transformers.MBart50Tokenizer,
    "mbart25": transformers.MBartTokenizer,
    "nllb": transformers.NllbTokenizer,
}
"""Those that transformers 5 writes as tokenizer.json alone."""


def save_subwords(
    folder: Path, family: str, kind: str = "bpe", texts: Sequence[str] = TEXTS, subwords: int = 90
) -> None:
    """Write the tokeniser files of a folder on the hub by hand, with so many subwords learnt from texts."""
    folder.mkdir(parents=True, exist_ok=True)
    if family == "bart":
        made = tokenizers.ByteLevelBPETokenizer()
        made.train_from_iterator([*texts] * 9, vocab_size=210 + subwords, special_tokens=SPECIAL, show_progress=False)
        made.save_model(str(folder))
        return
    content = segmenter(texts, subwords, kind)
    (folder / "sentencepiece.bpe.model").write_bytes(content)
    if family == "m2m100":
        # In a different order, and without some subwords that texts are cut into.
        names = sorted(subwords_of(content), key=lambda subword: (-len(subword), subword))[3:]
        numbered = {name: number for number, name in enumerate([*SPECIAL, *names[::2], *names[1::2]])}
        (folder / "vocab.json").write_text(json.dumps(numbered), encoding="utf-8")
    listed = {"additional_special_tokens": ALL_LANGUAGES[family]}
    (folder / "special_tokens_map.json").write_text(json.dumps(listed), encoding="utf-8")


def rewrite_by_transformers(folder: Path, family: str) -> Any:
    """Put what transformers 5 writes, tokenizer.json and tokenizer_config.json, in the place of all tokeniser files."""
    spoken = dict(zip(("src_lang", "tgt_lang"), LANGUAGES[family], strict=True)) if family != "bart" else {}
    listed = {"extra_special_tokens": ALL_LANGUAGES[family]} if family == "nllb" else {}
    tokeniser = TOKENISERS[family].from_pretrained(folder, **spoken, **listed)
    for name in ("vocab.json", "merges.txt", "sentencepiece.bpe.model", "special_tokens_map.json"):
        (folder / name).unlink(missing_ok=True)
    tokeniser.save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


def subwords_in(folder: Path, family: str) -> int:
    """The number of ids in a folder's tokeniser, including languages and the mask."""
    if (folder / "vocab.json").is_file():
        number = len(json.loads((folder / "vocab.json").read_text(encoding="utf-8")))
    else:
        number = len(subwords_of((folder / "sentencepiece.bpe.model").read_bytes())) + len(SPECIAL)
    return number + len(ALL_LANGUAGES.get(family, ())) + 1


def save_model(folder: Path, family: str, *, ending: float = 1.0, **changes: Any) -> Any:
    """Write a model with no zero weights beside the subwords of a folder, and return it as read back.

    It has two rows without a subword. ending: added to the logit of EOS. changes: to its configuration.
    """
    kind = CLASSES[family]
    told: dict[str, Any] = {"vocab_size": subwords_in(folder, family) + 2, "forced_eos_token_id": None}
    if family == "mbart":
        told["decoder_start_token_id"] = 2
    torch.manual_seed(1)
    model = kind(kind.config_class(**{**SIZES, **told, **changes})).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            # If subwords weighed more than layers, they would be repeated again and again.
            size = 0.3 if value.dim() == 1 else 0.2 if "shared" in name or "lm_head" in name else 0.8
            value += size * torch.randn(value.shape)
        if "bart" in family:
            model.final_logits_bias += 0.5 * torch.randn(model.final_logits_bias.shape)
        # So that translations end by themselves: where they are cut off, EOS costs nothing in transformers.
        if family == "bart":
            model.final_logits_bias[0, 2] += ending
        else:
            shift = model.get_decoder().layer_norm.bias
            model.lm_head.weight[2] += ending * shift / shift.dot(shift)
    model.generation_config.num_beams, model.generation_config.max_length = 4, None
    if family == "bart":
        model.generation_config.forced_bos_token_id = 0
    model.save_pretrained(folder)
    return kind.from_pretrained(folder).eval()


def save_folder(folder: Path, family: str, **changes: Any) -> Any:
    """Write subwords and a model, and return the model."""
    save_subwords(folder, family)
    return save_model(folder, family, **changes)


def numberings_in(folder: Path, family: str) -> tuple[Numbering, Numbering]:
    """Our numberings of the subwords in a folder, of source and target."""
    return numberings_of(
        read_marian(OriginalFiles(folder))
        if family == "marian"
        else read_fairseq(OriginalFiles(folder), LANGUAGES[family])
    )


def in_their_ids(rows: Sequence[int], ids: Sequence[int]) -> list[int]:
    """Convert our ids to theirs."""
    return [rows[number] for number in ids]
