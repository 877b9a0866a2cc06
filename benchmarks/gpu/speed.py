"""What a GPU is, how fast Transformer-base trains and translates there, and whether everything works, in two minutes.

Run: PYTHONPATH=workflow:benchmarks python benchmarks/gpu/speed.py OUT [--text FOLDER] [--small]. Writes tables to
OUT/speed, what matters first, so that little is lost if the time runs out. Exit status 1 if a test failed. Subwords
are random, so losses mean nothing; sentences are as long as those of the paper's text, or of the folder of subwords
(`bpe`) given.

Hugging Face's Marian, if transformers is installed, trains on the same sentences, with cuDNN's attention as torch has
it and switched off as ours. `share` is the rate of the model's own arithmetic as a share of the measured bf16 matrix
rate: 6 operations for each weight and real token (Kaplan et al. 2020, sec. 2.1), none for padding. A random model ends
no sentence before its limit of twice its length, so the seconds of translating are an upper bound.
"""

import argparse
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from kernels import attention_rows
from measuring import (
    FULL,
    SMALL,
    Sizes,
    about,
    environment,
    matrix_rate,
    new_model,
    new_training,
    random_pairs,
    seconds,
    share_of_padding,
    wait,
    write,
)
from numpy.typing import NDArray
from torch.profiler import ProfilerActivity, profile
from train import operations

from heads.text.batches import Pairs
from heads.text.special_ids import BOS, EOS, PAD
from heads.training.devices import pick
from heads.training.loop import Training
from heads.translation.beam_search import beam_search

ROOT = Path(__file__).parents[2]
TEST_SECONDS = 240
MOST_OPERATORS = 40


def rates(sizes: Sizes, device: torch.device) -> list[dict[str, Any]]:
    """The rates of square matrix products in bf16 and fp32, and of copies within the device's memory."""
    rows: list[dict[str, Any]] = [
        {"what": f"{dtype} matrices of {sizes.matrix}".removeprefix("torch."), "unit": "TFLOP/s",
         "rate": matrix_rate(device, dtype, sizes.matrix) / 1e12}
        for dtype in (torch.bfloat16, torch.float32)
    ]  # fmt: skip
    block = torch.randn(16 * sizes.matrix**2 // 4, device=device)
    other = torch.empty_like(block)
    moved = 2 * block.numel() * block.element_size()
    rate = moved / seconds(lambda: other.copy_(block), device, 12)
    return [*rows, {"what": "copies, bytes read and written", "unit": "GB/s", "rate": rate / 1e9}]


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
    return {
        **tokens_a_second(pairs, members, spent),
        "ms an update": 1000 * spent / len(seen),
        "ms until its loss is read": 1000 * read / len(seen),
        "model TFLOP/s": operations(training.model, pairs, members) / spent / 1e12,
        "padding": share_of_padding(batch for _, batches in seen for batch in batches),
        "GiB": memory(device),
    }


def tokens_a_second(pairs: Pairs, members: NDArray[np.int64], spent: float) -> dict[str, float]:
    """Real tokens of these pairs a second, EOS included."""
    source, target = (int((side.lengths[members] + 1).sum()) for side in (pairs.source, pairs.target))
    return {"target tokens/s": target / spent, "source tokens/s": source / spent}


def memory(device: torch.device) -> float:
    """The largest memory in GiB that tensors have had on a GPU."""
    return torch.cuda.max_memory_allocated(device) / 2**30 if device.type == "cuda" else 0.0


def training_rows(sizes: Sizes, pairs: Pairs, device: torch.device, matrices: float) -> Iterator[dict[str, Any]]:
    """Updates of ours with and without gates, with few and with many tokens, and of Marian."""
    for batch_tokens in sizes.batch_tokens:
        for gates in ("", "all"):
            found = updates_timed(new_training(sizes, pairs, device, batch_tokens, gates), sizes)
            share = {"share": found["model TFLOP/s"] * 1e12 / matrices}
            yield {"model": "ours", "batch tokens": batch_tokens, "gates": gates or "none"} | found | share
    if find_spec("transformers"):
        empty = dict.fromkeys(("ms until its loss is read", "model TFLOP/s", "share"), "")
        for cudnn in (True, False):
            torch.backends.cuda.enable_cudnn_sdp(enabled=cudnn)
            found = marian_timed(sizes, pairs, device)
            name = f"Marian{' with cuDNN' * cudnn}"
            yield {"model": name, "batch tokens": sizes.batch_tokens[0], "gates": "none"} | found | empty
    torch.backends.cuda.enable_cudnn_sdp(enabled=False)


def marian_step(sizes: Sizes, pairs: Pairs, device: torch.device) -> Callable[[NDArray[np.int64]], float]:
    """A function that updates a new MarianMTModel of our sizes on pairs, and returns their share of padding."""
    theirs: Any = import_module("transformers")
    own = sizes.model
    each = {"layers": own.layers, "attention_heads": own.heads, "ffn_dim": own.feedforward}
    shape = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in each.items()}
    model = theirs.MarianMTModel(
        theirs.MarianConfig(
            vocab_size=sizes.subwords, decoder_vocab_size=sizes.subwords, d_model=sizes.model.width, dropout=0.3,
            activation_function="relu", max_position_embeddings=512, pad_token_id=PAD, bos_token_id=BOS,
            eos_token_id=EOS, decoder_start_token_id=BOS, forced_eos_token_id=None, attn_implementation="sdpa",
            use_cache=False, share_encoder_decoder_embeddings=False, tie_word_embeddings=False, **shape,
        )
    ).to(device).train()  # fmt: skip
    adam = torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)

    def step(members: NDArray[np.int64]) -> float:
        """Update the weights on these pairs; returns their share of padding."""
        batch = pairs.batch(members).to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = model(
                input_ids=batch.source,
                attention_mask=batch.source_mask.long(),
                decoder_input_ids=batch.target_input,
                decoder_attention_mask=batch.target_mask.long(),
            ).logits
        wanted = batch.target_output.masked_fill(~batch.target_mask, -100).flatten()
        adam.zero_grad(set_to_none=True)
        F.cross_entropy(logits.flatten(0, 1).float(), wanted, label_smoothing=0.1).backward()
        adam.step()
        real = sum(int((side.lengths[members] + 1).sum()) for side in (pairs.source, pairs.target))
        return 1 - real / (batch.source.numel() + batch.target_input.numel())

    return step


