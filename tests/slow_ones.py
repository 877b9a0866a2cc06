"""Which of many similar cases `make test` tries; `make test-all` tries the others."""

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def slow_but(quick: Collection[Any], cases: Iterable[Any]) -> list[Any]:
    """All cases as parameters, those marked as slow that are not among the quick ones."""
    known = [*cases]
    assert all(case in known for case in quick), f"{quick} are not all among {known}"
    marks = [() if case in quick else pytest.mark.slow for case in known]
    several = [case if isinstance(case, tuple) else (case,) for case in known]
    return [pytest.param(*each, marks=mark) for each, mark in zip(several, marks, strict=True)]
