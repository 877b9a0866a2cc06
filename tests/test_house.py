"""The architecture holds: which room may import which, what is free of torch, pins that agree, readable file sizes."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Literal

import pytest

from heads.__main__ import FOR_PEOPLE
from heads.base.files import read_lines, read_yaml
from heads.config.settings import STAGE_SECTIONS
from last_words import costs
from slow_ones import slow_but

ROOT = Path(__file__).parent.parent
WORKFLOW = ROOT / "workflow"
PACKAGE = WORKFLOW / "heads"
MODULES = {".".join(p.relative_to(PACKAGE).with_suffix("").parts): p for p in sorted(PACKAGE.rglob("*.py"))}

SNAKEFILES = (ROOT / "Snakefile", WORKFLOW / "Snakefile", *sorted(WORKFLOW.glob("rules/*.smk")))

ROOMS = (
    "base",
    "interop.formats",
    "config",
    "text",
    "model",
    "pruning",
    "syntax",
    "translation",
    "interop",
    "analysis",
    "analysis.lrp",
    "corpus",
    "corpus.grammar",
    "training",
    "tables",
    "figures",
    "explore",
    "one_model",
    "cli",
)
"""A room imports only from those before it; a room inside another may also be imported by that other.

What the workflow is planned with, of all that `interop` knows of other people's models, counts as a room of its own.
"""
FAMILIES = tuple(f"interop.{path.parent.name}" for path in sorted(PACKAGE.glob("interop/*/family.py")))
"""Folders inside the room `interop`, each of a family of such models."""

WITHOUT_TORCH = ("base", "interop.formats", "config", "corpus", "corpus.grammar", "tables", "figures", "explore")
"""Rooms without torch; below, single modules of other rooms without it."""
MODULES_WITHOUT_TORCH = (
    "text.vocabulary",
    "text.labels",
    "text.encoding",
    "text.wordpieces",
    "model.shape",
    "pruning.selection",
    "syntax.conllu",
    "syntax.tokenising",
    "syntax.attachment_scores",
    "syntax.words",
    "translation.bleu",
    "analysis.roles",
    "analysis.attention_maps",
    "analysis.alignment_heads",
    "syntax.pharaoh",
)
HEAVY = ("torch", "numpy", "pandas", "matplotlib", "sentencepiece", "sacrebleu", "safetensors")


def planned() -> frozenset[str]:
    """The modules of `interop` that `interop.formats` imports, directly or not, and itself."""
    found, waiting = set[str](), {"interop.formats"}
    while waiting:
        found |= waiting
        named = {module_of(name) for module in waiting for name in imports(MODULES[module])}
        waiting = {module for module in named if module.startswith("interop.")} - found
    return frozenset(found)


def room(module: str) -> str:
    """The innermost room of a module, such as `analysis.lrp` of `analysis.lrp.backward`."""
    if module in PLANNED or module_of(module) in PLANNED:
        return "interop.formats"
    parts = module.split(".")
    named = [".".join(parts[:end]) for end in range(len(parts), 0, -1)]
    return next((name for name in named if name in ROOMS), parts[0])


@cache
def imports(path: Path) -> tuple[str, ...]:
    """The modules of `heads` that a file imports, whether at its top or inside a function."""
    tree, found = ast.parse(path.read_text(encoding="utf-8")), list[str]()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path} has a relative import"
            found += [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
    return tuple(name.removeprefix("heads.") for name in found if name.startswith("heads."))


def module_of(imported: str) -> str:
    """The module that contains an imported name."""
    return imported if imported in MODULES else imported.rpartition(".")[0]


PLANNED = planned()


def test_a_room_imports_only_from_those_before_it() -> None:
    row = {name: number for number, name in enumerate(ROOMS)}
    wrong = []
    for module, path in MODULES.items():
        if module in ("__init__", "__main__"):
            continue
        mine = room(module)
        assert mine in row, f"{module} stands in no room: put it into one of {', '.join(ROOMS)}"
        for imported in imports(path):
            other = room(imported)
            inner = other.startswith(f"{mine}.")
            if other != mine and not inner and row[other] >= row[mine]:
                wrong.append(f"{module} imports {imported}")
    assert not wrong


def test_no_circle_of_modules() -> None:
    graph = {module: {module_of(name) for name in imports(path)} & {*MODULES} for module, path in MODULES.items()}
    done: set[str] = set()
    while ready := [module for module in graph if module not in done and graph[module] <= done | {module}]:
        done |= {*ready}
    assert not graph.keys() - done


def test_the_rooms_are_few_and_each_says_in_one_sentence_what_it_holds() -> None:
    folders = {str(path.parent.relative_to(PACKAGE)).replace("/", ".") for path in PACKAGE.rglob("*.py")} - {"."}
    rooms = {*ROOMS} - {"interop.formats"}
    assert folders == rooms | {*FAMILIES} and len(rooms) <= 18
    for name in folders:
        said = ast.get_docstring(ast.parse((PACKAGE / name.replace(".", "/") / "__init__.py").read_text("utf-8")))
        assert said and 20 < len(said.partition("\n")[0]) < 120, name


def loaded_by(statements: list[str], packages: tuple[str, ...]) -> dict[str, list[str]]:
    """Which of the packages are loaded in a fresh process after each of these imports in turn."""
    code = (
        "import json, sys\n"
        "found = {}\n"
        "for statement in json.loads(sys.argv[1]):\n"
        "    exec(statement)\n"
        "    found[statement] = [name for name in json.loads(sys.argv[2]) if name in sys.modules]\n"
        "print(json.dumps({statement: names for statement, names in found.items() if names}))"
    )
    found: dict[str, list[str]] = json.loads(printed(code, json.dumps(statements), json.dumps(packages)))
    return found


def printed(code: str, *words: str) -> str:
    """What code prints in a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(WORKFLOW)}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=300).stdout


