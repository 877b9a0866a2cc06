"""Stanza's parser: scores against a hand-made case and the official scorer, words, the folder, a tiny training."""

import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import yaml
from stanza.models import parser as stanza_parser
from stanza.models.common.utils import ud_scores

from heads.__main__ import main
from heads.base.files import UserError, read_tsv, write_lines
from heads.config.trainings import ParserSettings
from heads.one_model.inspecting import inspect
from heads.syntax import parsing
from heads.syntax.attachment_scores import attachment_rows
from heads.syntax.conllu import Sentence, Word, place, read_conllu, write_conllu
from heads.syntax.parsing import evenly, open_models, parse, train_models
from heads.syntax.tokenising import read_to_parse, words_of_text
from model_folders import SOURCE, write_experiment

CPU = torch.device("cpu")
TINY = ParserSettings(
    model="",
    train_sentences=0,
    tagger_steps=30,
    tagger_batch_sentences=20,
    parser_steps=80,
    parser_batch_words=120,
    width=16,
    embedding=6,
    dropout=0.0,
    word_dropout=0.0,
    seed=3,
)
# A word with its head and relation in the gold tree, and in the parse.
HAND_MADE = [
    ("She", 2, "nsubj", 2, "nsubj"),
    ("saw", 0, "root", 0, "root"),
    ("her", 4, "nmod:poss", 4, "nmod"),  # a missing subtype is no error
    ("dog", 2, "obj", 2, "nsubj"),  # the right head with the wrong relation
    ("bark", 2, "xcomp", 4, "acl"),
    (".", 2, "punct", 4, "punct"),  # the right relation with the wrong head
]


def scores(gold: list[Sentence], parsed: list[Sentence]) -> dict[object, tuple[object, ...]]:
    """Gold, parsed and correct counts, precision, recall and F1 by measure or relation."""
    return {row["relation"] or row["measure"]: tuple(row.values())[2:] for row in attachment_rows(gold, parsed)}


def test_scores_of_a_hand_made_parse_are_those_counted_by_hand() -> None:
    gold = place((form, form, "X", head, name, True) for form, head, name, _, _ in HAND_MADE)
    parsed = place((form, "_", "Y" if form == "dog" else "X", head, name, True) for form, _, _, head, name in HAND_MADE)
    found = scores([gold], [parsed])
    assert found["UPOS"] == pytest.approx((6, 6, 5, 5 / 6, 5 / 6, 5 / 6))
    assert found["UAS"] == pytest.approx((6, 6, 4, 2 / 3, 2 / 3, 2 / 3))
    assert found["LAS"] == pytest.approx((6, 6, 3, 1 / 2, 1 / 2, 1 / 2))
    assert found["nsubj"] == pytest.approx((1, 2, 1, 1 / 2, 1.0, 2 / 3))
    assert found["nmod"] == (1, 1, 1, 1.0, 1.0, 1.0)
    assert found["punct"] == (1, 1, 0, 0.0, 0.0, 0.0)
    assert found["acl"] == (0, 1, 0, 0.0, None, 0.0)
    assert found["xcomp"] == (1, 0, 0, None, 0.0, 0.0)
    assert set(found) == {"UPOS", "UAS", "LAS", "nsubj", "root", "nmod", "obj", "xcomp", "punct", "acl"}


def random_words(generator: np.random.Generator, size: int) -> Iterator[Word]:
    """A random tree: each word depends on an earlier one of a random order."""
    order = [int(word) for word in generator.permutation(size) + 1]
    heads = {word: order[generator.integers(place)] if place else 0 for place, word in enumerate(order)}
    for word in range(1, size + 1):
        name = ("nsubj", "obj", "obl:tmod", "obl", "punct")[generator.integers(5)] if heads[word] else "root"
        yield f"w{word}", "_", ("NOUN", "VERB")[generator.integers(2)], heads[word], name, True


