"""The text that a model is pruned on: its splits, and the model's own outputs or labels for them."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path

import torch

from heads.analysis.masking import EncodedText, vectors
from heads.analysis.metrics import Answers
from heads.base.files import UserError, read_lines, write_lines
from heads.base.names import AUTO, BLEU, SPLITS
from heads.interop.bundle import Bundle, open_translator
from heads.one_model.answering import answered_by
from heads.one_model.reading import TOO_LONG, unreadable
from heads.one_model.text import Text
from heads.text.batches import Pairs, measured_pairs
from heads.text.encoding import tokens_of
from heads.text.vocabulary import Tokens, Vocabulary
from heads.training.training_text import TrainingText
from heads.translation.distilled import distinct, write_distilled
from heads.translation.stream import Report
from heads.translation.text_scores import tokeniser_of

STUDIED, FIRST_OF_DEV = "studied", "first_of_dev"
"""Sentences that are read in closed form, of those to train on; and those on which sizes are compared first, of dev."""
FIRST_SENTENCES = 100
"""How many those of dev are."""
MOST_HELD_OUT = 1000
"""The most sentences to hold out from training; otherwise it is a tenth."""
LEAST = 50
"""The fewest distinct sentences that are enough to measure on."""


@dataclass(frozen=True, slots=True)
class AnsweredText:
    """Sentences or examples, and a model's output or label for each."""

    sentences: list[str]
    answers: list[str]

    def tokens(self, model: Bundle) -> tuple[Tokens, Tokens]:
        """Both sides in the subwords of a model, which may have fewer than the one that answered."""
        return tokens_of(self.sentences, model.source), tokens_of(self.answers, model.target)

    def pairs(self, model: Bundle) -> Pairs:
        """Both sides as pairs to measure a model on."""
        return measured_pairs(*self.tokens(model), labelled=model.shape.encoder_only)


class AnsweredSplits:
    """The splits of a text with a model's answers: each is answered when it is first needed, and kept in a folder."""

    def __init__(
        self,
        model: Bundle,
        splits: Mapping[str, list[str]],
        folder: Path,
        device: torch.device,
        report: Report,
        tokeniser: str = AUTO,
        metric: str = BLEU,
    ) -> None:
        """model: on the device. splits: sentences by name. tokeniser, metric: of text, as in `text_metric`."""
        self.model, self.folder, self.device, self.report = model, folder, device, report
        self.splits = {**splits, FIRST_OF_DEV: splits.get("dev", [])[:FIRST_SENTENCES]}
        self.part_of = {FIRST_OF_DEV: "dev"}
        """The split of which another one is a part."""
        self.asked_tokeniser, self.metric = tokeniser, metric
        self.known: dict[str, AnsweredText] = {}
        self.known_vectors: dict[str, Answers] = {}

    def __getitem__(self, split: str) -> AnsweredText:
        if split not in self.known:
            self.known[split] = self._answered(split)
        return self.known[split]

    @cached_property
    def tokeniser(self) -> str:
        """The tokeniser of the metric: by the answers to the sentences by which sizes are chosen, for all others too.

        What is reported on would do as well, but is answered only once the model is made, as until then people wait.
        """
        if self.model.shape.encoder_only:
            return self.asked_tokeniser
        return tokeniser_of(self[FIRST_OF_DEV].answers, self.asked_tokeniser)

    def study(self, subwords: int) -> AnsweredText:
        """Sentences drawn from those to train on, with about so many source subwords together, and their answers."""
        name, train = f"{STUDIED}-{subwords}", self.splits["train"]
        tokens = tokens_of(train, self.model.source)
        self.splits[name] = [train[number] for number in measured_pairs(tokens, tokens).drawn(subwords).index]
        self.part_of[name] = "train"
        return self[name]

    def encoded(self, split: str, model: Bundle) -> EncodedText:
        """A split in a model's subwords, with what the model of the text gives for it as references."""
        text = self[split]
        source = tokens_of(text.sentences, model.source)
        return EncodedText(source, text.answers, model.target, self.tokeniser, self.metric, self.vectors(split))

    def vectors(self, split: str) -> Answers | None:
        """The vectors of a split, if the model embeds sentences."""
        if not self.model.shape.embeds:
            return None
        if split not in self.known_vectors:
            tokens = tokens_of(self[split].sentences, self.model.source)
            self.known_vectors[split] = vectors(self.model.model, tokens, self.device)
        return self.known_vectors[split]

    def for_training(self, model: Bundle) -> TrainingText:
        """The text to train a model on."""
        train, dev = (self[split].tokens(model) for split in ("train", "dev"))
        return TrainingText(train, dev, self["dev"].answers, model.target)

    def written_ids(self, split: str) -> set[int]:
        """The target subwords that the model wrote for a split."""
        return {*chain.from_iterable(map(json.loads, read_lines(self._ids(split))))}

    def _answered(self, split: str) -> AnsweredText:
        """A split with its answers, made unless an earlier attempt did, for a part of it or for all."""
        sentences, answers = (self.folder / f"{split}.{side}.txt" for side in ("sentences", "answers"))
        if split in self.part_of and (self.folder / f"{self.part_of[split]}.answers.txt").is_file():
            whole = self[self.part_of[split]]
            known = dict(zip(whole.sentences, whole.answers, strict=True))
            lines = [line for line in self.splits[split] if line in known]
            return AnsweredText(lines, [known[line] for line in lines])
        if not answers.is_file():
            self.folder.mkdir(exist_ok=True)
            if self.model.shape.encoder_only:
                self._label(self.splits[split], sentences, answers)
            else:
                self._translate(split, sentences, answers)
        text = AnsweredText(read_lines(sentences), read_lines(answers))
        if not text.sentences:
            raise UserError(
                f"The model translates all of the {len(self.splits[split])} sentences of "
                f"{self.part_of.get(split, split)} to nothing: delete "
                f"{self.folder.parent}, and give text in its source language, with --prefix or languages if needed."
            )
        return text

    def _translate(self, split: str, sentences: Path, answers: Path) -> None:
        translator = open_translator(
            self.model, self.device, beam=1, length_penalty=0.0, batch_tokens=3000, max_subwords=200
        )
        noting = NotedIds(translator.target, self._ids(split))
        translator = replace(translator, target=noting)  # type: ignore[arg-type]
        write_distilled(self.splits[split], translator, sentences, answers, self.report)

    def _label(self, examples: list[str], sentences: Path, answers: Path) -> None:
        tokens = tokens_of(examples, self.model.source)
        write_lines(sentences, examples)
        write_lines(answers, answered_by(self.model.model, tokens, self.model.target, self.device))

    def _ids(self, split: str) -> Path:
        """The file of the target ids that the model wrote for a split, one list for each batch."""
        return self.folder / f"{split}.written_ids.jsonl"


@dataclass(frozen=True, slots=True)
class NotedIds:
    """A vocabulary that notes in a file which ids it decodes, so that they are known even after an interruption."""

    vocabulary: Vocabulary
    notes: Path

    def decode(self, ids: Iterable[Sequence[int]]) -> list[str]:
        """Plain text of each sequence of ids."""
        sequences = [[int(number) for number in sequence] for sequence in ids]
        with self.notes.open("a", encoding="utf-8") as stream:
            stream.write(f"{json.dumps(sorted({*chain.from_iterable(sequences)}))}\n")
        return self.vocabulary.decode(sequences)


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
