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

from heads import cli
from heads.__main__ import command, main
from heads.base.files import read_lines, write_text
from heads.cli import _signature as signatures
from heads.config.analyses import LRP_RULES
from known_experiment import SETTINGS

SEARCH = {"beam": 1, "length_penalty": 0.0, "batch_tokens": 60, "sentences": 3}
NOISY = {"dropout": 0.2, "attention_dropout": 0.2}
OURS: dict[str, Mapping[str, Any]] = {
    "training": {"batch_tokens": 100, "micro_batch_tokens": 60, "learning_rate": 0.005, "adam_epsilon": 0.01,
                 "evaluate_every": 50, "dev_bleu_sentences": 1},
    "baseline": {"updates": 2, "average_last": 1},
    "gates": {"updates": 3, "gate_learning_rate": 0.3, "fixed_gates_share": 0.34},
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
"""Changes to the settings of the experiment with known answers, and sections that it lacks.

Three updates at twice this learning rate made 0.2 % of dev loss of a difference in the fifth digit, on one processor.
"""
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


def by_name(at: Place, out: Path, split: str) -> Flags:
    """What a flag that has to be given is, by its name, in every command that has it, unless OWN says otherwise."""
    return {
        **{side: at.tokens(split, side) for side in SIDES},
        **{f"{other}_{side}": at.tokens(other, side) for other in ("train", "dev") for side in SIDES},
        **{f"{side}_bpe": at.bpe / f"{side}.model" for side in SIDES},
        **{"references": at.text(split, "target"), "dev_references": at.text("dev", "target")},
        **dict.fromkeys(("model", "baseline", "start_model", "unpruned"), at.baseline),
        **{"settings": out / "settings.yaml", "data": at.bpe, "seed": 1, "scope": "all"},
        **{"checkpoints": at.folder / "checkpoints", "runs": at.folder / "pruned/all/lam-9/seed-1"},
        **{name: at.folder / f"{name}.tsv" for name in ("heads", "selection")},
    }


TESTED = {
    *("ablation", "ablation_out_of_domain", "checkpoints", "classified", "masked", "masking_curve", "score", "speed")
}
"""Commands that read the test split; the others read the dev split."""
FILES = {
    **{"model": "", "checkpoints": "checkpoints", "history": "train.jsonl", "gates_log": "gates.jsonl"},
    **{name: f"{name}.json" for name in ("bleu", "accuracy")},
    **{name: f"{name}.txt" for name in ("translations", "predictions", *SIDES)},
    **{"grams": "grams.safetensors", "output": "heads.html"},
}
"""What commands write, by the names of their flags; all else is a table that is called as its flag."""


def _curved(at: Place, out: Path) -> Flags:
    of = "" if at.kind == WORDS else f" of {at.kind}"
    importance, ablation = (at.made[f"{name}{of}"] for name in ("importance", "ablation"))
    masked = {"ablation_dev": ablation / "masked_dev.tsv", "ablation_test": ablation / "masked.tsv"}
    return {"importance": importance / "out.tsv", **masked}


def _linked(at: Place, out: Path) -> Flags:
    texts = {f"{side}{end}": at.text("dev", side) for side in SIDES for end in ("", "_words")}
    return {**texts, "links": at.folder / "links"}


def _with_trees(at: Place, out: Path) -> Flags:
    return {"trees": f"gold={at.folder / 'trees.conllu'}"}


def _shown(at: Place, out: Path) -> Flags:
    labels = {} if at.kind == WORDS else {"labels": at.text("test", "target")}
    return {"sentences": at.text("test", "source"), **labels, "out": out / "maps.json"}


def _opened(at: Place, out: Path) -> Flags:
    return {"model": at.folder / "theirs" if at.kind == STUDENT else at.baseline}


OWN: dict[str, Callable[[Place, Path], Flags]] = {
    **dict.fromkeys(("alignment_heads", "cross_attention_roles"), _linked),
    **dict.fromkeys(("dynamics", "roles"), _with_trees),
    **dict.fromkeys(("gates", "gates_from_scratch"), lambda at, out: {"target": "lam-0.5"}),
    "distilled": lambda at, out: {"text": at.text("train", "source"), "sentences": 4, "after": 1},
    "inspect": lambda at, out: {**_opened(at, out), "text": at.text("test", "source"), "sentences": 4, "masked": 1},
    "maps": _shown,
    "masking_curve": _curved,
    "prune": lambda at, out: {**_opened(at, out), "text": at.folder / "text.txt", "output": out / "small",
                              "keep": 3, "by": "gates", "updates": 2},
    "score": lambda at, out: {"text": at.text("test", "source"), "against": "no one's"},
    "translate": lambda at, out: {**_opened(at, out), "beam": 2, "length_penalty": 0.6},
}  # fmt: skip
"""Flags of a command that their names do not tell, or that need not be given."""


def flags_of(name: str) -> list[signatures.Flag]:
    """The flags of a command."""
    return signatures.flags_of(command(name, "heads")[0].run)


BY_STANZA = {"parser", "parser_model"}
"""Commands whose model is Stanza's."""
COMMANDS = [
    name
    for name in sorted({path.stem for path in Path(cli.__path__[0]).glob("[a-z]*.py")} - BY_STANZA)
    if "device" in {flag.name for flag in flags_of(name)}
]
"""All others that work on a device: `tests/test_house.py` has that they tell which it was."""


def usual_flags(name: str, at: Place, out: Path) -> Flags:
    """The usual flags of a command: those that have to be given, all that it writes, and its own."""
    usual, stage = by_name(at, out, "test" if name in TESTED else "dev"), command(name, "heads")[0].run
    asked = {flag.name: usual.get(flag.name) for flag in flags_of(name) if "default" not in flag.keywords}
    written = {output: out / FILES.get(output, f"{output}.tsv") for output in signatures.outputs_of(stage)}
    return {**asked, **written, **(OWN[name](at, out) if name in OWN else {})}


def run(case: Case, at: Place, out: Path, device: str) -> Path:
    """Call the command of a case, which must succeed; returns the folder of what it wrote, in which it ran."""
    content = {
        name: {**SETTINGS.get(name, {}), **OURS.get(name, {}), **case.settings.get(name, {})}
        for name in {*SETTINGS, *OURS}
    }
    write_text(out / "settings.yaml", yaml.safe_dump(content).replace(FOLDER, str(at.folder)))
    flags, words = {**usual_flags(case.command, at, out), **case.flags, "device": device}, [case.command]
    written = {flag.name: [word for word in flag.words[-1:] if word != flag.name] for flag in flags_of(case.command)}
    for name, value in flags.items():
        values = value if isinstance(value, (list, tuple)) else [value]
        if value is not None:
            words += [*written[name], *(str(one).replace(FOLDER, str(at.folder)) for one in values if one != "")]
    given = io.BytesIO("\n".join(read_lines(at.text("test", "source"))[:3]).encode())
    with (
        patch("sys.stdin", SimpleNamespace(buffer=given, isatty=lambda: False)),
        (out / "stdout.txt").open("w", encoding="utf-8") as said,
        redirect_stdout(said),
    ):
        assert main(words) == 0
    return out
