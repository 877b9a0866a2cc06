"""However heads were chosen, they are cut out of the same unpruned model, which is then fine-tuned."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from checkouts import TINY, checkout, snakemake

TINY_RUN = "results/tiny"
BASELINE = f"{TINY_RUN}/baseline/seed-1"


def test_every_choice_and_the_control_are_cut_out_of_the_baseline_by_their_own_heads(tmp_path: Path) -> None:
    done = snakemake(checkout(tmp_path), "-n", "-p", "--configfile", str(TINY))
    assert done.returncode == 0, done.stdout[-2000:]
    heads = {}
    for line in re.findall(r"python -m heads selected (.*)", done.stdout):
        words = shlex.split(line)
        flags = dict(zip(words[::2], words[1::2], strict=False))
        assert flags["--start-model"] == BASELINE
        heads[Path(flags["--model"]).relative_to(TINY_RUN)] = str(Path(flags["--heads"]).relative_to(TINY_RUN))
    by_gates = {
        Path(f"selected/all/{target}/seed-1"): f"pruned/all/{target}/seed-1/heads.tsv"
        for target in ("lam-0", "lam-50", "keep-6", "dsp-6")
    }
    by_measure = {
        Path(f"selected/all/{choice}/seed-1"): f"selected/all/{choice}/seed-1/heads.tsv"
        for choice in ("example_layer-6", "random1-6", "random2-6")
    }
    assert heads == by_gates | by_measure