def test_no_torch_where_none_is_needed() -> None:
    light = [module for module in MODULES if room(module) in WITHOUT_TORCH or module in MODULES_WITHOUT_TORCH]
    assert len(light) > 60 and {*MODULES_WITHOUT_TORCH} <= {*light}
    modules = [module.removesuffix(".__init__") for module in light]
    assert not loaded_by([f"import heads.{module}" for module in modules], ("torch",))


def test_what_the_snakefile_imports_is_light_so_that_a_dry_run_stays_instant() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in SNAKEFILES)
    statements = re.findall(r"^ *(from heads[\w.]* import (?:\([^)]*\)|.*))$", text, re.MULTILINE)
    assert len(statements) > 3
    assert not loaded_by([*statements, "import snakemake_logger_plugin_heads"], HEAVY)


@pytest.mark.slow
def test_what_runs_on_a_gpu_needs_no_snakemake_no_parser_and_no_solver() -> None:
    """A machine with a GPU may have torch and little else."""
    rules = {*read_yaml(ROOT / "profiles/gpu/config.yaml")["set-resources"], "pruned"}
    commands = sorted(rules & {path.stem for path in (PACKAGE / "cli").glob("*.py")})
    assert len(commands) > 12
    packages = ("snakemake", "stanza", "pulp", "pandas", "seaborn", "matplotlib")
    assert not loaded_by([f"import heads.cli.{command}" for command in commands], packages)


def test_what_a_stage_imports_is_not_searched_for_garbage_and_what_it_makes_is() -> None:
    code = "import gc, heads.__main__ as m; m.imported('table'); print(gc.get_freeze_count(), gc.isenabled())"
    frozen, searched = printed(code).split()
    assert int(frozen) > 50000 and searched == "True"


@pytest.mark.parametrize("path", sorted((ROOT / "envs").glob("*.yaml")), ids=lambda path: path.name)
def test_conda_files_hold_the_pins_of_the_requirements(path: Path) -> None:
    pins = {line for line in read_lines(ROOT / "envs" / "requirements.txt") if line and not line.startswith("#")}
    assert all(re.fullmatch(r"[\w.-]+==[\w.+]+", pin) for pin in pins)
    assert len({pin.split("==")[0].lower() for pin in pins}) == len(pins)
    (inner,) = [entry["pip"] for entry in read_yaml(path)["dependencies"] if isinstance(entry, dict)]
    assert len(inner) > 5
    assert set(inner) <= pins