def test_overall_scores_equal_the_official_scorer_of_the_shared_task(tmp_path: Path) -> None:
    generator = np.random.default_rng(5)
    sizes = generator.integers(1, 12, 30)
    gold, parsed = ([place(random_words(generator, size)) for size in sizes] for _ in range(2))
    for name, trees in (("gold", gold), ("parsed", parsed)):
        write_conllu(tmp_path / name, trees)
    official = ud_scores(str(tmp_path / "gold"), str(tmp_path / "parsed"))
    found = scores(gold, parsed)
    for measure in ("UPOS", "UAS", "LAS"):
        assert found[measure][2] == official[measure].correct
        assert found[measure][5] == pytest.approx(official[measure].f1)
    assert 0 < official["LAS"].correct < official["UAS"].correct < sizes.sum()


def test_a_parse_of_other_words_is_refused() -> None:
    one, two = place([("a", "_", "X", 0, "root", True)]), place([("b", "_", "X", 0, "root", True)])
    with pytest.raises(UserError, match="Sentence 2"):
        attachment_rows([one, one], [one, two])
    with pytest.raises(UserError, match="1 parsed sentences"):
        attachment_rows([one, one], [one])


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("Don't go!", "Do n't go !"),
        ("The teacher's dogs cannot bark...", "The teacher 's dogs can not bark ..."),
        ('"We’re late," she said.', '" We ’re late , " she said .'),
        (
            "Mr. Smith paid $3,000.50 (twice) in the U.S. in 2019.",
            "Mr. Smith paid $ 3,000.50 ( twice ) in the U.S. in 2019 .",
        ),
        (
            "A well-known site: www.example.org/a?b=1, or a.b@c.org.",
            "A well-known site : www.example.org/a?b=1 , or a.b@c.org .",
        ),
        ("the 1990s, 20th  at 12:30pm", "the 1990s , 20th at 12:30pm"),
        ("我们在2024年用GitHub了。", "我 们 在 2024 年 用 GitHub 了 。"),
        ("猫 don't 见", "猫 do n't 见"),
        ("ฉันชอบแมว", "ฉั น ช อ บ แ ม ว"),
        ("나는 고양이를 좋아한다.", "나는 고양이를 좋아한다 ."),
    ],
)
def test_english_text_is_cut_as_universal_dependencies_cut_it(line: str, words: str) -> None:
    sentence = words_of_text(line)
    assert [token.form for token in sentence] == words.split()


def test_text_whose_words_no_blanks_separate_is_not_given_to_a_parser(tmp_path: Path) -> None:
    write_lines(tmp_path / "text.zh", ["我们喜欢猫。", "The cat sleeps.", "他们在这里。"])
    with pytest.raises(UserError, match=r"text\.zh has no blanks between words"):
        read_to_parse(tmp_path / "text.zh")
    write_lines(tmp_path / "text.en", ["The old cat 猫 sleeps here.", "We all like 猫."])
    assert [len(sentence) for sentence in read_to_parse(tmp_path / "text.en")] == [7, 5]


def test_words_of_a_text_stand_where_they_stood() -> None:
    line = " ".join(chr(code) for code in range(33, 0x500) if chr(code).isprintable()) + " can't .5 -x"
    sentence = words_of_text(line)
    assert sentence.text == line.strip()
    assert "".join(token.form for token in sentence) == line.replace(" ", "")


def test_a_limit_takes_trees_from_all_over_the_treebank() -> None:
    trees = [place([(str(number), "_", "X", 0, "root", True)]) for number in range(10)]
    assert [tree.text for tree in evenly(trees, 4)] == ["0", "2", "5", "7"]
    assert evenly(trees, 0) == evenly(trees, 10) == evenly(trees, 11) == trees


def test_a_folder_without_models_is_told_with_what_it_needs(tmp_path: Path) -> None:
    (tmp_path / "en" / "pos").mkdir(parents=True)
    (tmp_path / "en" / "pos" / "some.pt").touch()
    with pytest.raises(UserError, match=r"no resources.json and no en/depparse/\*.pt") as caught:
        open_models(tmp_path, "en", CPU)
    assert str(tmp_path) in str(caught.value)


