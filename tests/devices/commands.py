"""Ways to call every command that runs a model, on a CPU and elsewhere."""

import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import yaml
from experiments import SIDES, STUDENT, WORDS, Place

from heads.__main__ import main
from heads.base.files import read_lines, write_text
from heads.config.analyses import LRP_RULES
from known_experiment import SETTINGS

SEARCH = {"beam": 1, "length_penalty": 0.0, "batch_tokens": 60, "sentences": 3}
NOISY = {"dropout": 0.2, "attention_dropout": 0.2}
OURS: dict[str, Mapping[str, Any]] = {
    "training": {"batch_tokens": 100, "micro_batch_tokens": 60, "learning_rate": 0.01, "adam_epsilon": 0.01,
                 "evaluate_every": 50, "dev_bleu_sentences": 1},
    "baseline": {"updates": 2, "average_last": 1},
    "gates": {"updates": 3, "gate_learning_rate": 0.3, "settled_share": 0.34},
    "scratch": {"updates": 2},
    "translate": {"beam": 2, "sentences": 3},
    "ablation": {**SEARCH, "sentences": 2, "dev_sentences": 1, "resamples": 199},
    "masking_curve": {**SEARCH, "step": 1.0, "random_orders": 1, "resamples": 100},
    "checkpoints": {**SEARCH, "step": 1.0, "resamples": 100},
    "lrp": {"sentences": 1, "batch_tokens": 30, "stabiliser": 1e-12, "rules": list(LRP_RULES)},
    "causal": {"updates": 2, "nudge": 0.002, "learning_rate": 0.2, "first_logit": 2.0, "farthest_logit": 5.0,
               "sentences": 0, "batch_tokens": 60},
    "roles": {"trees": ["gold"], "sentences": 0, "max_subwords": 50, "batch_tokens": 60, "bootstrap": 100,
              "positional_share": 0.9, "syntactic_margin": 0.1, "margin_is_relative": False, "relations": ["dep"],
              "min_cases": 2, "rare_outside_top": 0, "rare_share": 0.5},
    "speed": {"batch_sizes": [3], "sentences": 3, "repeats": 2, "beam": 2, "length_penalty": 0.6},
}  # fmt: skip
"""Changes to the settings of the experiment with known answers, and sections that it lacks."""
FOLDER = "FOLDER"
"""Stands in flags and settings for the folder of the experiment."""
Flags = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """One way to call a command: on an experiment, with other flags (None: without) and settings than usual."""

    command: str
    kind: str = WORDS
    flags: Mapping[str, Any] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    alike: bool = True
    """Whether its files are those that the CPU writes, up to rounding."""


def _tested(at: Place) -> Flags:
    files = {"source": at.tokens("test", "source"), "references": at.text("test", "target")}
    return {"model": at.baseline, **files, "target_bpe": at.bpe / "target.model"}


def _pairs(at: Place, split: str, prefix: str = "") -> Flags:
    return {f"{prefix}{side}": at.tokens(split, side) for side in SIDES}


def _both(at: Place) -> Flags:
    return {"model": at.baseline, **{f"{side}_bpe": at.bpe / f"{side}.model" for side in SIDES}}


def _measured(at: Place, out: Path) -> Flags:
    return {"model": at.baseline, **_pairs(at, "dev"), "out": out / "out.tsv"}


def _trained(at: Place, out: Path) -> Flags:
    own = {"model": out, "history": out / "train.jsonl", "data": at.bpe, "seed": 1}
    return {**own, "references": at.text("dev", "target")}


def _gated(at: Place, out: Path) -> Flags:
    written = {"heads": out / "heads.tsv", "gates_log": out / "gates.jsonl"}
    return {**_trained(at, out), "scope": "all", "target": "lam-0.5", **written}


def _ablated(at: Place, out: Path) -> Flags:
    dev = {"dev_source": at.tokens("dev", "source"), "dev_references": at.text("dev", "target")}
    names = ("masked", "masked_dev", "alone", "alone_dev", "layers")
    return {**_tested(at), **dev, **{name: out / f"{name}.tsv" for name in names}}


def _curved(at: Place, out: Path) -> Flags:
    of = "" if at.kind == WORDS else f" of {at.kind}"
    importance, ablation = (at.made[f"{name}{of}"] for name in ("importance", "ablation"))
    masked = {"ablation_dev": ablation / "masked_dev.tsv", "ablation_test": ablation / "masked.tsv"}
    return {**_tested(at), "importance": importance / "out.tsv", **masked, "out": out / "out.tsv"}


def _course(at: Place, out: Path) -> Flags:
    sides = {**_pairs(at, "dev", "dev_"), **_pairs(at, "train", "train_")}
    return {**_tested(at), **sides, "checkpoints": at.folder / "checkpoints", "out": out / "out.tsv"}


def _linked(at: Place, out: Path) -> Flags:
    texts = {f"{side}{end}": at.text("dev", side) for side in SIDES for end in ("", "_words")}
    return {**_both(at), **texts, "links": at.folder / "links", "out": out / "out.tsv"}


