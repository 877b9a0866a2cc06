"""The README holds: its commands plan what they name, its settings are settings, its files and pictures exist.

What can be done in seconds on a finished experiment is done in test_workflow.py.
"""

import re
import shlex
import subprocess
from functools import reduce
from pathlib import Path

import pytest
import yaml

from checkouts import DOCUMENTS, ROOT, checkout, configuration, documents, snakemake
from heads.__main__ import command as parsed
from heads.config import settings
from heads.config.corpus_entries import parse_corpus
from test_house import ROOMS

README = documents()
BLOCKS = re.findall(r"```sh\n(.*?)```", README, re.DOTALL)
LINES = [re.sub(r" +# .*", "", line) for block in BLOCKS for line in block.splitlines()]
TABLE = re.findall(r"\| `(snakemake [^`]+)` \|", README)
ASKED = [line for line in [*LINES, *TABLE] if "snakemake" in shlex.split(line, comments=True)]
FILES = [line for line in ASKED if all(word.startswith("results/") for word in shlex.split(line)[1:])]
# For commands that name no file: some jobs that they must plan, and some that they must not.
WITHOUT_NAMES = {
    "snakemake --configfile config/demo-variants.yaml --config 'run=[demo-footnote8]'": (
        {"baseline": 1, "scratch": 3, "gates_from_scratch": 3, "table": 12},
        {"selection_of_choice", "selected"},
    ),
    "snakemake --configfile config/demo-variants.yaml --config 'run=[demo,demo-quarter,demo-heads]'": (
        {"corpus": 2, "baseline": 3, "gates": 18, "table": 12},
        {"scratch"},
    ),
    "snakemake models": ({"baseline": 1, "score": 7}, {"table", "figure", "lrp", "roles"}),
    "snakemake --profile profiles/slurm --cores 64": ({"baseline": 1, "gates": 6, "table": 12, "figure": 15}, set()),
    "snakemake --profile profiles/gpu": ({"baseline": 1, "gates": 6, "table": 12, "figure": 15}, set()),
    "SNAKEMAKE_OUTPUT_CACHE=/shared/heads-cache snakemake --cache": ({"baseline": 1, "table": 12, "figure": 15}, set()),
}


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("clone"))


def test_every_file_that_the_readme_asks_for_is_planned(clone: Path) -> None:
    """All commands that name only files are planned at once, since each start of Snakemake costs seconds."""
    named = {word for line in FILES for word in shlex.split(line)[1:]}
    done = snakemake(clone, *sorted(named), "-n")
    assert done.returncode == 0, done.stdout[-1500:]
    assert len(named) > 20 and named <= planned_files(done.stdout)


def planned_files(said: str) -> set[str]:
    """The outputs of all jobs that a dry run printed."""
    return {path for line in re.findall(r"^ +output: (.*)$", said, re.MULTILINE) for path in line.split(", ")}


@pytest.mark.slow
@pytest.mark.parametrize("command", [line for line in ASKED if line not in FILES])
def test_every_other_command_of_the_readme_plans_what_it_names(
    clone: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, words = command.split("snakemake ", maxsplit=1)
    if before:
        monkeypatch.setenv(*before.strip().split("="))
    done = snakemake(clone, *shlex.split(words), "-n")
    assert done.returncode == 0, done.stdout[-1500:]
    jobs = {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE)}
    named = {word for word in shlex.split(words) if word.startswith("results/")}
    summary = {line.partition("\t")[0] for line in done.stdout.splitlines() if "--detailed-summary" in words}
    assert named <= planned_files(done.stdout) | summary
    if not named:
        at_least, none = WITHOUT_NAMES[command]
        assert all(jobs.get(rule, 0) >= count for rule, count in at_least.items()) and not none & set(jobs), jobs


def test_the_commands_that_name_no_file_are_those_whose_plan_is_known() -> None:
    assert {line for line in ASKED if "results/" not in line} == set(WITHOUT_NAMES)


