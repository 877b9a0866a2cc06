"""The SLURM profile on a real cluster: requested resources, groups, failures and lost nodes."""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from cluster import WITH_US, Cluster, SlurmJob, processes_with, running_cluster, why_not
from disturbed import (
    LONG,
    MODEL,
    RUN,
    SECOND_LOG,
    UNDISTURBED,
    Training,
    disturb,
    long_checkout,
    resumed,
    train_undisturbed,
)

from checkouts import TINY, checkout
from heads.base.files import read_tsv
from warm_python import warm_python

TRAININGS = ("baseline", "gates", "scratch")
SHARED = {"scratch": "gpu:2"}
TABLES = [f"results/tables/table_{name}.tsv" for name in ("pruning", "corpus", "spare")]
# Of the tiny experiment only the pruning of all heads, with threads that this machine has.
QUICK = ("--config", "experiments={tiny: {sweep: {lambdas: {enc_self: []}, budgets: {enc_self: [], all: []}}}}")
THREADS = ("--set-threads", *(f"{rule}=1" for rule in TRAININGS))
COMMAND = ("--profile", "profiles/slurm", "--cores", "64", *THREADS, "--slurm-init-seconds-before-status-checks", "5")
FAILING = ("results/tiny/baseline/seed-1/model.safetensors", "results/corpora/tiny/dev.conllu")
LOGS = ("results/tiny/baseline/seed-1/log/baseline.txt", "results/corpora/tiny/log/trees.dev.txt")

# One worker runs all of these tests, so that there is one cluster and each run happens once.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(why_not() is not None, reason=f"no SLURM cluster: {why_not()}"),
]


@dataclass(frozen=True)
class Run:
    """A finished run of Snakemake: its folder, exit status, output and submitted jobs."""

    folder: Path
    returncode: int
    said: str
    jobs: list[SlurmJob]

    @property
    def planned(self) -> dict[str, int]:
        """Jobs by rule, as Snakemake announced them, and their total."""
        return {rule: int(count) for rule, count in re.findall(r"^(\w+) +(\d+)$", self.said, re.MULTILINE)}

    def jobs_of(self, rule: str) -> list[SlurmJob]:
        """Submitted jobs of a rule, or of a group that holds it."""
        return [job for job in self.jobs if rule in re.split("[_.]", job.name.partition("_wildcards_")[0])]


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with running_cluster() as running:
        yield running


