"""How fast Transformer-base trains and translates on a GPU, alone and several trainings side by side.

Run: PYTHONPATH=workflow:benchmarks python benchmarks/gpu/speed.py OUT [--small]. Writes OUT/speed/*.tsv. Text is
random, so no data is needed; losses mean nothing. `share` is the rate of the model's own arithmetic as a share of the
measured bf16 matrix rate: 6 operations for each weight and real token (Kaplan et al. 2020, sec. 2.1), none for padding.
A random model ends no sentence before its limit of twice its length, so the seconds of translating are an upper bound
for that number of sentences.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from measuring import FULL, SMALL, Sizes, about, matrix_rate, new_model, new_training, random_pairs, wait, write
from train import operations

from heads.text.batches import Pairs
from heads.text.packed import Packed
from heads.text.special_ids import PAD
from heads.training.devices import JOBS_A_GPU, pick
from heads.training.loop import Training, Update
from heads.translation.beam_search import beam_search


def share_of_padding(updates: list[Update]) -> float:
    """The share of padding among all positions in source and target batches."""
    batches = [batch for _, batches in updates for batch in batches if isinstance(batch, Packed)]
    places = sum(len(batch.source) + len(batch.target_input) for batch in batches)
    return sum(int((ids == PAD).sum()) for batch in batches for ids in (batch.source, batch.target_output)) / places


def updates_timed(training: Training, sizes: Sizes) -> dict[str, Any]:
    """Speed, arithmetic and memory of a training after its warm-up."""
    device, pairs, stream = training.plan.device, training.pairs, training.prepared(0)
    for _ in range(sizes.warm):
        training.step(*next(stream))
    wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    started, seen = time.perf_counter(), []
    for _ in range(sizes.updates):
        seen.append(next(stream))
        training.step(*seen[-1])
    read = time.perf_counter() - started
    training.losses.take()
    spent = time.perf_counter() - started
    stream.close()
    members = np.concatenate([update[0] for update in seen])
    source, target = (int((side.lengths[members] + 1).sum()) for side in (pairs.source, pairs.target))
    memory = torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0
    return {
        "target tokens/s": target / spent,
        "source tokens/s": source / spent,
        "ms an update": 1000 * spent / len(seen),
        "ms until its loss is read": 1000 * read / len(seen),
        "model TFLOP/s": operations(training.model, pairs, members) / spent / 1e12,
        "padding": share_of_padding(seen),
        "GiB": memory,
    }


def training_rows(sizes: Sizes, pairs: Pairs, device: torch.device, matrices: float) -> Iterator[dict[str, Any]]:
    """Updates with and without gates, with few and with many tokens."""
    for batch_tokens in sizes.batch_tokens:
        for gates in ("", "enc_self", "all"):
            found = updates_timed(new_training(sizes, pairs, device, batch_tokens, gates), sizes)
            how = {"batch tokens": batch_tokens, "gates": gates or "none"}
            yield how | found | {"share": found["model TFLOP/s"] * 1e12 / matrices}


@torch.no_grad()
def translating_rows(sizes: Sizes, pairs: Pairs, device: torch.device) -> Iterator[dict[str, Any]]:
    """The time of beam search with beam size 4 over a test set, by batch size; a tenth of it first, as a warm-up."""
    model = new_model(sizes).eval().to(device)
    for batch_tokens in sizes.beam_tokens:
        for limit in (sizes.sentences // 10, sizes.sentences):
            started, subwords = time.perf_counter(), 0
            for _, batch in pairs.in_order(batch_tokens, limit):
                there = batch.to(device)
                found = beam_search(model, there.source, there.source_mask, beam=4, length_penalty=0.6)
                subwords += sum(map(len, found))
            spent = time.perf_counter() - started
        yield {"sentences": limit, "beam": 4, "batch tokens": batch_tokens, "seconds": spent, "subwords": subwords}


def side_by_side_rows(sizes: Sizes, device: str, folder: Path) -> Iterator[dict[str, Any]]:
    """Total target tokens per second of several trainings that share the device, each in its own process."""
    command = [
        sys.executable,
        __file__,
        str(folder),
        "--device",
        device,
        "--one",
        *(["--small"] if sizes == SMALL else []),
    ]
    environment = {**os.environ, JOBS_A_GPU: str(1 + max(sizes.side_by_side))}  # this process takes a place too
    for number in sizes.side_by_side:
        ones = [
            subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
            for _ in range(number)
        ]
        try:
            for one in ones:  # wait until the last has warmed up
                assert one.stdout
                assert one.stdout.readline() == "ready\n"
            for one in ones:
                assert one.stdin
                print("go", file=one.stdin, flush=True)
            speeds = [float(one.communicate(timeout=300)[0]) for one in ones]
        finally:
            for one in ones:
                one.kill()
                one.wait(60)
        yield {"trainings": number, "target tokens/s of all": sum(speeds), "of the slowest": min(speeds)}


def one_of_several(sizes: Sizes, pairs: Pairs, device: torch.device) -> None:
    """Warm up, train with gates once a line arrives on standard input, and print the speed."""
    training = new_training(sizes, pairs, device, sizes.batch_tokens[0], "all")
    updates_timed(training, sizes)
    print("ready", flush=True)
    sys.stdin.readline()
    print(updates_timed(training, sizes)["target tokens/s"], flush=True)


def main() -> None:
    """Measure everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--device", default="auto", help="as for every command")
    parser.add_argument("--small", action="store_true", help="sizes that a CPU does in seconds")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    flags = parser.parse_args()
    os.environ.setdefault(JOBS_A_GPU, "1")
    sizes, device, folder = SMALL if flags.small else FULL, pick(flags.device, 1), flags.out / "speed"
    with tempfile.TemporaryDirectory() as place:
        pairs = random_pairs(sizes, Path(place))
        if flags.one:
            one_of_several(sizes, pairs, device)
            return
        write(folder / "about.tsv", about(device))
        matrices = matrix_rate(device, torch.bfloat16, sizes.matrix)
        write(folder / "training.tsv", list(training_rows(sizes, pairs, device, matrices)))
        write(folder / "translating.tsv", list(translating_rows(sizes, pairs, device)))
    write(folder / "side_by_side.tsv", list(side_by_side_rows(sizes, flags.device, flags.out)))


if __name__ == "__main__":
    main()
