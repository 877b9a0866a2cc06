"""An experiment on disk whose answers are all known: the model of `few_heads`, its rule as text in three splits, and
the settings of every stage in one file, with different numbers in each.

Words are single letters, a to h on the source side and i to x on the other, so that a word is a subword and a token of
BLEU. Sentences differ in length and are not sorted by it. Some reference translations are wrong.
"""

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
import yaml
from torch import Tensor

from few_heads import FIRST_WORD, TRANSLATIONS, WORDS, expected, hand_made, sentences
from heads.__main__ import main
from heads.base.files import read_lines, write_lines, write_text, write_tsv
from heads.base.names import ATTENTIONS
from heads.base.provenance import provenance
from heads.config.trainings import BpeSettings
from heads.model.checkpoint import load_tensors
from heads.model.folder import save_folder
from heads.model.head_removal import head_rows, pruned_shape
from heads.model.shape import ModelShape, full_heads
from heads.model.transformer import Transformer
from heads.text.encoding import encode_file
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Vocabulary, train_bpe

LETTERS = {"source": "abcdefgh", "target": "ijklmnopqrstuvwx"}
SUBWORDS = {side: FIRST_WORD + 2 * len(letters) + 1 for side, letters in LETTERS.items()}
"""Special tokens, a word for every letter, the letters and the mark of a blank."""
COUNTS, WRONG = {"train": 40, "dev": 10, "test": 14}, {"train": 7, "dev": 4, "test": 3}
"""Number of sentences in each split, and how many of their translations are wrong."""
UPDATES_BEFORE = 7
LEFT = {
    "enc_self": [[False, False, True], [False, True, True]],
    "dec_self": [[True, True, False], [False, False, False]],
    "dec_enc": [[True, False, False], [True, True, False]],
}
"""Heads that the table beside the experiment keeps: all the known ones and four more; one layer has none."""
Pair = tuple[list[int], list[int]]
"""Subwords of a sentence and of its reference translation."""

STANDSTILL = 1e-60
"""A learning rate that is zero in 32 bits: the model that is known stays as it is."""

SETTINGS: dict[str, Any] = {
    "bpe": {"source_subwords": SUBWORDS["source"], "target_subwords": SUBWORDS["target"], "character_coverage": 1.0,
            "train_sentences": 1000, "seed": 3},
    "model": {"layers": 2, "heads": 3, "width": 12, "feedforward": 7, "dropout": 0.0,
              "attention_dropout": 0.0, "pre_norm": True},
    "training": {"batch_tokens": 2000, "micro_batch_tokens": 90, "max_subwords": 20, "label_smoothing": 0.1,
                 "optimizer": "adam", "adam_beta1": 0.9, "adam_beta2": 0.98, "adam_epsilon": 1e-9,
                 "learning_rate": STANDSTILL, "learning_rate_scale": 0.0, "warmup_updates": 5, "decay_share": 0.0,
                 "rewarm_updates": 0, "precision": "fp32", "evaluate_every": 1, "dev_bleu_sentences": 0},
    "baseline": {"updates": 4, "patience": 0, "average_last": 1, "average_every": 1, "minutes": 0.0,
                 "checkpoint_updates": []},
    "gates": {"updates": 2, "average_last": 1, "average_every": 1, "gate_learning_rate": STANDSTILL, "record_every": 1,
              "fixed_gates_share": 0.0,
              "hard_concrete": {"temperature": 0.33, "low": -0.1, "high": 1.1, "log_alpha_init": 3.0},
              "subset": {"learning_rate": 0.2, "temperature_first": 0.1, "temperature_last": 0.001,
                         "cooldown_share": 0.6, "straight_through": False}},
    "scratch": {"updates": 3, "patience": 0, "average_last": 1, "average_every": 1,
                "learning_rate_factor": 1.0},
    "selected": {"updates": 2, "patience": 0, "average_last": 1, "average_every": 1},
    "translate": {"beam": 4, "length_penalty": 0.6, "batch_tokens": 20, "sentences": 0},
    "confidence": {"sentences": 0, "batch_tokens": 25},
    "importance": {"sentences": 0, "batch_tokens": 30},
    "surgeon": {"subwords": 10_000, "sentences": 0},
    "alignment_heads": {"sentences": 0, "max_subwords": 20, "batch_tokens": 35, "bootstrap": 100,
                        "steps": ["output", "input"], "margin": 0.1},
    "maps": {"sentences": 2, "min_words": 5, "max_words": 6},
    "selection": {"at_least": {}, "resamples": 199},
}  # fmt: skip