def marian_timed(sizes: Sizes, pairs: Pairs, device: torch.device) -> dict[str, Any]:
    """Speed and memory of Hugging Face's Marian on the pairs of our updates."""
    order, step = pairs.epoch(sizes.batch_tokens[0], 1, 0), marian_step(sizes, pairs, device)
    for members in order[: sizes.warm]:
        step(members)
    wait(device)
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
    chosen, started = order[sizes.warm : sizes.warm + sizes.updates], time.perf_counter()
    shares = [step(members) for members in chosen]
    wait(device)
    spent = time.perf_counter() - started
    speed = tokens_a_second(pairs, np.concatenate(chosen), spent)
    timed = {"ms an update": 1000 * spent / len(chosen), "padding": float(np.mean(shares)), "GiB": memory(device)}
    return speed | timed


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


def traced(sizes: Sizes, pairs: Pairs, device: torch.device) -> list[dict[str, Any]]:
    """The operators of one update, after a warm-up, that take the most time on the device, and all waits for CUDA."""
    training = new_training(sizes, pairs, device, sizes.batch_tokens[0])
    updates = training.prepared(0)
    for _ in range(sizes.warm):
        training.step(*next(updates))
    wait(device)
    on_gpu = device.type == "cuda"
    with profile(activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]) as found:
        training.step(*next(updates))
        wait(device)
    updates.close()
    events = [
        (event.self_device_time_total if on_gpu else event.self_cpu_time_total, event.key, event)
        for event in found.key_averages()
    ]
    whole = sum(spent for spent, _, _ in events) or 1.0
    rows = [
        {"operator": name, "calls": event.count, "device ms": event.self_device_time_total / 1000,
         "CPU ms": event.self_cpu_time_total / 1000, "share": spent / whole}
        for spent, name, event in sorted(events, key=lambda each: each[:2], reverse=True)
    ]  # fmt: skip
    waits = [row for row in rows[MOST_OPERATORS:] if "Synchronize" in row["operator"] or "Memcpy" in row["operator"]]
    return [*rows[:MOST_OPERATORS], *waits]


def tests() -> list[dict[str, str]]:
    """The outcome of every test that needs a GPU."""
    with tempfile.TemporaryDirectory() as place:
        report = Path(place) / "report.xml"
        words = ["-m", "gpu", "-q", "-p", "no:cacheprovider", f"--junitxml={report}", "tests/training"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *words], cwd=ROOT, check=False, timeout=TEST_SECONDS, env=environment(),
        )  # fmt: skip
        cases = list(ET.parse(report).iter("testcase"))
    return [
        {
            "test": case.attrib["name"],
            "seconds": case.attrib["time"],
            "ended": next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed"),
        }
        for case in cases
    ]


def main() -> int:
    """Measure everything and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--text", type=Path, help="folder with train.{source,target}.safetensors, for their lengths")
    parser.add_argument("--device", default="auto", help="as for every command")
    parser.add_argument("--small", action="store_true", help="sizes that a CPU does in seconds")
    flags = parser.parse_args()
    sizes, device, folder = SMALL if flags.small else FULL, pick(flags.device, 1), flags.out / "speed"
    with tempfile.TemporaryDirectory() as place:
        pairs = random_pairs(sizes, Path(place), flags.text)
        write(folder / "about.tsv", about(device))
        write(folder / "rates.tsv", rates(sizes, device))
        matrices = matrix_rate(device, torch.bfloat16, sizes.matrix)
        write(folder / "training.tsv", list(training_rows(sizes, pairs, device, matrices)))
        write(folder / "attention.tsv", list(attention_rows(sizes, pairs, device)))
        write(folder / "translating.tsv", list(translating_rows(sizes, pairs, device)))
        write(folder / "operators.tsv", traced(sizes, pairs, device))
    write(folder / "tests.tsv", ended := tests())
    return int(any(row["ended"] in ("failure", "error") for row in ended))


if __name__ == "__main__":
    sys.exit(main())
