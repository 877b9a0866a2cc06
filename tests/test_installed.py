"""The package on a machine without a checkout: built, installed on its own, and asked to translate."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkouts import ROOT
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.model.shape import shape_of
from model_folders import SOURCE, write_experiment

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what `pip install .` puts among the packages, made of a copy of the sources."""
    sources, target = tmp_path_factory.mktemp("sources"), tmp_path_factory.mktemp("installed")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, sources / name)
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info")
    shutil.copytree(ROOT / "workflow/heads", sources / "workflow/heads", ignore=ignored)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    command = [*pip, "--no-build-isolation", "--target", str(target), str(sources)]
    subprocess.run(command, check=True, timeout=200)
    return target


OTHERS = ("matplotlib", "seaborn", "stanza", "snakemake", "tokenizers", "transformers", "ctranslate2", "onnxruntime")
WITH_TRAINING = [
    *(sys.executable, "-c"),
    f"import sys; sys.modules |= dict.fromkeys({OTHERS}); from heads.__main__ import main; "
    "sys.exit(main(sys.argv[1:]))",
]
"""The command where only the extra `training` is installed."""


def run(installed: Path, command: list[str], text: str = "") -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(installed), "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        command, input=text, cwd=installed, env=environment, capture_output=True, text=True, timeout=200
    )


def test_everything_that_the_package_needs_is_installed_with_it(installed: Path) -> None:
    package = ROOT / "workflow/heads"
    here, there = (
        {path.relative_to(folder) for path in folder.rglob("*") if path.suffix in (".py", ".tsv", ".csv")}
        for folder in (package, installed / "heads")
    )
    assert len(here) > 100 and there == here


def test_an_exported_model_translates_by_the_installed_command(installed: Path, tmp_path: Path) -> None:
    experiment = write_experiment(tmp_path / "tiny")
    export(saved_bundle(experiment.pruned), tmp_path / "mine")
    text = "".join(f"{line}\n" for line in SOURCE)
    flags = ["translate", str(tmp_path / "mine"), "--device", "cpu"]
    here = run(ROOT / "workflow", [sys.executable, "-m", "heads", *flags], text)
    shutil.rmtree(tmp_path / "tiny")
    there = run(installed, [sys.executable, str(installed / "bin/heads"), *flags], text)
    assert (there.returncode, there.stdout, there.stderr) == (0, here.stdout, "")
    assert len(there.stdout.splitlines()) == len(SOURCE) and any(there.stdout.split())


@pytest.mark.parametrize(
    ("stage", "package", "extra"),
    [("table", "pandas", "training"), ("figure", "matplotlib", "figures")],
)
def test_a_package_that_was_not_installed_is_one_sentence_with_what_to_install(
    installed: Path, stage: str, package: str, extra: str
) -> None:
    code = f"import sys; sys.modules['{package}'] = None; from heads.__main__ import main"
    done = run(installed, [sys.executable, "-c", f"{code}; sys.exit(main(['{stage}', '-h']))"])
    assert (done.returncode, done.stderr) == (1, f"error: {package} is not installed: pip install 'heads[{extra}]'\n")


def test_so_is_one_that_only_one_way_to_choose_heads_needs(installed: Path) -> None:
    code = "import sys; sys.modules['pulp'] = None; import heads.cli.selection as stage, heads.__main__ as m; "
    code += "from heads.pruning.selection import keep_optimal; "
    code += "stage.run = lambda: keep_optimal({('enc_self', 0, 0): 1.0}, 1, {}); "
    code += "sys.exit(m.main(['selection']))"
    done = run(installed, [sys.executable, "-c", code])
    assert (done.returncode, done.stderr) == (1, "error: pulp is not installed: pip install 'heads[training]'\n")


def test_a_model_is_inspected_by_the_installed_command(installed: Path, tmp_path: Path) -> None:
    export(saved_bundle(write_experiment(tmp_path / "tiny").baseline), tmp_path / "mine")
    (tmp_path / "text").write_text("".join(f"{line}\n" for line in SOURCE), encoding="utf-8")
    flags = [str(tmp_path / "mine"), str(tmp_path / "text"), "-o", str(tmp_path / "heads.html"), "--masked", "2"]
    done = run(installed, [*WITH_TRAINING, "inspect", *flags, "--device", "cpu"])
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "heads.tsv").read_text(encoding="utf-8").splitlines()) == 19
    assert "</html>" in (tmp_path / "heads.html").read_text(encoding="utf-8")


def test_a_model_is_pruned_by_the_installed_command(installed: Path, tmp_path: Path) -> None:
    export(saved_bundle(write_experiment(tmp_path / "tiny").baseline), tmp_path / "mine")
    words = " ".join(SOURCE).split()
    lines = [f"{one} {other} {line}\n" for line in SOURCE for one in words[:5] for other in words[5:10]]
    (tmp_path / "text").write_text("".join(lines), encoding="utf-8")
    flags = ["--keep", "encoder=4", "--minutes", "0.01", "-o", str(tmp_path / "small"), "--device", "cpu"]
    command = [*WITH_TRAINING, "prune", str(tmp_path / "mine"), str(tmp_path / "text")]
    done = run(installed, [*command, *flags])
    assert done.returncode == 0, done.stderr
    assert "</html>" in (tmp_path / "small.html").read_text(encoding="utf-8")
    assert [kind for kind, _, _ in shape_of(tmp_path / "small").heads()].count("enc_self") == 4
