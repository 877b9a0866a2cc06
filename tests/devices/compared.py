"""Whether two files hold the same results up to rounding."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
import torch

from heads.base.files import read_jsonl, read_tsv
from heads.model.checkpoint import load_tensors

TIMES = (
    "examples_per_second",
    "examples_per_second_sd",
    "ratio",
    "ratio_low",
    "ratio_high",
    "source_tokens_per_second",
)
LEFT_OUT = {*TIMES, "device", "peak_memory_mb", "provenance", "sha256"}
"""Names of values that are measured on a clock, or say where and how something was made."""


def files_of(folder: Path) -> set[str]:
    """The names of all files in a folder."""
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


def content_of(path: Path) -> Any:
    """What a file holds, as numbers, texts and lists of them; None for pages and other files for people."""
    if path.suffix == ".safetensors":
        return {name: value.double().flatten().tolist() for name, value in load_tensors(path)[0].items()}
    reads = {".tsv": read_tsv, ".jsonl": read_jsonl, ".json": lambda path: json.loads(path.read_text(encoding="utf-8"))}
    if path.suffix in reads:
        return reads[path.suffix](path)
    return path.read_text(encoding="utf-8") if path.suffix == ".txt" else None


def assert_alike(found: Any, wanted: Any, place: str) -> None:
    """Assert that two contents are the same, numbers up to rounding."""
    if isinstance(wanted, dict):
        assert found.keys() == wanted.keys(), place
        for name in wanted.keys() - LEFT_OUT:
            assert_alike(found[name], wanted[name], f"{place}, {name}")
    elif isinstance(wanted, list) and wanted and all(isinstance(one, float) for one in wanted):
        torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), rtol=2e-3, atol=2e-4, msg=place)
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), place
        for row, (one, other) in enumerate(zip(found, wanted, strict=True)):
            assert_alike(one, other, f"{place}, {row}")
    elif (number := number_of(wanted)) is not None:
        assert number_of(found) == pytest.approx(number, rel=2e-3, abs=2e-4), place
    else:
        assert found == wanted, place


def number_of(value: Any) -> float | None:
    """The number that a value is or spells, if any."""
    try:
        return float(value)
    except (TypeError, ValueError):
        return None


def assert_finite(content: Any, place: str) -> None:
    """Assert that every number is finite."""
    if isinstance(content, dict | list):
        for one in content.values() if isinstance(content, dict) else content:
            assert_finite(one, place)
    elif isinstance(content, float):
        assert math.isfinite(content), place
