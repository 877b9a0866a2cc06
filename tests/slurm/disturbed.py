"""A training on the cluster that is interrupted twice, first by its time limit and then by the loss of its node."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml
from cluster import SPARE, SPARES, Cluster, lose, node, processes_with

from checkouts import TINY, checkout, snakemake
from heads.base.files import UserError, write_text
from heads.model.checkpoint import load_tensors

RUN = "results/tiny/baseline/seed-1"
MODEL = f"{RUN}/model.safetensors"
UNDISTURBED, SECOND_LOG, LONG = "undisturbed.safetensors", "second.txt", "long.yaml"
LONGER = {
    "training": {"evaluate_every": 250, "dev_bleu_sentences": 0},
    "baseline": {"updates": 500, "average_every": 250, "checkpoint_updates": []},
}


@dataclass(frozen=True)
class Training:
    """A checkout whose baseline is trained by Snakemake on the spare node."""

    cluster: Cluster
    folder: Path
    snakemake: subprocess.Popen[bytes]

    @property
    def log(self) -> str:
        """The log of the current try so far, or of the one before it."""
        path = self.folder / RUN / "log/baseline.txt"
        return path.read_text(encoding="utf-8") if path.exists() else ""

    @property
    def saved(self) -> int:
        """The last saved update; 0 if there is none."""
        try:
            return int(load_tensors(self.folder / RUN / "unfinished/state.safetensors")[1]["update"])
        except UserError:
            return 0

    def wait_until(self, true: Callable[[], bool], seconds: float = 120) -> None:
        """Wait; raise RuntimeError if Snakemake has ended or this takes too long."""
        deadline = time.monotonic() + seconds
        while not true():
            if self.snakemake.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"waited in vain: {self.log}\n{self.cluster.last_words()}")
            time.sleep(0.1)

    def job(self, what: str, state: str) -> str:
        """The number (%i) or the node (%N) of its job in the given state; empty if there is none."""
        words = ("squeue", "--noheader", f"--format={what}", f"--partition={SPARE}", f"--states={state}")
        return self.cluster.say(*words).strip()


def long_checkout(folder: Path) -> Path:
    """A checkout with a training of some seconds, which saves often and asks for the spare node."""
    checkout(folder)
    write_text(folder / LONG, yaml.safe_dump({"experiments": {"tiny": LONGER}}))
    shutil.copy(TINY, folder)
    rules, profile = folder / "workflow/rules/models.smk", folder / "profiles/slurm/config.yaml"
    text = rules.read_text(encoding="utf-8")
    assert text.count("heads {params.stage:q}") == 1
    write_text(rules, text.replace("heads {params.stage:q}", "heads {params.stage:q} --save-every-seconds 0.2"))
    write_text(profile, profile.read_text().replace("# slurm_partition: gpu", f"slurm_partition: {SPARE}"))
    return folder


def train_undisturbed(folder: Path, other: Path) -> None:
    """Run the same training in another checkout, on this machine and in one go; copy its model and its data."""
    done = snakemake(long_checkout(other), "--cores", "1", "--configfile", TINY.name, LONG, "--", MODEL)
    assert done.returncode == 0, done.stdout[-3000:]
    shutil.copytree(other / "results", folder / "results", ignore=shutil.ignore_patterns("baseline"))
    shutil.copy(other / MODEL, folder / UNDISTURBED)


def disturb(training: Training) -> None:
    """Interrupt the training twice and wait for its end; leave nothing on the spare nodes, whatever happens."""
    with ExitStack() as daemons:
        for name in SPARES:
            daemons.callback(lose, training.cluster, name)
        for name in SPARES:
            daemons.enter_context(node(training.cluster, name))
        hit_by_time_limit(training)
        hit_by_loss_of_node(training)
        training.snakemake.wait(300)


def hit_by_time_limit(training: Training) -> None:
    """Let the time limit expire in the middle of the training.

    slurmctld looks for such jobs twice a minute. The training is stopped until then, so that it need not last as
    long: SLURM wakes what it ends.
    """
    training.wait_until(lambda: training.saved > 0)
    [process] = [one for one in processes_with(training.cluster, f"SLURMD_NODENAME={SPARE}") if is_training(one)]
    os.kill(int(process.name), signal.SIGSTOP)
    training.cluster.say("scontrol", "update", f"JobId={training.job('%i', 'RUNNING')}", "EndTime=now")


def is_training(process: Path) -> bool:
    """Whether a process is the training itself, and not one of its parents."""
    try:
        return (process / "cmdline").read_bytes().split(b"\0")[1:4] == [b"-m", b"heads", b"baseline"]
    except OSError:  # it has just ended
        return False


def hit_by_loss_of_node(training: Training) -> None:
    """Lose the node once the second try has made progress; keep its log, which the third one overwrites.

    SLURM itself requeues the job for another node, but would let it wait until its two-minute credential has expired.
    """
    training.wait_until(lambda: "resumed at" in training.log)
    begun = training.log
    write_text(training.folder / SECOND_LOG, begun)
    training.wait_until(lambda: training.saved > resumed(begun))
    number = training.job("%i", "RUNNING")
    lose(training.cluster, training.job("%N", "RUNNING"))
    training.wait_until(lambda: training.job("%i", "PENDING") == number)
    training.cluster.say("scontrol", "update", f"JobId={number}", "StartTime=now")


def resumed(log: str) -> int:
    """The update at which a training resumed; 0 if it started afresh."""
    found = re.search(r"^resumed at update (\d+)$", log, re.MULTILINE)
    return int(found[1]) if found else 0