def toy_trees(path: Path, count: int, seed: int) -> None:
    """A treebank of sentences such as "We don't see red cats.", with don't as one token of two words."""
    generator = np.random.default_rng(seed)
    lines = []
    for _ in range(count):
        subject, verb = ("We", "I", "You")[generator.integers(3)], ("see", "like")[generator.integers(2)]
        words = [(subject, "PRON", 4, "nsubj"), ("do", "AUX", 4, "aux"), ("n't", "PART", 4, "advmod")]
        words += [(verb, "VERB", 0, "root"), ("red", "ADJ", 6, "amod")][: 1 + generator.integers(2)]
        last = len(words) + 1
        words = [(form, tag, last if head == 6 else head, name) for form, tag, head, name in words]
        words += [("cats", "NOUN", 4, "obj"), (".", "PUNCT", 4, "punct")]
        rows = [
            f"{i}\t{form}\t_\t{tag}\t_\t_\t{head}\t{name}\t_\t_" for i, (form, tag, head, name) in enumerate(words, 1)
        ]
        rows[-2] = rows[-2][:-1] + "SpaceAfter=No"
        lines += [*rows[:1], "2-3\tdon't" + "\t_" * 8, *rows[1:], ""]
    write_lines(path, lines)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a tiny model trained by the command, beside its treebank."""
    folder = tmp_path_factory.mktemp("parser")
    toy_trees(folder / "train.conllu", 80, seed=1)
    toy_trees(folder / "dev.conllu", 9, seed=2)
    content = {"parser": TINY.model_dump()}
    (folder / "parser.yaml").write_text(yaml.safe_dump(content), encoding="utf-8")
    paths = in_folder(folder, "--settings", "parser.yaml", "--trees", "train.conllu", "--model", "model")
    assert main(["parser_model", *paths, "--language", "en", "--device", "cpu"]) == 0
    return folder


def in_folder(folder: Path, *words: str) -> list[str]:
    """Words of a command, with all that are no flags as paths in a folder."""
    return [word if word.startswith("--") else str(folder / word) for word in words]


@pytest.mark.slow
def test_a_tiny_trained_parser_keeps_words_spaces_and_multiword_tokens_and_learns_the_tree(trained: Path) -> None:
    gold = list(read_conllu(trained / "dev.conllu"))
    paths = in_folder(trained, "--model", "model", "--trees", "dev.conllu", "--parsed", "parsed.conllu")
    assert main(["parser", *paths, "--language", "en", "--device", "cpu"]) == 0
    parsed = list(read_conllu(trained / "parsed.conllu"))
    assert "2-3\tdon't" in (trained / "parsed.conllu").read_text(encoding="utf-8")
    surfaces = [
        [replace(token, lemma="_", upos="_", head=0, relation="_") for tree in trees for token in tree]
        for trees in (gold, parsed)
    ]
    assert surfaces[0] == surfaces[1]
    assert all([token.head for token in tree].count(0) == 1 for tree in parsed)
    assert float(str(scores(gold, parsed)["LAS"][-1])) > 0.8


def test_the_parser_is_given_what_it_was_trained_on(trained: Path) -> None:
    """Stanza, given a file with these tags and lemmas, must find these trees, even with a model that knows little."""
    few_steps = TINY.model_copy(update={"tagger_steps": 10, "parser_steps": 3})
    train_models(trained / "weak", "en", list(read_conllu(trained / "train.conllu")), few_steps, CPU)
    parsed = list(parse(open_models(trained / "weak", "en", CPU), list(read_conllu(trained / "dev.conllu"))))
    write_conllu(trained / "weak.conllu", parsed)
    flags = ["--mode", "predict", "--no_gold_labels", "--resolve_head_constraints", "--no_pretrain", "--device", "cpu"]
    files = ("--eval_file", "weak.conllu", "--output_file", "own.conllu", "--save_dir", "weak/en/depparse")
    paths = in_folder(trained, *files)
    stanza_parser.main([*flags, *paths, "--save_name", "trained.pt", "--lang", "en", "--shorthand", "en_trained"])
    own = list(read_conllu(trained / "own.conllu"))
    assert [[(token.head, token.relation) for token in tree] for tree in own] == [
        [(token.head, token.relation) for token in tree] for tree in parsed
    ]


@pytest.mark.slow
def test_a_model_is_inspected_by_the_trees_that_stanza_makes(
    trained: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parsing, "DEFAULT_MODEL_DIR", str(trained / "model"))
    model, text = write_experiment(tmp_path / "tiny").baseline, [*SOURCE, "", "cats see a small dog ."] * 40
    trees = parse(open_models(trained / "model", "en", CPU), [words_of_text(line) for line in text if line])
    write_conllu(tmp_path / "trees.conllu", trees)
    by_stanza = inspect(model, text, stanza="en", masked=1, device="cpu").heads
    given = inspect(model, text, trees=tmp_path / "trees.conllu", masked=1, device="cpu").heads
    pd.testing.assert_frame_equal(by_stanza, given)
    assert by_stanza[by_stanza["attention"] == "enc_self"]["syntactic_gain"].notna().all()
    with pytest.raises(UserError, match="is not a folder of Stanza models for pt"):
        inspect(model, text, stanza="pt", masked=1, device="cpu")


def test_nothing_is_trained_into_a_folder_that_is_there(trained: Path) -> None:
    trees = list(read_conllu(trained / "train.conllu"))
    with pytest.raises(UserError, match="already exists"):
        train_models(trained / "model", "en", trees, TINY, CPU)
    with pytest.raises(UserError, match="19 trees are too few"):
        train_models(trained / "other", "en", trees[:19], TINY, CPU)
    assert not (trained / "other").exists()


def test_nothing_reaches_for_the_network(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda self, address: wanted.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: wanted.append(address))
    short = TINY.model_copy(update={"tagger_steps": 1, "parser_steps": 1})
    train_models(trained / "short", "en", list(read_conllu(trained / "train.conllu")), short, CPU)
    assert len(list(parse(open_models(trained / "short", "en", CPU), [words_of_text("I see cats.")]))) == 1
    assert not wanted


def test_two_trainings_by_one_seed_make_the_same_models(trained: Path) -> None:
    trees = list(read_conllu(trained / "train.conllu"))
    train_models(trained / "again", "en", trees, TINY, CPU)
    for name in ("pos", "depparse"):
        one, two = (
            torch.load(trained / folder / "en" / name / "trained.pt", weights_only=True)["model"]
            for folder in ("model", "again")
        )
        one, two = (state.get("model", state) for state in (one, two))
        assert len(one) > 5
        assert all(torch.equal(one[key], two[key]) for key in one)


def test_a_damaged_model_is_told_with_its_folder(trained: Path) -> None:
    (trained / "bad" / "en" / "pos").mkdir(parents=True)
    (trained / "bad" / "en" / "depparse").mkdir()
    for name in ("pos", "depparse"):
        (trained / "bad" / "en" / name / "trained.pt").write_text("no model", encoding="utf-8")
    resources = (trained / "model" / "resources.json").read_text(encoding="utf-8")
    (trained / "bad" / "resources.json").write_text(resources, encoding="utf-8")
    with pytest.raises(UserError, match="bad is not a folder of Stanza models for en"):
        open_models(trained / "bad", "en", CPU)


def test_the_table_of_the_parser_gathers_the_scores_of_experiments(tmp_path: Path) -> None:
    def tree(*heads: int) -> Sentence:
        return place([(word, word, "X", head, "dep", True) for word, head in zip("abcd", heads, strict=True)])

    folders = [tmp_path / "a", tmp_path / "b"]
    for folder, heads in zip(folders, ((0, 1, 1, 1), (0, 1, 2, 3)), strict=True):
        write_conllu(folder / "dev.conllu", [tree(0, 1, 1, 1)])
        write_conllu(folder / "parser/stanza.conllu", [tree(*heads)])
    words = ["--experiments", *folders, "--corpora", *folders, "--out", tmp_path / "out.tsv"]
    assert main(["table", "--name", "parser", *map(str, words)]) == 0
    found = [(row["experiment"], row["measure"], row["f1_percent"]) for row in read_tsv(tmp_path / "out.tsv")]
    assert [row for row in found if row[1] == "LAS"] == [("a", "LAS", "100.0"), ("b", "LAS", "50.0")]
    assert main(["table", "--name", "parser", *map(str, [*words[:3], *words[4:5], *words[6:]])]) == 1