@pytest.fixture(scope="module")
def runs(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Three runs side by side: `tiny` from a clean checkout to tables, `failing` on rubbish, with names uncommented,
    and `disturbed`, a training that is interrupted twice."""
    folders = {name: checkout(tmp_path_factory.mktemp(name)) for name in ("tiny", "failing")}
    fill_with_rubbish(folders["failing"])
    uncomment_names(folders["failing"] / "profiles/slurm/config.yaml")
    share(folders["tiny"] / "profiles/slurm/config.yaml", *SHARED)
    words = {"tiny": [*QUICK, "--", *TABLES], "failing": ["--retries", "1", "--", *FAILING]}
    started = {name: start(folders[name], cluster, *words[name]) for name in folders}
    folder = folders["disturbed"] = long_checkout(tmp_path_factory.mktemp("disturbed"))
    try:
        train_undisturbed(folder, tmp_path_factory.mktemp("undisturbed"))
        started["disturbed"] = start(folder, cluster, LONG, "--", MODEL)
        disturb(Training(cluster, folder, started["disturbed"]))
        ends = {name: process.wait(600) for name, process in started.items()}
    finally:
        for process in started.values():
            process.kill()
    jobs = cluster.jobs()
    return {
        name: Run(folder, ends[name], said(folder).read_text(), [job for job in jobs if job.folder == folder])
        for name, folder in folders.items()
    }


def said(folder: Path) -> Path:
    return folder / "said.txt"


def start(folder: Path, cluster: Cluster, *words: str) -> subprocess.Popen[bytes]:
    """Start Snakemake with the profile in a checkout."""
    # Runs killed on purpose start as users start them; all others are forked, including jobs and what they start.
    python = sys.executable if LONG in words else warm_python()
    # Without fine-tuning after heads are cut out: the tables asked for here would wait for that too.
    few = re.sub(r"(fine_tuned: ).*", r"\1{methods: [], budgets: []}", TINY.read_text(encoding="utf-8"))
    (folder / TINY.name).write_text(few.replace("trained_on_scopes: [all]", "trained_on_scopes: []"), encoding="utf-8")
    with said(folder).open("wb") as output:
        return subprocess.Popen(
            [*WITH_US, python, "-m", "snakemake", *COMMAND, "--configfile", TINY.name, *words],
            cwd=folder,
            env={**cluster.environment, "OMP_NUM_THREADS": "1"},
            stdout=output,
            stderr=subprocess.STDOUT,
        )


def fill_with_rubbish(folder: Path) -> None:
    """Write unreadable files for all that the baseline's training and the gold trees read."""
    corpus, bpe = folder / "results/corpora/tiny", folder / "results/tiny/bpe"
    splits, sides = ("train", "dev", "test"), ("source", "target")
    texts = [corpus / f"{split}.{side}.txt" for split in splits for side in sides]
    subwords = [bpe / f"{split}.{side}.safetensors" for split in splits for side in sides]
    models = [bpe / f"{side}.{ending}" for side in sides for ending in ("model", "json")]
    for path in [*texts, corpus / "filters.tsv", *models, *subwords]:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("rubbish\n", encoding="utf-8")


def uncomment_names(profile: Path) -> None:
    """Uncomment names as the profile's first lines ask; an account needs an accounting database, and stays out."""
    text = profile.read_text(encoding="utf-8")
    profile.write_text(re.sub(r"# (slurm_partition|gpu_model)", r"\1", text), encoding="utf-8")


def share(profile: Path, rule: str) -> None:
    """Give a training two processes with a GPU each, using the profile's commented lines."""
    text = profile.read_text(encoding="utf-8")
    shown = re.findall(r"^    # (tasks|processes|tasks_per_gpu|mpi): (\w+)", text, re.MULTILINE)
    lines = {"gpu": "2", **{name: value.replace("4", "2") for name, value in shown}}
    assert len(lines) == 5
    told = ", ".join(f"{name}: {value}" for name, value in lines.items())
    profile.write_text(text.replace(f"  {rule}: *training", f"  {rule}: {{<<: *training, {told}}}"))


def test_one_command_leads_from_a_clean_checkout_to_the_tables(runs: dict[str, Run]) -> None:
    tiny = runs["tiny"]
    assert tiny.returncode == 0, tiny.said[-3000:]
    pruning, corpus, _ = (read_tsv(tiny.folder / table) for table in TABLES)
    assert {row["kind"] for row in pruning} >= {"baseline", "pruned"}
    assert corpus


def test_each_training_asks_for_its_gpus_and_nothing_else_for_any(runs: dict[str, Run]) -> None:
    tiny = runs["tiny"]
    asked = Counter((job.name.partition("_")[0], job.gpus) for job in tiny.jobs if job.gpus)
    assert asked == {(rule, SHARED.get(rule, "gpu:1")): tiny.planned[rule] for rule in TRAININGS}


def test_srun_starts_the_processes_of_a_training_that_is_shared(runs: dict[str, Run]) -> None:
    logs = {rule: list(runs["tiny"].folder.glob(f"results/tiny/{rule}/**/log/{rule}.txt")) for rule in TRAININGS}
    said = {rule: [path.read_text(encoding="utf-8") for path in paths] for rule, paths in logs.items()}
    assert all("2 processes share this training" in text for text in said["scratch"]) and said["scratch"]
    assert not any("share this training" in text for rule in ("baseline", "gates") for text in said[rule])


def test_besides_trainings_fewer_than_half_as_many_jobs_are_submitted_as_are_done(runs: dict[str, Run]) -> None:
    tiny = runs["tiny"]
    total = tiny.planned["total"]
    assert f"{total} of {total} steps" in tiny.said
    trainings = sum(tiny.planned[rule] for rule in TRAININGS)
    assert 2 * (len(tiny.jobs) - trainings) < total - trainings


def test_the_names_at_the_top_of_the_profile_reach_the_jobs(runs: dict[str, Run]) -> None:
    [training, *_], [trees, *_] = (runs["failing"].jobs_of(rule) for rule in ("baseline", "trees"))
    assert (training.partition, training.gpus) == ("gpu", "gpu:h100:1")
    assert (trees.partition, trees.gpus) == ("cpu", "")


@pytest.mark.parametrize("log", LOGS)
def test_the_message_of_a_failed_job_names_its_log_and_shows_the_reason(runs: dict[str, Run], log: str) -> None:
    failing = runs["failing"]
    assert failing.returncode == 1
    reason = (failing.folder / log).read_text(encoding="utf-8").strip().splitlines()[-1]
    assert "rubbish" in reason or "error" in reason.lower()
    assert f"log: {log} (check log file(s) for error details)" in failing.said
    assert reason in failing.said


@pytest.mark.parametrize("rule", ["baseline", "trees"])
def test_a_job_that_failed_is_tried_again_with_twice_the_memory_and_time(runs: dict[str, Run], rule: str) -> None:
    first, second = runs["failing"].jobs_of(rule)
    assert (second.mem_mb, second.minutes) == (2 * first.mem_mb, 2 * first.minutes)


def test_a_training_whose_time_is_up_saves_and_the_next_try_goes_on_from_there(runs: dict[str, Run]) -> None:
    first, _ = (disturbed := runs["disturbed"]).jobs
    assert (first.state, first.restarts) == ("TIMEOUT", 0)
    [stopped] = re.findall(r"^error: stopped at update (\d+),", disturbed.said, re.MULTILINE)
    assert resumed((disturbed.folder / SECOND_LOG).read_text(encoding="utf-8")) == int(stopped) > 0


def test_a_training_whose_node_is_lost_is_requeued_and_ends_with_the_bits_of_an_undisturbed_one(
    runs: dict[str, Run],
) -> None:
    folder = (disturbed := runs["disturbed"]).folder
    assert disturbed.returncode == 0, disturbed.said[-3000:]
    _, second = disturbed.jobs
    assert (second.state, second.restarts) == ("COMPLETED", 1)
    last_log = (folder / RUN / "log/baseline.txt").read_text(encoding="utf-8")
    assert resumed(last_log) > resumed((folder / SECOND_LOG).read_text(encoding="utf-8"))
    assert (folder / MODEL).read_bytes() == (folder / UNDISTURBED).read_bytes()
    assert not (folder / RUN / "unfinished").exists()


def fail_within_a_cluster(seen: list[Cluster]) -> None:
    with running_cluster() as cluster:
        seen.append(cluster)
        cluster.say("sbatch", "--output=/dev/null", "--wrap", "sleep 600")
        assert len(processes_with(cluster)) >= 3
        raise ZeroDivisionError


def test_a_cluster_whose_user_fails_leaves_no_process_and_no_file_behind() -> None:
    seen: list[Cluster] = []
    with pytest.raises(ZeroDivisionError):
        fail_within_a_cluster(seen)
    assert not processes_with(seen[0])
    assert not seen[0].folder.exists()