@pytest.mark.parametrize("command", [line for line in LINES if line.startswith("make")])
def test_every_make_target_of_the_readme_does_what_it_is_for(command: str) -> None:
    # Under `make test` this make is an inner one, which would print the folders it enters after its last command.
    done = subprocess.run(
        [*shlex.split(command), "-n", "--no-print-directory"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    last = done.stdout.replace("\\\n", "").splitlines()[-1]
    target, *given = shlex.split(command)[1:]
    expected = {
        "demo": " -m heads progress --expect demo ",
        "test": " -m pytest ",
        "multi30k": "--config 'run=[multi30k]'",
        "news": "--config 'run=[news-en-",
        "pretrained": "--config 'run=[pretrained]'",
        "demo-full": " -- --configfile config/demo-full.yaml",
        "nli": "--config 'run=[nli]'",
        "bert": "--config 'run=[minilm-sick]'",
        "firefox": "--config 'run=[firefox-en-pt]'",
        "firefox-grown": "--config 'run=[firefox-grown-en-pt]'",
        "firefox-scratch": "--config 'run=[firefox-scratch-en-pt]'",
        "paper-size": "--configfile results/paper-size.yaml",
    }
    told = ["minutes: 6.00}" if word == "HOURS=0.3" else word.partition("=")[2] for word in given]
    assert expected[target] in last and all(word in done.stdout for word in told)


@pytest.mark.parametrize("line", [line for line in LINES if line.startswith("heads ")])
def test_every_command_of_heads_in_the_readme_has_these_flags(line: str) -> None:
    words = shlex.split(re.split(r" [<>|] ", line)[0])
    # A flag or a choice that does not exist makes the parser exit.
    assert vars(parsed(words[1], "heads")[1].parse_args(words[2:]))


def test_the_text_of_the_first_commands_is_in_the_repository() -> None:
    named = {word for line in LINES for word in line.split() if word.startswith("examples/")}
    assert named == {"examples/text.en"}
    lines = (ROOT / "examples/text.en").read_text(encoding="utf-8").splitlines()
    assert len({*lines}) == len(lines) == 200 and all(4 <= len(line.split()) <= 25 for line in lines)


def test_the_settings_that_the_readme_shows_are_settings() -> None:
    shown = reduce(settings.merged, map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", README, re.DOTALL)))
    config = settings.merged(configuration(), shown)
    assert "mine" in settings.resolve(config)
    assert parse_corpus(config["corpora"]["mine"]).source == "en"
    assert parse_corpus(config["corpora"]["my-examples"]).source == "en"


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_picture_and_file_that_is_linked_is_there(path: Path) -> None:
    links = re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8"))
    assert [link for link in links if "://" not in link and not (path.parent / link).exists()] == []


def test_the_readme_is_short_moves_and_leads_to_every_page() -> None:
    text = DOCUMENTS[0].read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#]+)\)", text)
    assert len(text.splitlines()) <= 180
    assert any(link.endswith(".gif") for link in links)
    assert {str(path.relative_to(ROOT)) for path in DOCUMENTS[1:]} <= {*links}


def test_the_map_of_the_code_has_every_room_in_order_and_ways_whose_files_hand_over() -> None:
    lines = re.findall(r"^\w+/.*", README.partition("## A map of the code")[2].partition("\n# ")[0], re.MULTILINE)
    rooms = [room for line in lines for room in re.findall(r"(\w+)/", line.partition("  ")[0])]
    assert len(lines) <= 15
    assert rooms == [room for room in ROOMS if "." not in room]
    ways = re.findall(r"^- \*\*(.+?)\*\*: ((?:.|\n  )+)", README.partition("Four ways through it")[2], re.MULTILINE)[:4]
    for name, way in ways:
        files = re.findall(r"`([\w./]+\.(?:py|smk|yaml))`", way)
        assert 4 <= len(files) <= 5, name
        assert [file for file in files if not (ROOT / file).exists()] == [], name
    assert [name.split()[1] for name, _ in ways] == ["lambda", "gate", "score", "tree"]
    added = re.findall(r"`(workflow/[\w./]+)`", README.partition("## Add something")[2].partition("\n# ")[0])
    assert len(added) > 15 and [file for file in added if "STAGE" not in file and not (ROOT / file).exists()] == []
