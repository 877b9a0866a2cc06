"""Experiments whose corpus has labels: their plan, and settings that are refused."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from checkouts import configuration
from heads.base.files import UserError, write_json
from heads.config.plan import Plan
from heads.config.settings import merged, resolve, stage_settings
from heads.tables.catalogue import FIGURES, TABLES, Made

CONFIG = configuration()
MADE: list[Made] = [*TABLES.values(), *FIGURES.values()]
NEEDS = [one.need for one in MADE]
CORPUS = {"kind": "grammar_pairs", "source": "en", "seed": 1, "pairs": {"train": 90, "dev": 9, "test": 9}}


def config(changes: Mapping[str, Any]) -> dict[str, Any]:
    """config.yaml with an experiment `told` on a corpus with labels."""
    own = {"corpora": {"told": CORPUS}, "experiments": {"told": {"corpus": "told", **changes}}}
    return merged(CONFIG, own)


SWEEP: dict[str, Any] = {
    "lambdas": {"all": [0.1]},
    "budgets": {"all": [3]},
    "selection": {
        "methods": ["random"],
        "budgets": [3],
        "draws": 1,
        "fine_tuned": {"methods": ["gates"], "budgets": [3]},
    },
    "scratch_scopes": ["all"],
}


def test_a_model_that_classifies_is_pruned_in_one_scope_and_scored_by_accuracy() -> None:
    plan = Plan(config({"sweep": SWEEP}))
    folders = [folder.removeprefix("results/told/") for folder in plan.run_folders("told")]
    assert folders == [
        "baseline/seed-1",
        *(f"pruned/all/{target}/seed-1" for target in ("lam-0", "lam-0.1", "keep-3")),
        "scratch/all/lam-0.1/seed-1",
        *(f"selected/all/{target}/seed-1" for target in ("lam-0", "keep-3")),
    ]
    assert plan.scored_files("told") == ("accuracy.json", "predictions.txt")
    assert plan.lacking("told")[:2] == ["bleu.json", "bleu_statistics.tsv"]
    assert plan.scored_files("demo") == ("bleu.json", "translations.txt")


def test_tables_and_figures_read_the_experiments_of_their_own_task() -> None:
    units: dict[str, Any] = {"sweep": {"lambdas": {"feedforward": [0.1]}}}
    plan = Plan(merged(config(merged({"sweep": SWEEP}, units)), {"experiments": {"demo": units}}))
    for need in NEEDS:
        read = {folder.split("/")[1] for folder in plan.runs_read(need, ["demo", "told"])}
        assert read == {name for name in ("demo", "told") if plan.task(name) in need.tasks}
    assert "told" in plan.runs_read(TABLES["roles"].need, ["told"])[0]
    assert not Plan(config({"sweep": SWEEP})).runs_read(TABLES["units"].need, ["demo", "told"]), "no unit has a gate"


def test_only_the_bpe_stage_is_told_the_task_and_only_where_there_are_labels() -> None:
    experiments = resolve(config({"sweep": SWEEP}))
    assert stage_settings(experiments["told"], "bpe")["task"] == "classification"
    assert "task" not in stage_settings(experiments["told"], "baseline")
    assert "task" not in stage_settings(experiments["demo"], "bpe")
    assert stage_settings(experiments["told"], "selection")["selection"]["at_least"] == {"enc_self": 1}
    assert set(stage_settings(experiments["demo"], "selection")["selection"]["at_least"]) > {"dec_enc"}


def test_shares_are_of_the_heads_of_the_encoder_alone() -> None:
    sweep = resolve(config({}))["told"].sweep
    assert sweep.budgets == {"all": (12, 24, 36)}
    assert sweep.selection.budgets == (12, 24, 29, 36, 43)  # 60 and 90 % are 28.8 and 43.2
    assert sweep.selection.fine_tuned.budgets == (12, 24, 36)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sweep": {"lambdas": {"enc_self": [0.1]}}}, r"sweep.lambdas names enc_self, but a model that classifies"),
        (
            {"sweep": {"scratch_scopes": ["enc_self"]}},
            r"sweep.scratch_scopes names enc_self, but a model that classifies",
        ),
        (
            {"sweep": {"gates_from_scratch_scopes": ["all", "enc_self"]}},
            r"sweep.gates_from_scratch_scopes names enc_self, but",
        ),
        (
            {"sweep": {"scratch_lambdas": {"enc_self": [0.1]}}},
            r"sweep.scratch_lambdas names enc_self, but a model that",
        ),
        (
            {"sweep": {"selection": {"methods": ["causal"]}}, "causal": {"updates": 5}},
            r"selection names the method causal, but models that classify have no causal gates: take causal out\.$",
        ),
        (
            {"sweep": {"budgets": {"all": ["1-2-3"]}}},
            r"all has 1-2-3, which does not fit the scope all: give one number\.",
        ),
        ({"sweep": {"budgets": {"all": [49]}}}, r"asks for 49 of the 48 heads of enc_self: lower it"),
        ({"sweep": {"selection": {"budgets": [49]}}}, r"budgets has 49, but the model has 48 heads: lower it"),
    ],
)
def test_what_a_model_without_a_decoder_cannot_have_is_told_in_a_sentence(
    changes: Mapping[str, Any], sentence: str
) -> None:
    plain = {"sweep": {"budgets": {"all": []}, "selection": {"budgets": [3], "fine_tuned": {"budgets": []}}}}
    with pytest.raises(UserError, match=sentence):
        resolve(config(merged(plain, changes)))


def test_attention_maps_of_examples_are_of_the_dev_text_with_labels_and_with_trees_where_there_are_gold_ones() -> None:
    tables: dict[str, Any] = {
        "kind": "pairs_of_sentences",
        "source": "en",
        "columns": {"premise": 0, "label": 1},
        "labels": ["a", "b"],
    }
    tables |= {name: [{"table": f"{name}.tsv"}] for name in ("train", "dev", "test")}
    own = {"corpora": {"read": {**tables, "cleaning": {"max_words": 9}}}, "experiments": {"plain": {"corpus": "read"}}}
    plan = Plan(merged(config({"sweep": SWEEP}), own))
    shown = {
        name: (plan.sentences_shown(name), plan.labels_shown(name), plan.trees_shown(name))
        for name in ("told", "plain", "demo")
    }
    folder = "results/corpora"
    assert shown == {
        "told": (f"{folder}/told/dev.source.txt", [f"{folder}/told/dev.target.txt"], [f"{folder}/told/dev.conllu"]),
        "plain": (f"{folder}/read/dev.source.txt", [f"{folder}/read/dev.target.txt"], []),
        "demo": (f"{folder}/demo/dev.conllu", [], []),
    }


def test_a_file_of_models_of_another_task_is_refused_for_an_experiment_and_no_other_file() -> None:
    plan = Plan(config({"sweep": SWEEP}))
    files = {name for need in NEEDS for names in need.files.values() for name in names}
    assert {"confidence.tsv", "lrp.tsv", "roles.tsv"} < files
    refused: dict[str, set[str]] = {"demo": set(), "told": set()}
    for experiment, names in refused.items():
        for name in sorted(files - {"causal.tsv", "cosine.json", "chrf.json", "rouge_l.json"}):
            try:
                plan.check_made(experiment, name)
            except UserError:
                names.add(name)
    of_translations = {"bleu.json", "bleu_statistics.tsv", "cross_attention_roles.tsv", "alignment_heads.tsv"}
    assert refused == {"demo": {"accuracy.json"}, "told": of_translations}
    with pytest.raises(UserError, match=r"^chrf\.json is of models that are inspected one by one, but those of demo"):
        plan.check_made("demo", "chrf.json")
    with pytest.raises(UserError, match=r"^causal\.tsv is of models that translate, but those of told classify"):
        plan.check_made("told", "causal.tsv")
    with pytest.raises(UserError, match=r"^experiments\.demo\.causal\.updates is 0, so no gates are fitted: set one"):
        plan.check_made("demo", "causal.tsv")
    Plan(merged(config({}), {"experiments": {"demo": {"causal": {"updates": 5}}}})).check_made("demo", "causal.tsv")


@pytest.mark.parametrize(
    ("experiment", "corpus", "kind", "sentence"),
    [
        ("demo", "demo", "bert", "is a BERT, which does not translate: name a model that does."),
        ("told", "told", "marian", "translates and does not classify: name a BERT."),
        ("told", "told", "bart", "translates and does not classify: name a BERT."),
        ("told", "told", "", "translates and does not classify: name a BERT."),
        ("told", "told", "bert", ""),
        ("demo", "demo", "m2m_100", ""),
    ],
)
def test_a_pretrained_model_for_another_task_than_the_corpus_is_for_is_refused_while_planning(
    tmp_path: Path, experiment: str, corpus: str, kind: str, sentence: str
) -> None:
    """A folder without config.json is Marian's own."""
    if kind:
        write_json(tmp_path / "config.json", {"model_type": kind})
    else:
        (tmp_path / "model.npz").write_bytes(b"PK\x03\x04")
    theirs = {"corpus": corpus, "baseline": {"pretrained": str(tmp_path), "checkpoint_updates": []}}
    whole = merged(config({}), {"experiments": {experiment: theirs}})
    plan = Plan(whole)
    if sentence:
        with pytest.raises(UserError) as error:
            plan.pretrained_files(experiment)
        assert str(error.value) == f"experiments.{experiment}.baseline.pretrained: {tmp_path} {sentence}"
    else:
        assert plan.pretrained_files(experiment)
