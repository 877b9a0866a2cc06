"""A model whose heads are masked, and the translation of one text under any gates."""

from __future__ import annotations

from pathlib import Path

import torch

from heads.analysis.ablation import Translate
from heads.base.files import UserError, read_lines
from heads.config.analyses import TranslateSettings
from heads.model.folder import load_folder
from heads.model.transformer import Gates, Transformer
from heads.text.vocabulary import Tokens, Vocabulary
from heads.translation.scoring import every_pair, searched


def load_with_heads(folder: Path, device: torch.device) -> Transformer:
    """The model of a folder, on the device.

    Raises UserError when it has no head to mask.
    """
    loaded = load_folder(folder).to(device)
    if not loaded.shape.heads():
        raise UserError(f"{folder} is of a model without any head, so there is none to mask: give another run.")
    return loaded


def translation_of(
    model: Transformer,
    device: torch.device,
    source: Path,
    references: Path,
    target_bpe: Path,
    search: TranslateSettings,
) -> tuple[Translate, list[str]]:
    """How to translate the first `search.sentences` of a text (0: all) with the model, and their references.

    Raises UserError when text and references differ in length.
    """
    tokens, lines, vocabulary = Tokens(source), read_lines(references), Vocabulary(target_bpe)
    if len(tokens.lengths) != len(lines):
        raise UserError(
            f"{source} has {len(tokens.lengths)} sentences and {references} {len(lines)}: give both of one text."
        )
    pairs = every_pair(tokens)

    def translate(gates: Gates | None) -> list[str]:
        return searched(model, pairs, vocabulary, search, device, gates)[1]

    return translate, lines[: search.sentences or None]