def test_every_module_and_every_public_function_says_what_it_is() -> None:
    silent = []
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        if tree.body and not ast.get_docstring(tree):
            silent.append(module)
        classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
        for node in [*tree.body, *(inner for one in classes for inner in one.body)]:
            if isinstance(node, ast.ClassDef | ast.FunctionDef) and not node.name.startswith("_"):
                silent += [] if ast.get_docstring(node) else [f"{module} {node.name}"]
    assert not silent


def test_modules_and_functions_fit_a_sitting() -> None:
    long = []
    for module, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if text.count("\n") > 300:
            long.append(f"{module}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno >= 50:
                long.append(f"{module}.{node.name}: {node.end_lineno - node.lineno + 1} lines")
    assert not long


def test_rule_files_fit_a_sitting_and_the_first_one_only_leads_on() -> None:
    lengths = {path.name: path.read_text(encoding="utf-8").count("\n") for path in SNAKEFILES[1:]}
    assert len(lengths) > 10 and not {name: length for name, length in lengths.items() if length > 250}
    lines = [line for line in SNAKEFILES[0].read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert lines == ['include: "workflow/Snakefile"', 'workflow.default_target = "all"']


def test_every_stage_with_settings_has_its_command_and_every_command_its_function() -> None:
    commands = {module.removeprefix("cli."): path for module, path in MODULES.items() if module.startswith("cli.")}
    commands = {name: path for name, path in commands.items() if not name.startswith("_")}
    assert set(STAGE_SECTIONS) <= set(commands)
    for name, path in commands.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        assert "run" in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, name


OF_FLAGS = {"__main__", "cli._signature", "cli._flags", "cli.translate", "interop.translate_onnx"}
"""What knows of argparse: the command, those who parse a flag, and a script that runs without this package."""


def test_flags_are_known_to_commands_alone() -> None:
    wrong = {module for module, path in MODULES.items() if "argparse" in path.read_text(encoding="utf-8")} - OF_FLAGS
    assert not wrong, f"{wrong} know of flags: give them plain values"


SHARED_BY_COMMANDS = {
    "cli._flags": r"named_path|compared_corpus|tokeniser_named|pair|text",
    "cli._job": "job_of",
}
"""What commands share: values of flags, and the job that the flags of a training describe together."""


def test_a_command_is_one_function_that_opens_calls_and_writes_and_groups_of_its_flags() -> None:
    wrong = []
    for module, path in MODULES.items():
        if not module.startswith("cli.") or module in ("cli.__init__", "cli._signature"):
            continue
        text = path.read_text(encoding="utf-8")
        tree = ast.parse(text)
        functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(tree):
            group = "dataclass(frozen=True, kw_only=True)" in map(ast.unparse, getattr(node, "decorator_list", ()))
            if isinstance(node, ast.Lambda) or (isinstance(node, ast.ClassDef) and not group):
                wrong.append(f"{module} has more than one function and groups of flags: {ast.unparse(node)[:80]}")
        for name, node in functions.items():
            lines = (node.end_lineno or 0) - node.body[0].lineno + 1
            shared = re.fullmatch(SHARED_BY_COMMANDS.get(module, ""), name)
            of_a_flag = f'"type": {name}' in text and lines <= 8
            if not (shared or of_a_flag or (name == "run" and lines <= 30)):
                wrong.append(f"{module}.{name}, {lines} lines: put it into the room where it belongs")
    assert not wrong


def test_a_command_that_works_on_a_device_tells_which_it_was() -> None:
    recorded = [module for module in MODULES if re.match(r"cli\.[a-z]", module)]
    for module in [module for module in recorded if module.removeprefix("cli.") not in FOR_PEOPLE]:
        tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
        called = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
        (run,) = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "run"]
        tells = run.returns is not None and ast.unparse(run.returns) == "str"
        assert tells == bool(called & {"pick", "pick_each", "job_of"}), module


WAITING = ("run", "call", "check_call", "check_output")


def waits_for_ever(path: Path) -> Iterator[str]:
    """Calls in a file that wait for another process or thread without a time limit."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.Call) or any(word.arg == "timeout" for word in node.keywords):
            continue
        owner, _, name = ast.unparse(node.func).rpartition(".")
        starts = (owner == "subprocess" and name in WAITING) or (not owner and name in WAITING[2:])
        if starts or (owner and name in ("wait", "communicate", "join") and not node.args):
            yield f"{path.name}, line {node.lineno}: {owner}.{name}"


def test_no_test_waits_for_ever_for_another_process(tmp_path: Path) -> None:
    lines = ("subprocess.run(['a'])", "p.wait()", "p.communicate()", "p.join()", "p.wait(3)", "''.join(x)")
    (tmp_path / "bad.py").write_text("\n".join(lines), encoding="utf-8")
    assert len(list(waits_for_ever(tmp_path / "bad.py"))) == 4
    files = sorted(Path(__file__).parent.rglob("*.py"))
    assert len(files) > 60
    assert not [found for path in files for found in waits_for_ever(path)]


def test_every_test_has_a_time_limit(request: pytest.FixtureRequest) -> None:
    assert request.config.pluginmanager.hasplugin("timeout")
    for item in request.session.items:
        own = item.get_closest_marker("timeout")
        assert 0 < float(own.args[0] if own else request.config.getini("timeout")) <= 3600, item


SKIPPING = """import pytest
@pytest.mark.parametrize("number", range(3))
@pytest.mark.skipif(True, reason="no munged here: apt-get install munge")
def test_one(number): ...
def test_two(): pytest.skip("no disk")
def test_three(): ...
"""


@pytest.mark.parametrize("workers", slow_but([["-n", "1"]], [[], ["-n", "1"]]))
def test_what_was_skipped_and_what_to_install_are_the_last_words(tmp_path: Path, workers: list[str]) -> None:
    (tmp_path / "conftest.py").write_text("from last_words import pytest_sessionfinish\n", encoding="utf-8")
    (tmp_path / "test_some.py").write_text(SKIPPING, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", "-q", *workers, "test_some.py"]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parent), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0
    assert done.stdout.splitlines()[-3:] == [
        "NOT TESTED HERE:",
        "  1 test of test_some.py: no disk",
        "  3 tests of test_some.py: no munged here: apt-get install munge",
    ]


def test_what_files_cost_is_told_by_all_that_was_done_for_their_tests(capsys: pytest.CaptureFixture[str]) -> None:
    def took(seconds: float, node: str, when: Literal["setup", "call", "teardown"] = "call") -> pytest.TestReport:
        return pytest.TestReport(node, ("", 0, ""), {}, "passed", None, when, duration=seconds)

    reports = [took(1, f"tests/a/test_{number}.py::test_one") for number in range(10)]
    reports += [took(20, "tests/test_long.py::test_one[a::b]", "setup"), took(10, "tests/test_long.py::test_two")]
    told = [*costs(reports)]
    assert len(told) == 10
    assert told[:2] == ["    30 s, 75%: tests/test_long.py", "     1 s,  2%: tests/a/test_0.py"]


def test_every_error_that_may_be_planted_still_fits_the_code() -> None:
    for path in sorted(ROOT.glob("tests/mutations/*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8"))["mutation"]:
            text = (ROOT / entry["file"]).read_text(encoding="utf-8")
            assert text.count(entry["old"]) == 1, f"{path.name} no longer fits: {entry['name']}"


@pytest.mark.parametrize(("user", "status", "passed"), [("0", "0", ["test"]), ("0", "1", []), ("1000", "0", ["test"])])
def test_continuous_integration_installs_what_it_may_and_tests_in_any_case_what_is_quick_first(
    tmp_path: Path, user: str, status: str, passed: list[str]
) -> None:
    made = f'test "$1" = "{"".join(passed)}" || exit 3'
    for name, line in (("apt-get", f"exit {status}"), ("id", f"echo {user}"), ("make", made)):
        (tmp_path / name).write_text(f'#!/bin/sh\necho {name} "$@" >> {tmp_path}/called\n{line}\n', encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([ROOT / ".ci/run"], env=environment, capture_output=True, text=True, timeout=60)
    called = (tmp_path / "called").read_text(encoding="utf-8")
    tried = re.findall("make (.*)", called)
    assert done.returncode == 3 and tried == [*passed, "test-all" if passed else "test"]
    installed = re.findall(r"apt-get install .*munge slurmctld slurmd slurm-client", called)
    assert len(installed) == (user == "0" and status == "0")
    assert ("some tests will be skipped" in done.stderr) == (user == "0" and status == "1")
