"""The texts of the plan for small settings: files, trees, test sets, against lists written by hand."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
from plans import CORPORA, EXPERIMENTS, GOLD, LEARNT, LINKS, NOTHING, OTHER, OWN, SHA, TEXT, URL, below, plan

from checkouts import configuration
from heads.base.files import UserError
from heads.base.runs import Need
from heads.config.corpus_entries import compared_with, downloads_of, local_files_of
from heads.config.corpus_parts import download_name
from heads.config.plan import Plan
from heads.config.settings import merged


def test_a_corpus_is_made_of_its_text_and_each_treebank_and_other_domain_is_told_apart() -> None:
    asked, rich = plan(), CORPORA["rich"]
    assert asked.corpus_entry("rich") == asked.corpus_entry("plain") == TEXT
    assert asked.out_of_domain_entry("rich") == {**TEXT, "out_of_domain": OTHER}
    assert asked.treebank_entry("rich", "dev") == {**TEXT, "trees": rich["trees"]}
    assert asked.treebank_entry("rich", "train") == {**TEXT, "parser_trees": rich["parser_trees"]}
    for split in ("dev", "test"):
        assert asked.alignment_entry("rich", split) == {**TEXT, "alignment": {split: rich["alignment"][split]}}
    assert asked.treebank_entry("written", "dev") == CORPORA["written"]
    assert asked.corpus_entry("written") == {**TEXT, "source": "en"}
    assert asked.alignment_entry("plain", "dev") == TEXT
    assert asked.corpus_entry("held") == {**TEXT, "hold_out": {"roles": 5}}
    with pytest.raises(
        UserError, match=r"^corpora\.plain has no out-of-domain test set: name its parts under out_of_domain"
    ):
        asked.out_of_domain_entry("plain")
    with pytest.raises(UserError, match=r"^corpora\.plain has no out-of-domain test set"):
        asked.out_of_domain_files("plain")


def test_experiments_are_held_against_numbers_of_the_paper_on_wmt_unless_their_corpus_says_another() -> None:
    config = configuration()
    asked = Plan(config)
    entries = {name: asked.corpora[one.corpus] for name, one in asked.experiments.items()}
    of_films = [name for name, one in asked.experiments.items() if one.corpus == "opensubtitles-en-ru"]
    assert of_films and compared_with({name: entries[name] for name in entries if name not in of_films}) == []
    assert compared_with(entries) == [f"{name}=OpenSubtitles" for name in of_films]
    assert "compared_with" not in asked.corpus_entry("opensubtitles-en-ru"), "its text is none the other for it"


WRITTEN = {"distilled_by": "firefox/en-pt", "sentences": 5}
PEOPLES: dict[str, Any] = {"source": "c.de", "target": "c.en"}
OTHERS = {**WRITTEN, "distilled_by": "opus"}


@pytest.mark.parametrize(
    ("corpus", "pretrained", "against"),
    [
        ({"test": [PEOPLES]}, "firefox/en-pt", "references"),
        (
            {"train": [WRITTEN], "dev": [WRITTEN], "test": [PEOPLES, {"sacrebleu": "wmt14"}]},
            "firefox/en-pt",
            "references",
        ),
        ({"test": [WRITTEN, {**WRITTEN, "after": 5}]}, "firefox/en-pt", "unpruned model"),
        ({"test": [WRITTEN]}, "", "model firefox/en-pt"),
        ({"test": [OTHERS]}, "firefox/en-pt", "model opus"),
        ({"train": [WRITTEN], "test": None, "hold_out": {"test": 2}}, "firefox/en-pt", "unpruned model"),
        ({"train": [WRITTEN, PEOPLES]}, "firefox/en-pt", "references"),
    ],
)
def test_scores_are_against_references_or_against_the_model_that_wrote_the_targets_of_test(
    corpus: dict[str, Any], pretrained: str, against: str
) -> None:
    found = of_corpus(corpus, pretrained)
    told = {name: found.distillations.against(found.experiments[name]) for name in ("one", "two")}
    assert told == {"one": "references", "two": against}


@pytest.mark.parametrize(
    "corpus",
    [
        {"test": [WRITTEN, PEOPLES]},
        {"test": [PEOPLES, WRITTEN]},
        {"test": [WRITTEN, OTHERS]},
        {"train": [PEOPLES, WRITTEN], "test": None, "hold_out": {"test": 2}},
    ],
)
def test_a_test_set_with_targets_by_several_writers_is_refused(corpus: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=r"^corpora\.written\.test has targets by several writers.*\.$"):
        of_corpus(corpus, "firefox/en-pt")


@pytest.mark.parametrize("model", ["log", "./bench"])
def test_no_model_that_translates_a_text_has_the_folder_of_logs_or_times(model: str) -> None:
    name = model.removeprefix("./")
    with pytest.raises(
        UserError, match=rf"^distilled_by: {model} would lie in results/models/{name}, which has another"
    ):
        of_corpus({"train": [{**WRITTEN, "distilled_by": model}]}, "")


def of_corpus(corpus: Mapping[str, Any], pretrained: str) -> Plan:
    """A plan whose experiment `two` has the corpus `written`: TEXT with these keys; None removes a key."""
    entry = {key: value for key, value in {**TEXT, **corpus}.items() if value is not None}
    config = merged(configuration(), {"corpora": {"written": entry}})
    two = {"corpus": "written", "baseline": {"pretrained": pretrained}, "roles": OWN, "sweep": NOTHING}
    config["experiments"] = {
        "one": {"corpus": "demo", "sweep": NOTHING},
        "two": {**two, "parser": {"model": "stanza"}},
    }
    return Plan({**config, "run": ["one", "two"]})


def test_paths_start_from_the_folder_of_their_own_corpus_whichever_is_read_before() -> None:
    bare, names = {key: value for key, value in TEXT.items() if key != "folder"}, ("a.de", "a.en", "b.de", "b.en")
    corpora = {"first": TEXT, "second": bare, "third": {**TEXT, "folder": "others"}}
    asked = Plan(merged(configuration(), {"corpora": corpora}))
    assert asked.files_of("first") == below("texts", *names) and asked.files_of("third") == below("others", *names)
    assert asked.files_of("second") == [*names]


def test_the_files_of_an_entry_are_its_downloads_and_what_lies_on_disk() -> None:
    asked, text = plan(), below("texts", "a.de", "a.en", "b.de", "b.en")
    gold, learnt, links = (f"results/downloads/{download_name(url)}" for url in (URL, LEARNT, LINKS))
    assert asked.files_of("rich") == text
    assert asked.out_of_domain_files("rich") == [*text, "texts/o.de", "texts/o.en"]
    aligned = below("texts", "cut.en", "test.links")
    local = [*text, "texts/o.de", "texts/o.en", *aligned]
    assert [str(path) for path in local_files_of(asked.corpora["rich"])] == local
    assert downloads_of(asked.corpora["rich"]) == [URL, LEARNT, LINKS]
    assert asked.treebank_files("rich", "dev") == [gold]
    assert asked.treebank_files("rich", "train") == [learnt]
    assert asked.treebank_files("held", "train") == ["texts/learn.conllu"]
    assert asked.alignment_files("rich", "dev") == [links, "texts/cut.en"]
    assert asked.alignment_files("rich", "test") == ["texts/test.links"]
    assert asked.alignment_files("plain", "dev") == asked.alignment_files("demo", "dev") == []
    assert asked.treebank_files("plain", "dev") == asked.treebank_files("demo", "train") == []
    assert asked.treebank_files("written", "dev") == []


def test_every_url_is_downloaded_under_its_name_with_the_checksum_that_is_known() -> None:
    asked = plan()
    assert asked.downloads[download_name(URL)] == URL and asked.downloads[download_name(LEARNT)] == LEARNT
    assert asked.checksums[download_name(URL)] == SHA and download_name(LEARNT) not in asked.checksums


def test_an_experiment_has_the_trees_and_the_domain_that_its_corpus_and_its_parser_give() -> None:
    asked = plan(**EXPERIMENTS)
    names = ["one", *EXPERIMENTS]
    assert asked.run == names
    assert [name for name in names if asked.has_gold(name)] == ["one", "full", "gold", "told"]
    assert [name for name in names if asked.has_trees(name)] == ["one", "held", "full", "gold", "given", "told"]
    assert [name for name in names if asked.has_out_of_domain(name)] == ["full", "gold"]
    assert asked.with_scored_parser(names) == ["one", "full"] and asked.with_scored_parser(["gold", "given"]) == []
    assert [name for name in names if asked.has_alignment(name)] == ["one", "full", "gold"]
    assert asked.alignment_of("one") == "results/corpora/demo/dev.alignment.txt"
    with pytest.raises(UserError, match=r"^corpora\.plain has no word alignment: .* alignment: {dev: FILE}\.$"):
        asked.alignment_of("bare")
    others = ("accuracy.json", "cosine.json", "chrf.json", "rouge_l.json")
    assert {tuple(asked.lacking(name)[:4]) for name in names} == {others}, "all translate"
    assert {name: asked.lacking(name)[4:] for name in names} == {
        "one": ["ablation.out_of_domain.tsv", "causal.tsv"],
        "bare": ["alignment_heads.tsv", "ablation.out_of_domain.tsv", "causal.tsv"],
        "held": ["alignment_heads.tsv", "ablation.out_of_domain.tsv", "causal.tsv"],
        "full": ["causal.tsv"],
        "gold": ["causal.tsv"],
        "given": ["alignment_heads.tsv", "ablation.out_of_domain.tsv", "causal.tsv"],
        "told": ["alignment_heads.tsv", "ablation.out_of_domain.tsv", "causal.tsv"],
    }
    needed = Need((), {"baseline": ("alignment_heads.tsv",)}, ())
    assert asked.runs_read(needed, names) == [f"results/{name}/baseline/seed-1" for name in ("one", "full", "gold")]
    assert [asked.corpus_of("one"), asked.corpus_of("full")] == ["results/corpora/demo", "results/corpora/rich"]
    assert [asked.language("one"), asked.language("full")] == ["en", "de"]


def test_roles_are_measured_on_the_trees_that_there_are_in_the_order_of_the_settings() -> None:
    asked = plan(**EXPERIMENTS)
    gold = "results/corpora/{}/dev.conllu"
    one, full = (list(asked.tree_files(name).items()) for name in ("one", "full"))
    assert one == [("stanza", "results/one/parser/stanza.conllu"), ("gold", gold.format("demo"))]
    own, stanza = (f"results/full/parser/{name}.conllu" for name in ("own", "stanza"))
    assert full == [("own", own), ("gold", gold.format("rich")), ("stanza", stanza)]
    assert asked.tree_files("held") == {"own": "results/held/parser/own.conllu"}
    assert asked.tree_files("gold") == {"gold": gold.format("rich")}
    assert asked.tree_files("told") == {"gold": gold.format("written")}
    no_gold = r"^corpora\.plain has no gold trees: .* or own under experiments\.{}\.roles\.trees\.$"
    for name in ("bare", "given"):
        with pytest.raises(UserError, match=no_gold.format(name)):
            asked.gold_trees(name)


IN_FILES = {"none": {}, "gold": {"trees": "g.conllu"}, "learnt": {"parser_trees": "l.conllu"}}
IN_FILES["both"] = IN_FILES["gold"] | IN_FILES["learnt"]
LABELLED = {
    "kind": "pairs_of_sentences", "source": "en", "columns": {"premise": 0, "label": 1}, "labels": ["a", "b"],
    "train": [{"table": "t.tsv"}], "hold_out": {"dev": 2, "test": 2}, "cleaning": {"max_words": 9},
}  # fmt: skip
HAD = {
    ("none", "gold"): "",
    ("none", "own"): "",
    ("none", "gold stanza own"): "",
    ("gold", "gold"): "gold",
    ("gold", "own"): "",
    ("gold", "own gold"): "gold",
    ("gold", "stanza gold"): "gold",
    ("learnt", "gold"): "",
    ("learnt", "gold own"): "own",
    ("learnt", "gold stanza"): "",
    ("learnt", "stanza own"): "own",
    ("both", "stanza gold own"): "stanza gold own",
    ("both", "own"): "own",
    ("labelled", "gold"): "",
    ("labelled", "gold own"): "",
    ("labelled parser", "gold own"): "own",
    ("labelled gold", "gold own"): "gold",
    ("labelled gold parser", "own stanza gold"): "own stanza gold",
}
"""What the corpus has and what roles.trees names, and those of the latter that there are."""
NAMED = {
    "gold": "a treebank under corpora.{0}.trees",
    "learnt": "a treebank to train a parser on under corpora.{0}.parser_trees",
    "model": "a folder of Stanza models under experiments.{0}.parser.model",
    "had": "gold under experiments.{0}.roles.trees",
    "own": "own under experiments.{0}.roles.trees",
}
WAYS = {
    ("none", "gold"): "gold",
    ("none", "own"): "learnt",
    ("none", "gold stanza own"): "gold learnt",
    ("gold", "own"): "learnt had",
    ("gold", "own gold"): "learnt",
    ("gold", "stanza gold"): "learnt",
    ("learnt", "gold"): "gold own",
    ("learnt", "gold stanza"): "gold own",
    ("learnt", "stanza own"): "gold",
    ("labelled", "gold"): "gold",
    ("labelled", "gold own"): "gold model",
    ("labelled gold", "gold own"): "model",
}
"""What to name to have the others; for all other cases there is nothing to say."""


@pytest.fixture(scope="module")
def all_cases() -> Plan:
    """A plan of an experiment for each case, like one whose corpus has all trees; they are named by their place."""
    corpora, experiments = dict(CORPORA), {"full": {**EXPERIMENTS["full"], "sweep": NOTHING}}
    for number, (has, asked) in enumerate(HAD):
        gold = IN_FILES["gold" if "gold" in has else "none"]
        corpora[f"c{number}"] = LABELLED | gold if "labelled" in has else TEXT | IN_FILES[has]
        changes = {"like": "full", "corpus": f"c{number}", "roles": {"trees": asked.split()}}
        experiments[f"c{number}"] = changes | ({"parser": {"model": "stanza"}} if "parser" in has else {})
    config = merged(configuration(), {"corpora": corpora})
    return Plan({**config, "experiments": experiments, "run": list(experiments)})


@pytest.mark.parametrize(("number", "case"), [*enumerate(HAD)], ids=[" has no ".join(case) for case in HAD])
def test_trees_that_a_corpus_cannot_give_are_left_out_and_the_way_to_them_is_said_once(
    all_cases: Plan, number: int, case: tuple[str, str]
) -> None:
    name, had, ways = f"c{number}", HAD[case].split(), WAYS.get(case, "").split()
    assert list(all_cases.tree_files(name)) == had and all_cases.has_trees(name) == bool(had)
    assert all_cases.text_of_roles(name) == ([] if had else [f"results/corpora/{name}/dev.source.txt"])
    what = "leaves .* out of its roles.trees" if had else "measures no syntactic roles"
    way = " or ".join(NAMED[way] for way in ways).format(name)
    said = [note for note in all_cases.notes() if note.startswith(f"experiments.{name} ")]
    sentence = rf"experiments\.{name} {what}, for lack of a treebank in corpora\.{name}: to change that, name {way}\."
    assert len(said) == bool(ways) and all(re.fullmatch(sentence, note) for note in said), said


def test_without_trees_roles_are_measured_on_the_lines_held_out_for_them_if_there_are_any() -> None:
    asked = plan(held={"corpus": "held", "roles": GOLD}, bare=EXPERIMENTS["bare"])
    assert asked.text_of_roles("held") == ["results/corpora/held/roles.source.txt"]
    assert asked.text_of_roles("bare") == ["results/corpora/plain/dev.source.txt"]


def test_the_parser_learns_from_trees_of_train_and_parses_gold_words_where_there_are_any() -> None:
    asked = plan(**EXPERIMENTS)
    assert asked.parser_model("one") == "results/one/parser/model" and asked.parser_model("given") == "stanza"
    assert asked.learnt_trees("one") == "results/corpora/demo/train.conllu"
    assert asked.learnt_trees("held") == "results/corpora/held/train.conllu"
    with pytest.raises(
        UserError, match=r"^corpora\.plain has no treebank to train a parser on: .*bare\.parser\.model\.$"
    ):
        asked.learnt_trees("bare")
    with pytest.raises(UserError, match=r"^corpora\.held has no gold trees"):
        asked.parsed_words("held", "stanza")
