"""The workflow as a module of another one, as in the docs: planned as a whole, run in part, nothing else disturbed."""

import re
import shutil
from pathlib import Path

import pytest
import yaml
from test_commands import jobs_in

from checkouts import ROOT, TINY, checkout, snakemake
from heads.base.files import read_json, read_lines, read_yaml, write_text
from heads.base.names import SPLITS

LINES = re.compile(r"```python\n(.*?)```", re.DOTALL)
OWN = """
rule mine:
    output:
        "mine.txt",
    shell:
        "test -d . && echo $PYTHONPATH > {output}"


rule after:
    input:
        rules.heads_encode.output.source.format(experiment="tiny", split="dev"),
    output:
        "after.txt",
    shell:
        "cp {input} {output}; echo $0 >&2"


use rule bpe from heads as heads_bpe with:
    resources:
        mem_mb=4000,
"""


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return checkout(tmp_path_factory.mktemp("a clone"))


def using(place: Path, clone: Path, *, first: str = "", last: str = "") -> Path:
    """A folder with the Snakefile that docs/use.md shows and settings of its own."""
    [lines] = LINES.findall((ROOT / "docs/use.md").read_text(encoding="utf-8"))
    assert lines.count("path/to/clone") == 2
    write_text(place / "Snakefile", first + lines.replace("path/to/clone", str(clone)) + last)
    shutil.copy(TINY, place / "mine.yaml")
    return place


def test_the_readme_and_the_instructions_show_the_same_lines() -> None:
    shown = [LINES.findall((ROOT / name).read_text(encoding="utf-8")) for name in ("docs/use.md", "config/README.md")]
    assert shown[0] == shown[1] and len(shown[0]) == 1


@pytest.mark.slow
def test_a_module_plans_what_the_workflow_itself_plans(clone: Path, tmp_path: Path) -> None:
    own = snakemake(clone, "-n", "-p", "--cores", "2", "--configfile", str(TINY))
    used = snakemake(using(tmp_path, clone), "-n", "-p", "--cores", "2")
    assert own.returncode == used.returncode == 0, used.stdout[-2000:]
    here, there = (
        {(job.rule.removeprefix("heads_"), job.log, job.outputs, tuple(job.flags.items())): job.inputs for job in found}
        for found in (list(jobs_in(own.stdout)), list(jobs_in(used.stdout)))
    )
    assert here.keys() == there.keys() and len(here) > 110
    for job, files in here.items():
        # The workflow's own inputs are found in the clone, wherever Snakemake runs.
        assert [str(clone / name) if name.startswith("workflow/") else name for name in files] == list(there[job])
    read = {path for files in there.values() for path in files if path.startswith("/")}
    assert len(read) > 40 and all(Path(path).is_file() for path in read)


@pytest.mark.slow
def test_a_module_runs_and_leaves_the_rules_of_the_other_workflow_as_they_are(clone: Path, tmp_path: Path) -> None:
    using(tmp_path, clone, last=OWN)
    done = snakemake(tmp_path, "--cores", "1", "mine.txt", "after.txt")
    assert done.returncode == 0, done.stdout[-3000:]
    # The package is the clone's, whatever else is installed.
    [packages] = read_lines(tmp_path / "mine.txt")
    assert packages.split(":")[0] == str(clone / "workflow")
    tokens = tmp_path / "results/tiny/bpe/dev.source.safetensors"
    assert (tmp_path / "after.txt").read_bytes() == tokens.read_bytes()
    assert len(read_lines(tmp_path / "results/corpora/tiny/dev.source.txt")) == 40
    assert read_json(tmp_path / "results/tiny/bpe/source.json")
    assert not (clone / "results").exists()
    assert "Nothing to be done" in snakemake(tmp_path, "-n", "mine.txt", "after.txt").stdout


MAKER = """

rule text:
    output:
        "text/{split}.{side}",
    shell:
        "echo {wildcards.split} in {wildcards.side} > {output}"
"""


@pytest.mark.slow
def test_a_rule_of_the_other_workflow_may_make_the_text_and_without_it_a_sentence_says_what_is_not_there(
    clone: Path, tmp_path: Path
) -> None:
    parts = {split: [{"source": f"text/{split}.en", "target": f"text/{split}.de"}] for split in SPLITS}
    entry = {"kind": "files", "source": "en", "target": "de", "cleaning": {"max_words": 9, "max_length_ratio": 4.0}}
    own = {"corpora": {"told": {**entry, **parts}}, "experiments": {"told": {"corpus": "told"}}}
    target = "results/corpora/told/dev.source.txt"
    for last in ("", MAKER):
        write_text(using(tmp_path, clone, last=last) / "mine.yaml", yaml.safe_dump(own))
        done = snakemake(tmp_path, "--cores", "1", target)
        if not last:
            assert done.returncode == 1 and "corpora.told.train.0.source is text/train.en, which does" in done.stdout
    assert done.returncode == 0, done.stdout[-2000:]
    assert read_lines(tmp_path / target) == ["dev in en"]


