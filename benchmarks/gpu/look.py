"""What a GPU is and whether everything works there: driver, versions, matrix rates, tests that need it, one update.

Run: PYTHONPATH=workflow python benchmarks/gpu/look.py OUT [--small]. Writes OUT/look/*.tsv. Exit status 1 if a test
failed. `operators.tsv` profiles one update of Transformer-base with 16,000 source tokens: what costs most and, by the
names of CUDA's own calls, how often the CPU waited for the GPU.
"""

import argparse
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import torch
from measuring import (
    FULL,
    SMALL,
    Sizes,
    about,
    environment,
    matrix_rate,
    new_training,
    random_pairs,
    seconds,
    wait,
    write,
)
from torch.profiler import ProfilerActivity, profile

from heads.training.devices import pick

ROOT = Path(__file__).parents[2]
TEST_SECONDS = 240
MOST_OPERATORS = 40


def rates(sizes: Sizes, device: torch.device) -> list[dict[str, Any]]:
    """The rates of square matrix products in each precision, and of copies within the device's memory."""
    kinds = {"bf16": (torch.bfloat16, False), "fp32": (torch.float32, False), "tf32": (torch.float32, True)}
    rows: list[dict[str, Any]] = [
        {"what": f"{name} matrices of {sizes.matrix}", "unit": "TFLOP/s",
         "rate": matrix_rate(device, dtype, sizes.matrix, tf32=tf32) / 1e12}
        for name, (dtype, tf32) in kinds.items()
    ]  # fmt: skip
    block = torch.randn(16 * sizes.matrix**2 // 4, device=device)
    other = torch.empty_like(block)
    moved = 2 * block.numel() * block.element_size()
    rate = moved / seconds(lambda: other.copy_(block), device, 12)
    return [*rows, {"what": "copies, bytes read and written", "unit": "GB/s", "rate": rate / 1e9}]


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


def traced(sizes: Sizes, device: torch.device) -> list[dict[str, Any]]:
    """The operators of one update, after a warm-up, that take the most time on the device (GPU or CPU)."""
    with tempfile.TemporaryDirectory() as place:
        training = new_training(sizes, random_pairs(sizes, Path(place)), device, sizes.batch_tokens[0])
        updates = training.prepared(0)
        for _ in range(sizes.warm):
            training.step(*next(updates))
        wait(device)
        on_gpu = device.type == "cuda"
        activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
        with profile(activities=activities) as found:
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


def main() -> int:
    """Run all checks and write their tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="folder to write into")
    parser.add_argument("--device", default="auto", help="as for every command")
    parser.add_argument("--small", action="store_true", help="sizes that a CPU does in seconds")
    flags = parser.parse_args()
    sizes, device, folder = SMALL if flags.small else FULL, pick(flags.device, 1), flags.out / "look"
    write(folder / "about.tsv", about(device))
    write(folder / "rates.tsv", rates(sizes, device))
    write(folder / "operators.tsv", traced(sizes, device))
    ended = tests()
    write(folder / "tests.tsv", ended)
    return int(any(row["ended"] in ("failure", "error") for row in ended))


if __name__ == "__main__":
    sys.exit(main())
