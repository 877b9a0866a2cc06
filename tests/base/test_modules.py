"""Modules that a stage consists of, by their import lines, against what the interpreter imports."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from heads.base.modules import reached
from test_house import MODULES, imports, module_of

RULES = Path(__file__).parents[2] / "workflow/rules"
ROOMS = ("analysis", "analysis.lrp", "syntax", "base.bootstrap")
STAGES = sorted(
    {stage for path in RULES.glob("*.smk") for stage in re.findall(r'code_of\("(\w+)"\)', path.read_text())}
)


def test_rules_ask_for_the_code_of_stages() -> None:
    assert len(STAGES) > 10 and {f"cli.{stage}" for stage in STAGES} <= {*MODULES}


@pytest.mark.parametrize("stage", STAGES)
def test_a_stage_is_made_of_all_that_it_imports_and_that_those_import(stage: str) -> None:
    graph = {module: {module_of(name) for name in imports(path)} & {*MODULES} for module, path in MODULES.items()}
    whole: set[str] = set()
    new = graph[f"cli.{stage}"]
    while new - whole:
        whole |= new
        new = set().union(*(graph[module] for module in whole))
    own = {module for module in whole if module in ROOMS or module.rpartition(".")[0] in ROOMS}
    assert {*reached(f"cli.{stage}", ROOMS)} == own
