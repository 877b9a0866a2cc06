"""A missing corpus file: one sentence when the plan is made, unless a rule makes the file."""

import re
from collections.abc import Mapping
from functools import partial
from operator import eq
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
import yaml
from workshop import config

from checkouts import TINY, checkout, snakemake
from heads.base.files import UserError, write_lines, write_text
from heads.base.names import SIDES, SPLITS
from heads.config.corpus_entries import local_files_of
from heads.config.plan import Plan
from heads.config.settings import merged

CLEANING = {"max_words": 60, "max_length_ratio": 4.0}
TEXT: dict[str, Any] = {
    "kind": "files",
    "source": "en",
    "target": "de",
    "folder": "texts",
    "train": [{"columns": "all.tsv", "separator": "|", "source_column": 0, "target_column": 1},
              {"source": "a.en", "target": {"path": "a.zip", "member": "a.de"},
               "overlap": {"links": "links.xml", "ids": "a.ids"}}],
    "dev": [{"source": "b.en", "target": "b.de", "overlap": "b.overlap"}],
    "test": [{"sacrebleu": "wmt14"}],
    "out_of_domain": [{"source": "c.en", "target": "c.de"}],
    "trees": "../bank/gold.conllu",
    "parser_trees": {"path": "learn.conllu"},
    "alignment": {"dev": "dev.links", "test": {"links": "test.links", "target": "cut.de"}},
    "cleaning": CLEANING,
}  # fmt: skip
EXAMPLES: dict[str, Any] = {
    "kind": "pairs_of_sentences",
    "source": "en",
    "columns": {"premise": 0, "label": 1},
    "labels": ["a", "b"],
    "train": [{"table": "a.tsv"}, {"table": "b.tsv"}],
    "hold_out": {"dev": 1},
    "test": [{"table": {"url": "https://example.org/c.tsv"}}],
    "cleaning": {"max_words": 9},
}
KEYS = {
    "text": {
        "texts/all.tsv": "train.0.columns",
        "texts/a.en": "train.1.source",
        "texts/a.zip": "train.1.target",
        "texts/links.xml": "train.1.overlap.links",
        "texts/a.ids": "train.1.overlap.ids",
        "texts/b.en": "dev.0.source",
        "texts/b.de": "dev.0.target",
        "texts/b.overlap": "dev.0.overlap",
        "texts/c.en": "out_of_domain.0.source",
        "texts/c.de": "out_of_domain.0.target",
        "texts/../bank/gold.conllu": "trees",
        "texts/learn.conllu": "parser_trees",
        "texts/dev.links": "alignment.dev.links",
        "texts/test.links": "alignment.test.links",
        "texts/cut.de": "alignment.test.target",
    },
    "examples": {"a.tsv": "train.0.table", "b.tsv": "train.1.table"},
}
"""The local files of each corpus, with the key that names each file."""
NOTHING: Mapping[str, Any] = MappingProxyType({})
CASES = [(corpus, path) for corpus, keys in KEYS.items() for path in keys]


def made(_: str) -> bool:
    """No rule makes it."""
    return False