def settings(path: Path, **changes: Mapping[str, Any]) -> Path:
    """Write the settings of all stages, with changes by section."""
    content = copy.deepcopy(SETTINGS)
    for section, values in changes.items():
        content[section] |= values
    write_text(path, yaml.safe_dump(content))
    return path


def command(name: str, **flags: object) -> None:
    """Run a command that must succeed; flags as `target_bpe=path`, lists as several words."""
    words: list[str] = []
    for flag, value in flags.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        words += [f"--{flag.replace('_', '-')}", *map(str, values)]
    assert main([name, *words]) == 0


@dataclass(frozen=True)
class Known:
    """Paths of the experiment's files, and their contents."""

    folder: Path

    @property
    def bpe(self) -> Path:
        """Vocabularies and token files."""
        return self.folder / "bpe"

    @property
    def baseline(self) -> Path:
        """The unpruned model, which is the hand-made one."""
        return self.folder / "baseline/seed-1"

    def text(self, split: str, side: str) -> Path:
        """Plain text."""
        return self.folder / "texts" / f"{split}.{side}.txt"

    def tokens(self, split: str, side: str) -> Path:
        """The same as subwords."""
        return self.bpe / f"{split}.{side}.safetensors"

    def ids(self, split: str, side: str) -> list[list[int]]:
        """The same as lists, from the text."""
        lines = read_lines(self.text(split, side))
        return [[FIRST_WORD + LETTERS[side].index(word) for word in line.split()] for line in lines]

    def pairs(self, split: str) -> list[Pair]:
        """Both sides of a split as lists."""
        return list(zip(self.ids(split, "source"), self.ids(split, "target"), strict=True))

    def right(self, split: str) -> list[str]:
        """The hand-made model's translations of a split, by its rule."""
        return [as_text(expected(ids), "target") for ids in self.ids(split, "source")]


def as_text(ids: Sequence[int], side: str) -> str:
    """The words of the given subword ids."""
    return " ".join(LETTERS[side][subword - FIRST_WORD] for subword in ids)


def shape(**changes: Any) -> ModelShape:
    """Sizes of the hand-made model."""
    values = {"feedforward": 7, "dropout": 0.0, "pre_norm": True, "original_heads": 3,
              "live_heads": full_heads(layers=2, heads=3)}  # fmt: skip
    subwords = {"source_subwords": SUBWORDS["source"], "target_subwords": SUBWORDS["target"]}
    return ModelShape(**{"width": 64, "head_width": 8, **values, **subwords, **changes})


def known_model(**changes: Any) -> Transformer:
    """The hand-made model, with an embedding for every subword in the vocabularies."""
    return hand_made(shape, **{f"{side}_subwords": count for side, count in SUBWORDS.items()}, **changes)


def save(model: Transformer, folder: Path, **facts: Any) -> Path:
    """Write a model the way training does."""
    told = {"updates": UPDATES_BEFORE, "total_updates": UPDATES_BEFORE, "dev_loss": 0.5, **facts}
    save_folder(model, folder, told, {**provenance(), "commit": "0" * 40, "changed_since_commit": False, "seed": 5})
    return folder


def weights(folder: Path) -> dict[str, Tensor]:
    """The weights of a run."""
    return load_tensors(folder / "model.safetensors")[0]


def same(first: Mapping[str, Tensor], second: Mapping[str, Tensor]) -> bool:
    """Whether two models are identical to the last bit."""
    return first.keys() == second.keys() and all(torch.equal(value, second[name]) for name, value in first.items())


def write_known(folder: Path) -> Known:
    """Write vocabularies, texts, their subwords, the hand-made model as the baseline, and a table that keeps LEFT."""
    known = Known(folder)
    for seed, (split, count) in enumerate(COUNTS.items()):
        sources, targets = sentences(count, seed)
        lines = {"source": [as_text(ids.tolist(), "source") for ids in sources]}
        lines["target"] = [
            # A wrong translation: reversed and one word longer, so that no wrong order of lines is right by chance.
            as_text([*ids[::-1].tolist(), FIRST_WORD], "target") if number % WRONG[split] == 1 else
            as_text(ids.tolist(), "target")
            for number, ids in enumerate(targets)
        ]  # fmt: skip
        for side, text in lines.items():
            write_lines(known.text(split, side), text)
    for side, letters in LETTERS.items():
        # The more frequent a word, the earlier it is merged, and the lower its number.
        often = folder / "texts" / f"letters.{side}.txt"
        write_lines(often, [f"{letter} " * (100 - place) for place, letter in enumerate(letters)])
        train_bpe(often, known.bpe / f"{side}.model", BpeSettings(**SETTINGS["bpe"]), SUBWORDS[side])
        vocabulary = Vocabulary(known.bpe / f"{side}.model")
        for split in COUNTS:
            encode_file(known.text(split, side), vocabulary, known.tokens(split, side), 1)
    save(known_model(), known.baseline)
    write_tsv(folder / "heads.tsv", head_rows(pruned_shape(shape(), LEFT)), ("attention", "layer", "head", "open"))
    return known


