"""What is kept of an experiment: only its own rows and jobs, few bytes, and no absolute paths."""

import base64
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from checkouts import ROOT
from heads.__main__ import main
from heads.base.files import UserError, read_tsv, read_yaml, write_lines, write_text
from heads.base.keeping import jobs, keep, without_places
from heads.base.provenance import MARK

SOME_PLACE = re.compile(r"(^|[\s\"'=(,:\[])/(\w[\w.-]*/)*\w", re.MULTILINE)
"""An absolute path in any context; deliberately not the pattern under test."""
MOST_BYTES = 3_000_000
AT = {"code": "c" * 40, "other": "d" * 40}
RECORD = {"python": "3.11.7", "torch": "2.13.0", "sentencepiece": "0.2", "sacrebleu": "2.6", "numpy": "2.4",
          "machine": "x86_64", "processor": "Fast CPU 2/3", "cores": 12, "changed_since_commit": False}  # fmt: skip
BLEU = f"results/a/ж>>>???/{'a-long-name/' * 30}bleu"
SETTINGS = {
    "results/corpora/t/train.txt": {"kind": "files", "folder": "/data/secret/texts"},
    "results/a/model2": {"gates": {"updates": 7}, "model": {"layers": 2}},
    BLEU: {"translate": {"beam": 4}},
    "results/b/bleu": {"translate": {"beam": 9}},
    "results/figures/a/x.png": {"gates": {"updates": 1}},
}
"""Settings of the command behind each file; those of a figure are not the experiment's."""


def job(
    rule: str,
    output: str,
    *inputs: str,
    at: float,
    cost: tuple[str, str, str] | None,
    logged: bool = True,
    beside: str = "",
    **told: Any,
) -> str:
    """Write a file, its log, its benchmark (of two tries; the last one counts) and its Snakemake metadata."""
    log = Path(output).parent / "log" / f"{rule}.{Path(output).name}.txt"
    if cost:
        lines = ["s\tcpu_time\tmax_rss", "999\t999\t999", "\t".join(cost)]
        write_lines(log.parents[1] / "bench" / f"{log.stem}.tsv", lines)
    if logged:
        write_lines(log, ["some words", MARK + json.dumps({**RECORD, "commit": AT["code"], **told})])
    command = f"python -m heads {rule} --to /home/me/{rule} https://x.org/a/b ../up results/a"
    command += f" --settings '{json.dumps(SETTINGS[output])}'" if output in SETTINGS else ""
    kept = {"rule": rule, "input": inputs, "log": [str(log)], "shellcmd": command, "starttime": at, "endtime": at + 50}
    for path in filter(None, (output, beside)):
        write_text(Path(path), rule)
        name = base64.urlsafe_b64encode(path.encode()).decode()
        *folders, last = (name[start : start + 200] for start in range(0, len(name), 200))
        write_text(Path(".snakemake/metadata", *(f"@{part}" for part in folders), last), json.dumps(kept))
    return output


