"""The SLURM profile covers the workflow: every rule's requests grow with each try, and no small rule is its own job."""

import re
import shutil
from pathlib import Path

import pytest
import yaml

from checkouts import ROOT, checkout, configuration, snakemake
from heads.config.corpus_entries import local_files_of, parse_corpus

PROFILE = yaml.safe_load((ROOT / "profiles/slurm/config.yaml").read_text(encoding="utf-8"))
TRAININGS = {"baseline", "imported", "gates", "scratch", "selected", "gates_from_scratch", "parser_model"}
# Each takes hours, and an experiment has few.
ABLATIONS = {"ablation", "ablation_out_of_domain"}
ALONE = {*TRAININGS, *ABLATIONS, "fetch", "parser", "speed"}
ALONE |= {"masking_curve", "checkpoints", "masked"}
# Run once for a model of others; what waits for them lies between two rules that would be one group.
ALONE |= {"import_model", "distilled"}
PAPERS = ("wmt-en-ru", "wmt-en-de", "wmt-en-fr", "opensubtitles-en-ru")


def rules() -> dict[str, str]:
    """The text of each rule."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / "workflow/rules").glob("*.smk")]
    blocks = [block for text in texts for block in re.split(r"(?m)^(?=\S)", text)]
    named = [re.match(r"(?:use rule \w+ as|rule) (\w+)\b", block) for block in blocks]
    return {found[1]: block for found, block in zip(named, blocks, strict=True) if found}


def submitted_rules() -> set[str]:
    """All rules but those that Snakemake runs locally."""
    # `use rule` passes on outputs, but not that a rule is local.
    own = {rule for rule, block in rules().items() if "    output:" in block or block.startswith("use rule ")}
    local = {rule for rule, block in rules().items() if "    localrule: True\n" in block or rule not in own}
    assert local == {"tables", "figures"}
    return set(rules()) - local


def test_memory_and_time_of_every_submitted_rule_grow_with_each_try() -> None:
    own = {rule for rule in submitted_rules() if not re.match(rf"use rule \w+ as {rule} with:", rules()[rule])}
    # A rule made from another asks for what that one asks for, unless it says otherwise.
    own |= {rule for rule, block in rules().items() if "    resources:" in block}
    asking = r"    resources:\n        mem_mb=growing\(\d+\),\n        runtime=growing\(\d+\),\n"
    assert own == {rule for rule, block in rules().items() if re.search(asking, block)} and len(own) > 30


def test_trainings_ask_for_a_gpu_and_no_other_rule_does() -> None:
    assert {rule for rule, resources in PROFILE["set-resources"].items() if resources.get("gpu")} == TRAININGS


def test_every_rule_but_trainings_and_a_few_long_ones_is_in_a_group() -> None:
    assert set(PROFILE["groups"]) == submitted_rules() - ALONE


@pytest.mark.slow
def test_where_there_is_no_slurm_a_run_ends_at_once_and_a_plan_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = checkout(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("bash", "which"):
        (tmp_path / "bin" / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    words = ("--profile", "profiles/slurm", "--cores", "64", "results/corpora/demo/filters.tsv")
    assert snakemake(folder, "-n", *words).returncode == 0
    done = snakemake(folder, *words)
    assert done.returncode == 1 and "Traceback" not in done.stdout
    assert "No job can be sent to SLURM from here (sbatch is not on PATH): leave out --profile" in done.stdout
    assert "rule corpus:" not in done.stdout and not (folder / ".snakemake/locks").exists()


@pytest.mark.slow
def test_a_run_of_all_paper_experiments_submits_about_two_jobs_for_each_model(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    corpora = configuration(folder)["corpora"]
    for path in (folder / path for name in PAPERS for path in local_files_of(parse_corpus(corpora[name]))):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    done = snakemake(
        folder, "--profile", "profiles/slurm", "--cores", "64", "-n", "--config", f"run=[{','.join(PAPERS)}]"
    )
    assert done.returncode == 0, done.stdout[-2000:]
    groups = re.findall(r"^\[.*\] Group job ", done.stdout, re.MULTILINE)
    alone = [rule for rule in re.findall(r"^rule (\w+):", done.stdout, re.MULTILINE) if rule in ALONE]
    trained = [rule for rule in alone if rule in TRAININGS]
    counts = dict(re.findall(r"^(\w+) +(\d+)$", done.stdout, re.MULTILINE))
    grouped = sum(int(counts.get(rule, 0)) for rule in PROFILE["groups"])
    assert len(trained) > 90
    assert len(groups) + len(alone) < 2.5 * len(trained)
    assert len(groups) < grouped / 2
