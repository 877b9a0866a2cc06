"""The cache between workflows: a second checkout trains nothing twice, and nothing is mistaken for something else."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from checkouts import ROOT, TINY, checkout, snakemake

PRUNED = "results/tiny/pruned/all/lam-50/seed-1/model.safetensors"
EXPECTED = {"corpus", "bpe", "encode", "baseline", "gates", "pruned", "scratch"}

Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def cached(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs Snakemake in a checkout with the shared cache of these tests."""
    shared = tmp_path_factory.mktemp("shared cache")

    def run(folder: Path, *words: str, config: Path = TINY) -> subprocess.CompletedProcess[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("SNAKEMAKE_OUTPUT_CACHE", str(shared))
            return snakemake(folder, *words, "--cache", "--cores", "1", "--configfile", str(config))

    return run


@pytest.fixture(scope="session")
def first(tmp_path_factory: pytest.TempPathFactory, cached: Run) -> Path:
    """A checkout that trained one baseline and one pruned model, and left them in the cache."""
    folder = checkout(tmp_path_factory.mktemp("first"))
    done = cached(folder, PRUNED)
    assert done.returncode == 0, done.stdout[-3000:]
    return folder


def computed(said: str) -> set[str]:
    """The first output, below results/, of each job in a dry run that is not in the cache."""
    return set(re.findall(r"Output file results/(\S+) will be written to", said))


def spared(said: str) -> set[str]:
    """The first output, below results/, of each job that is in the cache."""
    return set(re.findall(r"Output file results/(\S+) will be obtained from", said))


@pytest.mark.slow
def test_a_second_checkout_with_the_same_cache_trains_nothing_twice(first: Path, cached: Run, tmp_path: Path) -> None:
    second = checkout(tmp_path)
    done = cached(second, PRUNED)
    assert done.returncode == 0, done.stdout[-3000:]
    logs = [path.relative_to(first) for path in first.glob("results/tiny/**/seed-1/log/*.txt")]
    assert len(logs) == 3
    for log in logs:
        # Every stage that runs writes to its log, except for the one that only cuts heads out.
        assert (first / log).stat().st_size > 0 or log.stem == "pruned"
        assert (second / log).stat().st_size == 0
    models = [path.relative_to(first) for path in first.glob("results/tiny/**/model.safetensors")]
    assert len(models) == 3
    for model in models:
        assert (second / model).resolve() == (first / model).resolve()
    assert "Nothing to be done" in cached(second, PRUNED, "-n").stdout


@pytest.mark.slow
def test_what_differs_in_seed_scope_target_or_text_is_never_taken_for_another(
    first: Path, cached: Run, tmp_path: Path
) -> None:
    other = [PRUNED.replace(*change) for change in (("seed-1", "seed-2"), ("/all/", "/enc_self/"), ("lam-50", "lam-5"))]
    test_text = "results/tiny/bpe/test.target.safetensors"
    said = cached(checkout(tmp_path), "-n", PRUNED, *other, test_text).stdout
    names = {path.removeprefix("results/") for path in (*other, *(o.replace("pruned", "gates") for o in other))}
    assert computed(said) == {*names, "tiny/baseline/seed-2/model.safetensors", "tiny/bpe/test.source.safetensors"}
    assert {"tiny/baseline/seed-1/model.safetensors", PRUNED.removeprefix("results/")} <= spared(said)


@pytest.mark.slow
@pytest.mark.parametrize(("module", "anew"), [("model/transformer.py", True), ("figures/style.py", False)])
def test_changed_code_is_another_cache_unless_no_cached_result_is_made_by_it(
    first: Path, cached: Run, tmp_path: Path, module: str, *, anew: bool
) -> None:
    folder = checkout(tmp_path)
    with (folder / "workflow/heads" / module).open("a", encoding="utf-8") as stream:
        stream.write("# changed\n")
    said = cached(folder, "-n", PRUNED).stdout
    assert bool(computed(said)) is anew and bool(spared(said)) is not anew
    assert not list(folder.glob("results/*")), "a dry run writes nothing"


@pytest.mark.slow
def test_a_changed_setting_spares_what_came_before_it(first: Path, cached: Run, tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    longer = folder / "longer.yaml"
    longer.write_text(TINY.read_text(encoding="utf-8").replace("gates: {updates: 30", "gates: {updates: 31"), "utf-8")
    said = cached(folder, "-n", PRUNED, config=longer).stdout
    assert computed(said) == {
        PRUNED.removeprefix("results/"),
        PRUNED.removeprefix("results/").replace("pruned", "gates"),
    }


@pytest.mark.slow
def test_without_a_folder_for_the_cache_one_sentence_says_what_to_set(tmp_path: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("SNAKEMAKE_OUTPUT_CACHE", raising=False)
        done = snakemake(checkout(tmp_path), "-n", "--cache", "--cores", "1")
    assert done.returncode == 1
    assert "set SNAKEMAKE_OUTPUT_CACHE to its path" in done.stdout and "Traceback" not in done.stdout


def test_cached_rules_tell_their_commands_nothing_that_the_cache_does_not_know() -> None:
    texts = [path.read_text(encoding="utf-8") for path in sorted((ROOT / "workflow/rules").glob("*.smk"))]
    blocks = [block for text in texts for block in re.split(r"(?m)^(?=\S)", text)]
    named = [(re.match(r"(?:use rule (\w+) as|rule) (\w+)\b", block), block) for block in blocks]
    rules = {found[2]: (found[1], block) for found, block in named if found}
    cached = {name for name, (_, block) in rules.items() if "\n    cache: CACHED\n" in block}
    assert cached == {*EXPECTED, "gates_from_scratch", "pruned_from_scratch", "selected"}
    for name in cached:
        base = name
        while "    shell:" not in rules[base][1]:
            base = rules[base][0]
        told = set(re.findall(r"\{(\w+(?:\.processes)?)", rules[base][1].split("    shell:")[1]))
        # The number of threads and processes changes only rounding.
        assert told <= {"input", "output", "params", "log", "threads", "resources.processes"}, name


@pytest.mark.slow
def test_one_cache_holds_every_kind_of_model(cached: Run, tmp_path: Path) -> None:
    """A rule that inherits from another does not inherit its caching."""
    kinds = ("pruned_from_scratch/enc_self/lam-50", "scratch/all/lam-50", "selected/all/random1-6")
    models = [f"results/tiny/{kind}/seed-1/model.safetensors" for kind in kinds]
    one, other = (tmp_path / name for name in ("one", "other"))
    for folder in (one, other):
        folder.mkdir()
    assert cached(checkout(one), *models).returncode == 0
    said = cached(checkout(other), "-n", *models).stdout
    gates = "results/tiny/gates_from_scratch/enc_self/lam-50/seed-1/model.safetensors"
    assert {path.removeprefix("results/") for path in (*models, gates)} <= spared(said) and not computed(said)