@pytest.fixture(autouse=True)
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiment a (two seeds, corpus t) next to b (another corpus), with tables and figures of both."""
    monkeypatch.chdir(tmp_path)
    for number, experiment in enumerate(("a", "b", "aa")):
        picture = np.random.default_rng(number).integers(0, 256, (30 + number, 40, 4), dtype=np.uint8)
        picture[..., 3] = 255
        for name in ("heads_by_type", "attention_maps"):
            Path(f"results/figures/{experiment}").mkdir(parents=True, exist_ok=True)
            Image.fromarray(picture).save(f"results/figures/{experiment}/{name}.png")
    rows = ["a\t1\t/home/me/run", "b\t2\tx", "a\t3\t10/48 [blog]/[D]", "aa\t4\t"]
    write_lines(Path("results/tables/table_pruning.tsv"), ["experiment\tours\tof what", *rows])
    write_lines(Path("results/tables/table_corpus.tsv"), ["experiment\tours", "b\t5"])
    write_lines(Path("results/tables/table_scoreboard.tsv"), ["claim\tours_a\tours_b", "c\t6\t7"])
    texts = job("corpus", "results/corpora/t/train.txt", at=1e9, cost=("60", "30", "100"))
    others = job("corpus", "results/corpora/u/train.txt", at=5e8, cost=("6000", "6000", "9999"))
    job("gates", "results/b/model", others, at=2e8, cost=("6e3", "6e3", "9e3"))
    job("gates", "results/aa/model", at=2e8, cost=("6000", "6000", "9999"), seed=77)
    Path(job("gates", "results/a/gone", at=2e8, cost=("6000", "6000", "9999"), seed=78)).unlink()
    for seed, cost in ((10, ("120", "90", "700")), (2, ("240", "180", "500"))):
        told: Any = {"seed": seed, "device": "cuda:1 a card", "beside": f"results/a/model{seed}.json"}
        job("gates", f"results/a/model{seed}", texts, at=1e9 + 100 + seed, cost=cost, **told)
    job("score", BLEU, at=1e9 + 900, cost=("0.2", "NA", "-"), commit=AT["other"], changed_since_commit=True)
    job("table", "results/tables/made", at=1e9 + 950, cost=None, logged=False)


def test_tables_keep_the_rows_of_the_experiment_and_one_without_such_a_column_is_kept_whole(tmp_path: Path) -> None:
    folder = keep("a", tmp_path / "kept")
    assert folder == tmp_path / "kept/a"
    tables = {path.name: read_tsv(path) for path in folder.glob("tables/*")}
    assert tables == {
        "table_pruning.tsv": [
            {"experiment": "a", "ours": "1", "of what": "…/run"},
            {"experiment": "a", "ours": "3", "of what": "10/48 [blog]/[D]"},
        ],
        "table_scoreboard.tsv": [{"claim": "c", "ours_a": "6", "ours_b": "7"}],
    }


@pytest.mark.parametrize(("heads", "kept"), [(124, ["1", "2", "mean", "sd"]), (125, ["1", "2"])])
def test_means_over_seeds_that_follow_from_the_rows_are_left_out_of_long_tables_alone(
    tmp_path: Path, heads: int, kept: list[str]
) -> None:
    rows = [f"a\t{head}\t{seed}" for head in range(heads) for seed in ("1", "2", "mean", "sd")]
    write_lines(Path("results/tables/table_measures.tsv"), ["experiment\thead\tseed", *rows, *["b\t1\t1"] * 9])
    found = read_tsv(keep("a", tmp_path) / "tables/table_measures.tsv")
    assert found == [{"experiment": "a", "head": str(head), "seed": seed} for head in range(heads) for seed in kept]


def test_pictures_that_tell_the_story_keep_their_size_with_few_colours(tmp_path: Path) -> None:
    folder = keep("a", tmp_path)
    found = {path.name: Image.open(path) for path in folder.glob("figures/*")}
    assert {name: picture.size for name, picture in found.items()} == {"heads_by_type.png": (40, 30)}
    for picture in found.values():
        assert picture.mode == "P" and len(picture.getcolors() or []) <= 64
    before, after = (np.asarray(Image.open(path).convert("RGB"), float) for path in (
        "results/figures/a/heads_by_type.png", folder / "figures/heads_by_type.png"))  # fmt: skip
    assert np.abs(before - after).mean() < 32


def test_costs_are_those_of_the_experiments_own_jobs_and_its_corpus_each_once(tmp_path: Path) -> None:
    rows = read_tsv(keep("a", tmp_path) / "jobs.tsv")
    costs = {row["rule"]: (row["jobs"], row["wall_minutes"], row["cpu_minutes"], row["memory_mb"]) for row in rows}
    assert costs == {
        "corpus": ("1", "1", "0.5", "100"),
        "gates": ("2", "6", "4.5", "700"),
        "score": ("1", "0", "0", "0"),
        "table": ("1", "0", "0", "0"),
    }
    assert rows[1]["command"] == (
        "python -m heads gates --to …/gates https://x.org/a/b ../up results/a --settings settings.yaml"
    )


def test_the_page_says_from_which_code_on_what_and_how(tmp_path: Path) -> None:
    started = "Command: /opt/bin/snakemake --cores 2 --config folder=/data/texts run=[a]"
    for name, said in (("2", f"{started}\nresults/a/model2\n"), ("1", "Command: snakemake -n\nresults/aa/x\n"),
                       ("3", f"{started}\n results/a/model10")):  # fmt: skip
        write_text(Path(f".snakemake/log/{name}.log"), said)
    lines = (keep("a", tmp_path) / "README.md").read_text(encoding="utf-8").splitlines()
    facts = dict(re.findall(r"^\| (\w+) \| (.*) \|$", "\n".join(lines), re.MULTILINE))
    versions = "python 3.11.7, torch 2.13.0, sentencepiece 0.2, sacrebleu 2.6, numpy 2.4"
    assert {name: facts[name] for name in ("code", "machine", "device", "versions", "seeds")} == {
        "code": f"commit {'c' * 12}, commit {'d' * 12} and changes on it",
        "machine": "Fast CPU 2/3, 12 cores, x86_64",
        "device": "cuda:1 a card",
        "versions": versions,
        "seeds": "2, 10",
    }
    assert facts["when"] == "2001-09-09 01:46 to 2001-09-09 02:03 UTC"
    assert facts["cost"] == "5 CPU minutes, 7 minutes one after another, 5 jobs of at most 700 MB"
    begin = lines.index("```sh")
    assert lines[begin + 1 :] == [
        f"git checkout {'c' * 40}",
        "snakemake --cores 2 --config folder=…/texts run=[a]",
        "```",
    ]


def test_a_model_from_the_cache_which_has_no_log_is_told_of_by_its_own_facts(tmp_path: Path) -> None:
    model = job("baseline", "results/a/seed-9/model.safetensors", at=1e9, cost=None, logged=False)
    score = job("score", "results/a/seed-9/bleu.json", at=1e9, cost=None, logged=False)
    write_text(
        Path("results/a/seed-9/model.json"), json.dumps({"provenance": {**RECORD, "commit": "f" * 40, "seed": 9}})
    )
    page = (keep("a", tmp_path) / "README.md").read_text(encoding="utf-8")
    assert "| seeds | 2, 9, 10 |" in page and f"commit {'f' * 12}, " in page
    assert (jobs()[model].record["seed"], jobs()[score].record) == (9, {})


def test_of_many_devices_the_first_four_are_named_and_the_rest_counted(tmp_path: Path) -> None:
    for seed in range(20, 25):
        job("gates", f"results/a/model{seed}", at=1e9, cost=("1", "1", "1"), seed=seed, device=f"cuda:{seed}")
    page = (keep("a", tmp_path) / "README.md").read_text(encoding="utf-8")
    (devices,) = re.findall(r"^\| device \| (.*) \|$", page, re.MULTILINE)
    assert len(devices.split(", ")) == 4 and devices.endswith(" and 2 more")


def test_settings_are_what_the_experiments_stages_and_its_corpus_were_told(tmp_path: Path) -> None:
    assert read_yaml(keep("a", tmp_path) / "settings.yaml") == {
        "corpora": {"t": {"kind": "files", "folder": "…/texts"}},
        "gates": {"updates": 7},
        "model": {"layers": 2},
        "translate": {"beam": 4},
    }


@pytest.mark.parametrize(
    ("text", "left"),
    [("/data", "…/data"), ("a=/work/x/y.tsv b", "a=…/y.tsv b"), ('"/a b/c"', '"…/a b/c"'), ("../a/b", "../a/b"),
     ("~/a/b", "~/a/b"), ("https://a.b/c/d", "https://a.b/c/d"), ("results/a and/or 1/2", "results/a and/or 1/2"),
     ("{folder: /x/y/}", "{folder: …/y/}"), ("[/a/b, /c]", "[…/b, …/c]"), ("1 / 2", "1 / 2")],
)  # fmt: skip
def test_absolute_paths_lose_their_folders_and_nothing_else_is_touched(text: str, left: str) -> None:
    assert without_places(text) == left


def test_no_absolute_path_is_in_any_file_that_is_kept(tmp_path: Path) -> None:
    folder = keep("a", tmp_path)
    texts = {path.name: path.read_text(encoding="utf-8") for path in folder.rglob("*.*") if path.suffix != ".png"}
    assert len(texts) == 5
    assert [name for name, text in texts.items() if SOME_PLACE.search(text)] == []
    assert all(SOME_PLACE.search(bad) for bad in ("/home/me", "folder: /data", '["/a/b"]', "x=/a"))


def test_kept_again_what_there_is_no_more_goes_and_what_a_person_wrote_stays(tmp_path: Path) -> None:
    folder = keep("a", tmp_path)
    write_text(folder / "notes.md", "mine")
    Path("results/tables/table_scoreboard.tsv").unlink()
    keep("a", tmp_path)
    found = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert found == {"notes.md", "README.md", "jobs.tsv", "settings.yaml", "tables/table_pruning.tsv",
                     "figures/heads_by_type.png"}  # fmt: skip


def test_without_results_it_is_refused_in_one_sentence_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(UserError, match=r"^No table .* of c here: run snakemake --config .* first\.$"):
        keep("c", tmp_path / "kept")
    Path(".snakemake/metadata").rename("elsewhere")
    with pytest.raises(UserError, match="No job that Snakemake remembers of a here"):
        keep("a", tmp_path / "kept")
    for path in Path("results/figures").rglob("*.png"):
        path.unlink()
    with pytest.raises(UserError, match="No figure of a here"):
        keep("a", tmp_path / "kept")
    assert main(["keep", "--experiment", "c", "--to", str(tmp_path / "kept")]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert not (tmp_path / "kept").exists()


def test_what_is_kept_in_this_repository_is_small_and_names_no_place_of_a_machine() -> None:
    files = [path for path in (ROOT / "docs/measured").rglob("*") if path.is_file()]
    assert files and sum(path.stat().st_size for path in files) < MOST_BYTES
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix != ".png"}
    assert [str(path) for path, text in texts.items() if SOME_PLACE.search(text)] == []