def _with_trees(at: Place, out: Path) -> Flags:
    told = {"source_bpe": at.bpe / "source.model", "trees": f"gold={at.folder / 'trees.conllu'}"}
    return {"model": at.baseline, **told, "train_source": at.tokens("train", "source"), "out": out / "out.tsv"}


def _shown(at: Place, out: Path) -> Flags:
    labels = {} if at.kind == WORDS else {"labels": at.text("test", "target")}
    return {**_both(at), "sentences": at.text("test", "source"), **labels, "out": out / "maps.json"}


def _distilled(at: Place, out: Path) -> Flags:
    drawn = {"text": at.text("train", "source"), "sentences": 4, "after": 1}
    return {"model": at.baseline, **drawn, "source": out / "source.txt", "target": out / "target.txt", "settings": None}


def _scored(at: Place, out: Path) -> Flags:
    written = {"translations": out / "t.txt", "bleu": out / "b.json", "statistics": out / "s.tsv"}
    return {**_tested(at), "text": at.text("test", "source"), "against": "no one's", **written}


def _opened(at: Place) -> Path:
    return at.folder / "theirs" if at.kind == STUDENT else at.baseline


def _inspected(at: Place, out: Path) -> Flags:
    own = {"sentences": 4, "masked": 1, "settings": None}
    return {"": (_opened(at), at.text("test", "source")), "output": out / "heads.html", **own}


def _pruned(at: Place, out: Path) -> Flags:
    own = {"keep": 3, "by": "gates", "updates": 2, "settings": None}
    return {"": (_opened(at), at.folder / "text.txt"), "output": out / "small", **own}


def _translated(at: Place, out: Path) -> Flags:
    return {"": (_opened(at),), "beam": 2, "length_penalty": 0.6, "settings": None}


FLAGS: dict[str, Callable[[Place, Path], Flags]] = {
    "ablation": _ablated,
    "ablation_out_of_domain": lambda at, out: {**_tested(at), "masked": out / "out.tsv"},
    "alignment_heads": _linked,
    "baseline": lambda at, out: {**_trained(at, out), "checkpoints": out / "checkpoints"},
    "causal": _measured,
    "checkpoints": _course,
    "classified": lambda at, out: {**_tested(at), "predictions": out / "p.txt", "accuracy": out / "a.json"},
    "confidence": _measured,
    "cross_attention_roles": _linked,
    "distilled": _distilled,
    "dynamics": lambda at, out: {**_with_trees(at, out), **_pairs(at, "dev"), "checkpoints": at.folder / "checkpoints"},
    "gates": lambda at, out: {**_gated(at, out), "start_model": at.baseline},
    "importance": _measured,
    "imported": lambda at, out: {**_trained(at, out), "checkpoints": out / "checkpoints"},
    "inspect": _inspected,
    "lrp": lambda at, out: {**_measured(at, out), "conservation": out / "conservation.tsv"},
    "maps": _shown,
    "masked": lambda at, out: {**_tested(at), "selection": at.folder / "selection.tsv", "out": out / "out.tsv"},
    "masking_curve": _curved,
    "penalty_gates": lambda at, out: {**_gated(at, out), "unpruned": at.baseline},
    "prune": _pruned,
    "roles": lambda at, out: {**_with_trees(at, out), "coverage": out / "c.tsv", "positions": out / "p.tsv"},
    "score": _scored,
    "scratch": lambda at, out: {**_trained(at, out), "unpruned": at.baseline, "heads": at.folder / "heads.tsv"},
    "selected": lambda at, out: {**_trained(at, out), "start_model": at.baseline, "heads": at.folder / "heads.tsv"},
    "speed": lambda at, out: {"baseline": at.baseline, "runs": at.folder / "pruned/all/lam-9/seed-1",
                              "source": at.tokens("test", "source"), "out": out / "out.tsv"},
    "surgeon": lambda at, out: {**_measured(at, out), **_pairs(at, "train", "train_"), "grams": out / "g.safetensors"},
    "translate": _translated,
}  # fmt: skip
"""The usual flags of each command, and under the empty name what has no flag."""


def run(case: Case, at: Place, out: Path, device: str) -> Path:
    """Call the command of a case, which must succeed; returns the folder of what it wrote, in which it ran."""
    content = {
        name: {**SETTINGS.get(name, {}), **OURS.get(name, {}), **case.settings.get(name, {})}
        for name in {*SETTINGS, *OURS}
    }
    write_text(out / "settings.yaml", yaml.safe_dump(content).replace(FOLDER, str(at.folder)))
    flags = {"settings": out / "settings.yaml", **FLAGS[case.command](at, out), **case.flags, "device": device}
    words = [case.command]
    for flag, value in flags.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if value is not None:
            words += [f"--{flag.replace('_', '-')}"] if flag else []
            words += [str(one).replace(FOLDER, str(at.folder)) for one in values if one != ""]
    given = io.BytesIO("\n".join(read_lines(at.text("test", "source"))[:3]).encode())
    with (
        patch("sys.stdin", SimpleNamespace(buffer=given, isatty=lambda: False)),
        (out / "stdout.txt").open("w", encoding="utf-8") as said,
        redirect_stdout(said),
    ):
        assert main(words) == 0
    return out
