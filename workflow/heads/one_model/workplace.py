"""The folder in which one model is pruned, laid out like the workflow's results; a later attempt resumes there."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import torch

from heads.base.files import UserError, read_json, read_lines, write_json, write_lines
from heads.base.names import AUTO, BLEU, SIDES, SPLITS
from heads.interop.bundle import Bundle, open_translator
from heads.model.folder import load_model, save_folder
from heads.model.shape import FACTS, shape_of
from heads.one_model.answering import answered_by
from heads.one_model.reading import TOO_LONG, unreadable
from heads.one_model.text import Text
from heads.text.encoding import encode_file, vocabulary_or_labels
from heads.text.vocabulary import Tokens
from heads.translation.distilled import distinct, write_distilled
from heads.translation.model_folder import PRETRAINED, VOCABULARIES
from heads.translation.stream import Report, Translator
from heads.translation.text_scores import tokeniser_of

ASKED = "asked.json"
STUDIED = "studied"
"""The split of the sentences that are read in closed form; they are some of those to train on."""
MOST_HELD_OUT = 1000
"""The most sentences to hold out from training; otherwise it is a tenth."""
LEAST = 50
"""The fewest distinct sentences that are enough to measure on."""


class Workplace:
    """The folder of one pruning: `baseline` has the model, `bpe` the vocabularies and the text in subwords."""

    def __init__(
        self,
        folder: Path,
        asked: dict[str, object],
        tokeniser: str = AUTO,
        metric: str = BLEU,
        whole: Workplace | None = None,
    ) -> None:
        """asked: all that the training depends on. tokeniser, metric: of text, as in `text_metric`. whole: the folder
        with all subwords, if the model of this one has fewer.

        Raises UserError if the folder was left by another request.
        """
        self.folder, self.named, self.metric, self.whole = folder, tokeniser, metric, whole
        self.results = folder / "results" / "model"
        self.baseline, self.bpe = self.results / "baseline" / "seed-1", self.results / "bpe"
        wanted = json.loads(json.dumps(asked))
        if (folder / ASKED).is_file() and read_json(folder / ASKED) != wanted:
            raise UserError(
                f"{folder} was left by a pruning of another model, text, language or size, or by another way: "
                "finish that one, or delete the folder."
            )
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / ASKED, wanted)

    @property
    def original(self) -> Workplace:
        """The folder of the model with all its subwords."""
        return self.whole or self

    def lay_out(self, model: Bundle) -> None:
        """Write the model and its vocabularies to where a run has them."""
        if (self.baseline / FACTS).is_file():
            return
        for folder in (self.bpe, self.baseline):
            folder.mkdir(parents=True, exist_ok=True)
        model.write_vocabularies(self.bpe)
        model.write_origin(self.bpe)
        # Written last, because its facts show that the rest is complete.
        save_folder(model.model, self.baseline, model.facts, model.facts["provenance"])

    def remove(self) -> None:
        """Delete the folder when all is done."""
        shutil.rmtree(self.folder)

    def text(self, split: str, side: str) -> Path:
        """The plain text of a split."""
        return self.bpe / f"{split}.{side}.txt"

    def tokens(self, split: str, side: str) -> Path:
        """The text of a split in subwords, a token file."""
        return self.bpe / f"{split}.{side}.safetensors"

    @property
    def came_with(self) -> Path:
        """The folder of an imported model's original files."""
        return self.bpe / PRETRAINED

    @cached_property
    def tokeniser(self) -> str:
        """The tokeniser for the model's outputs for held-out sentences, which are the references."""
        if shape_of(self.baseline).encoder_only:
            return self.named
        held_out = [line for split in SPLITS[1:] for line in read_lines(self.text(split, SIDES[1]))]
        return tokeniser_of(held_out, self.named)

    def answer(
        self,
        splits: Mapping[str, list[str]],
        device: torch.device,
        report: Report,
        through: Callable[[Translator], Translator] = lambda translator: translator,
    ) -> None:
        """Let the model answer the text of every split, once, or label it; then encode both sides.

        through: what the translator is passed through.
        """
        alone = shape_of(self.baseline).encoder_only
        for split, sources in splits.items():
            source, target = (self.text(split, side) for side in SIDES)
            if target.is_file():
                pass
            elif alone:
                self._label(split, sources, device)
            else:
                translator = open_translator(
                    self.baseline, device, beam=1, length_penalty=0.0, batch_tokens=3000, max_subwords=200
                )
                write_distilled(sources, through(translator), source, target, report)
            for side, name in zip(SIDES, VOCABULARIES, strict=True):
                encode_file(self.text(split, side), vocabulary_or_labels(self.bpe / name), self.tokens(split, side))

    def _label(self, split: str, examples: list[str], device: torch.device) -> None:
        """Write the examples of a split, and the answers of an encoder without a decoder."""
        write_lines(self.text(split, SIDES[0]), examples)
        encode_file(
            self.text(split, SIDES[0]), vocabulary_or_labels(self.bpe / VOCABULARIES[0]), self.tokens(split, SIDES[0])
        )
        tokens, labels = Tokens(self.tokens(split, SIDES[0])), vocabulary_or_labels(self.bpe / VOCABULARIES[1])
        answers = answered_by(load_model(self.baseline).to(device), tokens, labels, device)
        write_lines(self.text(split, SIDES[1]), answers)


def splits_for(model: Bundle, lines: Sequence[str], most: int, report: Report) -> dict[str, list[str]]:
    """The `splits_of` the first `most` distinct sentences of a text; those too long for the model are counted."""
    source, shape = model.source, model.shape
    clean, limits = distinct(lines, source, pairs=shape.encoder_only)
    chosen = clean[:most]
    reasons = unreadable(chosen, source, shape, Text.max_subwords)
    if long := reasons.count(TOO_LONG):
        left_out = TOO_LONG.format(most=Text.max_subwords)
        report(f"{long} of {len(chosen)} sentences are left out: {long} {left_out}.")
    return splits_of([line for line, reason in zip(chosen, reasons, strict=True) if not reason], limits)


def splits_of(sentences: Sequence[str], limits: str) -> dict[str, list[str]]:
    """Split `distinct` sentences: a tenth is held out, half to choose the size and half to report on.

    Raises UserError with their limits if there are too few.
    """
    if len(sentences) < LEAST:
        raise UserError(f"The text has {len(sentences)} distinct sentences of {limits}: give at least {LEAST}.")
    half = min(MOST_HELD_OUT, len(sentences) // 10) // 2
    parts = (sentences[2 * half :], sentences[:half], sentences[half : 2 * half])
    return {split: [*part] for split, part in zip(SPLITS, parts, strict=True)}


def fingerprint_of(splits: Mapping[str, list[str]]) -> str:
    """A digest that distinguishes one text from another."""
    return hashlib.sha256(json.dumps(splits).encode()).hexdigest()