def loss(model: Transformer, pairs: Iterable[Pair], smoothing: float) -> float:
    """Loss in nats per target token (EOS counts) from the definition: each sentence alone."""
    return losses_by_smoothing(model, pairs, (smoothing,))[smoothing]


@torch.no_grad()
def losses_by_smoothing(model: Transformer, pairs: Iterable[Pair], smoothings: Sequence[float]) -> dict[float, float]:
    """That loss for several degrees of label smoothing."""
    totals, tokens = dict.fromkeys(smoothings, 0.0), 0
    for source, target in pairs:
        read = torch.tensor([[*source, EOS]])
        states = model(read, torch.ones_like(read, dtype=torch.bool), torch.tensor([[BOS, *target]]))
        chances = F.log_softmax(model.projection(states)[0].double(), -1)
        for place, subword in enumerate([*target, EOS]):
            right, mean = float(chances[place, subword]), float(chances[place].mean())
            for smoothing in smoothings:
                totals[smoothing] -= (1 - smoothing) * right + smoothing * mean
            tokens += 1
    return {smoothing: total / tokens for smoothing, total in totals.items()}


def divergence(whole: Transformer, other: Transformer, pairs: Iterable[Pair]) -> float:
    """Kullback-Leibler divergence of one model's answers from the whole model's in nats each: each sentence alone."""
    total, tokens = 0.0, 0
    for source, target in pairs:
        read = torch.tensor([[*source, EOS]])
        given = (read, torch.ones_like(read, dtype=torch.bool), torch.tensor([[BOS, *target]]))
        wanted, found = (F.softmax(model.projection(model(*given))[0].double(), -1) for model in (whole, other))
        total += float((wanted * (wanted / found).log()).sum())
        tokens += 1 + len(target)
    return total / tokens


CERTAIN = 100.0


def path_model(chances: Mapping[str, Mapping[str, float]], **changes: Any) -> Transformer:
    """A model whose next word depends on the last one alone, with these probabilities; no head has any influence.

    "" stands for the start and the end. Anything not named is practically impossible.
    """
    model = Transformer(shape(**changes)).eval()

    def subword(word: str, mark: int) -> int:
        return FIRST_WORD + LETTERS["target"].index(word) if word else mark

    wanted = torch.full((SUBWORDS["target"],) * 2, -CERTAIN)
    for last, followers in chances.items():
        for word, chance in followers.items():
            wanted[subword(last, BOS), subword(word, EOS)] = float(np.log(chance))
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" not in name:
                value.zero_()
        # So large that the position does not matter.
        subwords = model.target_embedding.subwords.weight
        subwords[:, : SUBWORDS["target"]] = 1e4 * torch.eye(SUBWORDS["target"])
        states = model.decoder_norm(model.target_embedding(torch.arange(SUBWORDS["target"])[:, None]))[:, 0]
        model.projection.weight.copy_((torch.linalg.pinv(states.double()) @ wanted.double()).T)
    return model


WAYS = {
    "": {"i": 0.45, "j": 0.3, "k": 0.25},
    "i": {"l": 0.35, "m": 0.33, "n": 0.32},
    "j": {"": 0.9, "i": 0.1},
    "k": {"o": 1.0},
    "o": {"p": 1.0},
    "p": {"q": 1.0},
    **{word: {"": 1.0} for word in "lmnq"},
}
"""Three paths: the likeliest first word leads to a three-way split (0.16), the next to a short end (0.27), the last,
with no further choice, to a long end (0.25)."""
FOUND = {(1, 0.6): "i l", (2, 0.6): "j", (4, 0.6): "k o p q", (4, 0.0): "j"}
"""Results by beam size and length penalty: a beam of two loses the last path at the first step, and with all three
it wins only where length counts, -1.39 / (10 / 6)^0.6 = -1.02 against -1.31 / (7 / 6)^0.6 = -1.19."""
EVERY_KIND = {kind: [[False] * 3] * 2 for kind in ATTENTIONS}
"""No heads are kept."""
assert [len(letters) for letters in LETTERS.values()] == [WORDS, TRANSLATIONS]