@pytest.fixture
def plan(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Plan:
    """A plan in a folder that has every file of both corpora."""
    monkeypatch.chdir(tmp_path)
    for _, path in CASES:
        write_text(Path(path).resolve(), "")
    Path("texts").mkdir(exist_ok=True)
    return Plan(merged(config(), {"corpora": {"text": TEXT, "examples": EXAMPLES}}))


def test_every_file_of_a_corpus_is_named_by_its_key(plan: Plan) -> None:
    for corpus, path in CASES:
        key, local = KEYS[corpus][path], [str(path) for path in local_files_of(plan.corpora[corpus])]
        assert local == [*KEYS[corpus]]
        plan.check_there(corpus, local, made)
        Path(path).unlink()
        said = f"corpora.{corpus}.{key} is {path}, which does not exist: correct it or corpora.{corpus}.folder,"
        with pytest.raises(UserError, match=f"^{re.escape(said)} or put the file there\\.") as caught:
            plan.check_there(corpus, local, made)
        assert "\n" not in str(caught.value)
        plan.check_there(corpus, local, partial(eq, path))
        write_text(Path(path), "")


def test_a_file_that_is_called_nearly_so_is_named_unless_another_key_names_it(plan: Plan) -> None:
    Path("texts/b.de").rename("texts/bb.de")
    with pytest.raises(UserError, match=r"put the file there\. Did you mean bb\.de\?$"):
        plan.check_there("text", ["texts/b.de"], made)
    Path("texts/bb.de").unlink()
    assert Path("texts/c.de").is_file()
    with pytest.raises(UserError, match=r"put the file there\.$"):
        plan.check_there("text", ["texts/b.de"], made)


def planned(folder: Path, *words: str) -> tuple[int, str]:
    """Exit status and output of a Snakemake dry run of a checkout, with `mine.yaml` on top of the tiny experiment."""
    done = snakemake(folder, "-n", *words, "--configfile", str(TINY), "mine.yaml")
    return done.returncode, done.stdout


def mine(folder: Path, changes: Mapping[str, Any] = NOTHING) -> Path:
    """A checkout with a tiny experiment on the user's own text, with all its files in place."""
    checkout(folder)
    names = {split: {side: f"{split}.{side}" for side in SIDES} for split in SPLITS}
    for split, sides in names.items():
        for side, name in sides.items():
            write_lines(folder / "data" / name, [f"{split} in {side}"])
    write_text(folder / "data/gold.conllu", "")
    entry: dict[str, Any] = {**{key: TEXT[key] for key in ("kind", "source", "target", "cleaning")}, "folder": "data"}
    entry |= {**{split: [sides] for split, sides in names.items()}, "trees": "gold.conllu", **changes}
    own = {"corpora": {"mine": entry}, "experiments": {"mine": {"corpus": "mine", "roles": {"trees": ["gold"]}}}}
    write_text(folder / "mine.yaml", yaml.safe_dump(own))
    return folder


SUBWORDS, TREES = "results/mine/bpe/dev.source.safetensors", "results/corpora/mine/dev.conllu"


@pytest.mark.slow
def test_snakemake_says_it_before_the_first_job_and_of_what_is_asked_for_alone(tmp_path: Path) -> None:
    folder = mine(tmp_path)
    assert planned(folder, SUBWORDS, TREES)[0] == 0
    (folder / "data/gold.conllu").rename(folder / "data/glod.conllu")
    status, said = planned(folder, SUBWORDS, TREES)
    assert status == 1 and "MissingInputException" not in said and "Traceback" not in said
    assert "corpora.mine.trees is data/gold.conllu, which does not exist: correct it or" in said
    assert "Did you mean glod.conllu?" in said
    assert planned(folder, SUBWORDS)[0] == 0, "no trees were asked for"
    (folder / "data/dev.target").unlink()
    status, said = planned(folder, SUBWORDS)
    assert status == 1 and "corpora.mine.dev.0.target is data/dev.target, which does not exist" in said
    assert planned(folder, "results/tiny/bpe/source.model")[0] == 0, "another corpus was asked for"


@pytest.mark.slow
def test_text_that_was_made_of_files_which_are_gone_is_still_used(tmp_path: Path) -> None:
    folder = mine(tmp_path)
    words = ("results/corpora/mine/train.source.txt", TREES, "--cores", "1", "--configfile", str(TINY), "mine.yaml")
    write_text(folder / "data/gold.conllu", "1\ta\t_\tX\t_\t_\t0\troot\t_\t_\n\n")
    done = snakemake(folder, *words)
    assert done.returncode == 0, done.stdout[-2000:]
    for path in (folder / "data").iterdir():
        path.unlink()
    status, said = planned(folder, "results/mine/baseline/seed-1/roles.tsv")
    assert status == 0 and re.search("^roles +1$", said, re.MULTILINE), said[-2000:]
    assert not re.search("^(corpus|trees) +1$", said, re.MULTILINE)


@pytest.mark.slow
def test_text_may_be_what_a_rule_makes_of_another_corpus(tmp_path: Path) -> None:
    tiny = {side: f"results/corpora/tiny/train.{side}.txt" for side in SIDES}
    parts = {split: [{side: f"data/{split}.{side}" for side in SIDES}] for split in ("dev", "test")}
    folder = mine(tmp_path, {"folder": ".", "trees": "data/gold.conllu", "train": [tiny], **parts})
    status, said = planned(folder, SUBWORDS)
    assert status == 0 and re.search("^corpus +2$", said, re.MULTILINE), said[-2000:]