@pytest.mark.slow
def test_the_default_target_of_the_other_workflow_stays(clone: Path, tmp_path: Path) -> None:
    target = 'rule own:\n    output:\n        "own.txt",\n    shell:\n        "touch {output}"\n\n\n'
    jobs = re.findall(r"^(\w+) +\d+$", snakemake(using(tmp_path, clone, first=target), "-n").stdout, re.MULTILINE)
    assert {*jobs} == {"own", "total"}


def test_the_workflow_reads_every_file_of_experiments_and_config_yaml_last() -> None:
    read = re.findall(r'^configfile: "(.*)"$', (ROOT / "workflow/Snakefile").read_text(encoding="utf-8"), re.MULTILINE)
    files = (ROOT / "config/experiments").iterdir()
    assert sorted(read[:-1]) == sorted(str(file.relative_to(ROOT)) for file in files) and read[-1] == "config.yaml"
    experiments = [name for file in read for name in read_yaml(ROOT / file)["experiments"]]
    assert len(experiments) == len({*experiments}) > 15, "no experiment stands in two files"


@pytest.mark.slow
def test_settings_may_lie_under_a_key_and_mistakes_in_them_are_one_sentence(clone: Path, tmp_path: Path) -> None:
    using(tmp_path, clone)
    config = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    write_text(tmp_path / "mine.yaml", yaml.safe_dump({"all_of_it": config}))
    text = (tmp_path / "Snakefile").read_text(encoding="utf-8")
    nested = text.replace("        config\n", '        config["all_of_it"]\n').replace(
        f'configfile: "{clone}/config.yaml"\n', ""
    )
    assert nested.count("configfile") == 1
    write_text(tmp_path / "Snakefile", nested)
    target = "results/demo/bpe/source.model"
    assert snakemake(tmp_path, "-n", target).returncode == 0
    for change, sentence in (
        ({"run": ["dmo"]}, "Did you mean demo?"),
        ({"defaults": None}, "lacks the key defaults: add it."),
    ):
        wrong = {key: value for key, value in {**config, **change}.items() if value is not None}
        write_text(tmp_path / "mine.yaml", yaml.safe_dump({"all_of_it": wrong}))
        done = snakemake(tmp_path, "-n", target)
        assert done.returncode == 1 and sentence in done.stdout and "Traceback" not in done.stdout, done.stdout


@pytest.mark.slow
def test_the_workflow_file_itself_can_be_named(clone: Path) -> None:
    words = ("results/tables/table_pruning.tsv", "-n", "-p", "--configfile", str(TINY))
    one, other = (snakemake(clone, *more, *words) for more in ((), ("--snakefile", "workflow/Snakefile")))
    assert other.returncode == 0, other.stdout[-2000:]
    assert {job.flags["model"] for job in jobs_in(one.stdout) if job.rule == "gates"} == {
        job.flags["model"] for job in jobs_in(other.stdout) if job.rule == "gates"
    }
    assert "profiles/default" in one.stdout and "profiles/default" in other.stdout


def test_what_the_catalogue_of_workflows_reads_is_there() -> None:
    said = yaml.safe_load((ROOT / ".snakemake-workflow-catalog.yml").read_text(encoding="utf-8"))
    usage = said["usage"]
    assert set(said) == {"usage"}
    assert set(usage) == {"mandatory-flags", "software-stack-deployment", "report"}
    assert set(usage["mandatory-flags"]) == {"desc", "flags"} and isinstance(usage["mandatory-flags"]["flags"], list)
    assert usage["software-stack-deployment"] == {"conda": True} and usage["report"] is True
    assert (ROOT / "workflow/Snakefile").is_file()
    readme = (ROOT / "README.md").read_text(encoding="utf-8").lower()
    assert "snakemake" in readme and "workflow" in readme
    instructions = (ROOT / "config/README.md").read_text(encoding="utf-8")
    config = yaml.safe_load((ROOT / "config.yaml").read_text(encoding="utf-8"))
    assert re.findall(r"^\| `(\w+)` \|", instructions, re.MULTILINE) == list(config)
    links = re.findall(r"\]\(([^)]+)\)", instructions)
    assert links and all((ROOT / "config" / link).exists() for link in links)
