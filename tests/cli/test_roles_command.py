"""The roles command end to end: what it measures and counts, and its errors for bad input."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from safetensors.numpy import save_file

from heads.__main__ import main
from heads.analysis.role_trees import missing_relations, sentences_of
from heads.base.files import read_tsv, write_lines
from heads.config.analyses import RolesSettings
from heads.config.trainings import BpeSettings
from heads.model.folder import save_folder
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.syntax.conllu import Sentence, place, write_conllu
from heads.syntax.words import Arc, Words
from heads.text.vocabulary import Vocabulary, train_bpe

LIVE = {"enc_self": ((2,), (), (0, 1)), "dec_self": ((), (1,), ()), "dec_enc": ((), (), (2,))}
SETTINGS: dict[str, Any] = {
    "trees": ["gold"],
    "sentences": 0,
    "max_subwords": 50,
    "batch_tokens": 20,
    "bootstrap": 100,
    "positional_share": 0.9,
    "syntactic_margin": 0.1,
    "margin_is_relative": False,
    "relations": ["nsubj"],
    "min_cases": 2,
    "rare_outside_top": 0,
    "rare_share": 0.5,
}
Command = Callable[..., int]


def tree(*forms: str, relation: str = "nsubj") -> Sentence:
    """A tree whose first word is the root and all others depend on it."""
    return place(
        [(form, "", "X", int(word > 0), relation if word else "root", True) for word, form in enumerate(forms)]
    )


TREES = [tree("the", "cat", "sees"), tree("кошка", "видит", "её"), tree("see"), tree(*["cat"] * 51)]
FOREIGN = [tree("ωω", "ξξξ"), TREES[3]]
"""Two blanks and two unknown subwords, and a sentence that is too long to be measured."""


def flags_of(folder: Path, names: Mapping[str, str]) -> list[str]:
    """A flag for each file of a folder."""
    return [f"--{flag}={folder / name}" for flag, name in names.items()]


@pytest.fixture
def command(tmp_path: Path) -> Command:
    """Run the command on files as earlier stages leave them; keywords replace settings and tree files."""
    text = "the cat sees\nкошка видит её\ndogs see the cat\n" * 9
    (tmp_path / "text").write_text(text, encoding="utf-8")
    train_bpe(tmp_path / "text", tmp_path / "bpe", BpeSettings(source_subwords=40, target_subwords=40), 40)
    ids = np.concatenate([np.array(ids, np.int32) for ids in Vocabulary(tmp_path / "bpe").encode(text.split("\n"))])
    save_file({"ids": ids, "offsets": np.array([0, len(ids)], np.int64)}, tmp_path / "train")
    torch.manual_seed(8)

    def run(
        files: Mapping[str, list[Sentence]] = MappingProxyType({"gold": TREES}),
        live: Any = LIVE,
        facts: Any = None,
        text: tuple[str, ...] = (),
        **changes: Any,
    ) -> int:
        sizes: dict[str, Any] = {
            "width": 6,
            "head_width": 4,
            "feedforward": 5,
            "source_subwords": 40,
            "target_subwords": 9,
        }
        shape = ModelShape(**sizes, dropout=0.2, pre_norm=True, original_heads=3, live_heads=live)
        save_folder(Transformer(shape).eval(), tmp_path / "model", facts or {}, {})
        (tmp_path / "settings").write_text(yaml.safe_dump({"roles": SETTINGS | changes}))
        for name, sentences in files.items():
            write_conllu(tmp_path / f"{name}.conllu", sentences)
        inputs = {"model": "model", "settings": "settings", "source-bpe": "bpe"}
        inputs |= {"train-source": "train", "out": "roles.tsv", "coverage": "coverage.tsv"}
        inputs |= {"positions": "positions.tsv"}
        named = [f"{name}={tmp_path / name}.conllu" for name in files]
        write_lines(tmp_path / "text.txt", text)
        plain = flags_of(tmp_path, {"text": "text.txt"}) if text else []
        return main(["roles", *flags_of(tmp_path, inputs), "--device=cpu", "--trees", *named, *plain])

    return run


def test_dynamics_measures_each_checkpoint_as_roles_and_confidence_measure_a_model_of_its_weights(
    command: Command, tmp_path: Path
) -> None:
    live = {"enc_self": ((0, 1, 2), (0, 1, 2)), "dec_self": ((), (1,)), "dec_enc": ((2,), ())}
    alone, how = [], {"sentences": 2, "batch_tokens": 9}
    for side, top in (("source", 40), ("target", 9)):
        ids = np.random.default_rng(3).integers(4, top, 12).astype(np.int32)
        save_file({"ids": ids, "offsets": np.array([0, 5, 9, 12], np.int64)}, tmp_path / f"dev.{side}")
    shared = ["--device=cpu", *flags_of(tmp_path, {"model": "model", "source": "dev.source", "target": "dev.target"})]
    for update in (4, 2, 7):
        torch.manual_seed(update)
        assert command(live=live, facts={"updates": update}, bootstrap=100) == 0
        (tmp_path / "how").write_text(yaml.safe_dump({"confidence": how}))
        assert main(["confidence", *flags_of(tmp_path, {"settings": "how", "out": "confidence.tsv"}), *shared]) == 0
        confident = [row for row in read_tsv(tmp_path / "confidence.tsv") if row["attention"] == "enc_self"]
        alone.append((update, read_tsv(tmp_path / "roles.tsv"), confident))
        if update != 7:
            (tmp_path / "kept").mkdir(exist_ok=True)
            shutil.copy(tmp_path / "model/model.safetensors", tmp_path / f"kept/checkpoint-{update:08}.safetensors")
    content = {"roles": SETTINGS | {"bootstrap": 100}, "confidence": how}
    (tmp_path / "settings").write_text(yaml.safe_dump(content))
    names = {"settings": "settings", "source-bpe": "bpe", "train-source": "train", "checkpoints": "kept"}
    flags = [*flags_of(tmp_path, names | {"out": "dynamics.tsv"}), *shared]
    assert main(["dynamics", *flags, f"--trees=gold={tmp_path / 'gold.conllu'}"]) == 0
    rows = read_tsv(tmp_path / "dynamics.tsv")
    write_lines(tmp_path / "text.txt", [tree.text for tree in TREES])
    assert main(["dynamics", *flags, *flags_of(tmp_path, {"text": "text.txt"})]) == 0
    assert read_tsv(tmp_path / "dynamics.tsv") == [row for row in rows if row["role"] != "syntactic"]
    columns = ("layer", "head", "role", "name", "accuracy", "low", "high", "baseline")
    for update, roles, confident in alone:
        mine = [row for row in rows if row["update"] == str(update)]
        assert {row["finished"] for row in mine} == {str(int(update == 7))}
        own = [row for row in mine if row["role"] == "confidence"]
        assert [(row["layer"], row["head"], row["accuracy"]) for row in own] == [
            (row["layer"], row["head"], row["confidence"]) for row in confident
        ]
        others = [tuple(row[name] for name in columns) for row in mine if row["role"] != "confidence"]
        assert others == [tuple(row[name] for name in columns) for row in roles]
    assert len(rows) == sum(len(roles) + len(confident) for _, roles, confident in alone)
    assert [row["update"] for row in rows] == sorted(row["update"] for row in rows)
    of_first_head = {row["accuracy"] for row in rows if row["role"] == "confidence" and row["head"] == "0"}
    assert len(of_first_head) == 6, "every checkpoint and layer has another"


def test_live_heads_are_measured_and_what_is_left_out_is_counted(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command() == 0
    rows = read_tsv(tmp_path / "roles.tsv")
    assert {(row["trees"], row["layer"], row["head"]) for row in rows} == {
        ("gold", layer, head) for layer, head in ("02", "20", "21")
    }
    assert {row["cases"] for row in rows if row["name"] == "nsubj dependent-to-head"} == {"4"}
    subwords = [Vocabulary(tmp_path / "bpe").encode([tree.text])[0] for tree in TREES[:2]]
    for role, lengths in (("positional_words", [3, 3]), ("positional", [len(ids) for ids in subwords])):
        cases = {row["cases"] for row in rows if (row["role"], row["name"]) == (role, "+2")}
        assert cases == {str(sum(length - 2 for length in lengths))}, role
    assert sum(len(ids) for ids in subwords) > 6
    (coverage,) = read_tsv(tmp_path / "coverage.tsv")
    counted = ("sentences", "measured", "too_short", "too_long", "not_aligned", "tree_words", "aligned_share")
    assert [coverage[name] for name in counted] == ["4", "2", "1", "1", "0", "58", "1"]
    told = capsys.readouterr().err
    assert "58 of 58 words are aligned" in told
    assert "2 of 4 sentences measured; left out: 1 with fewer than 2 words, 1 with more than 50 subwords" in told


def test_gold_and_parsed_trees_stand_in_one_table_in_the_order_of_the_settings(
    command: Command, tmp_path: Path
) -> None:
    parsed = [tree("the", "cat", "sees"), tree("кошка", "видит", "её", relation="obj"), *TREES[2:]]
    assert command({"stanza": parsed, "gold": TREES}, trees=["gold", "stanza"]) == 0
    rows = read_tsv(tmp_path / "roles.tsv")
    assert [row["trees"] for row in rows] == ["gold"] * 42 + ["stanza"] * 42
    cases = {row["trees"]: row["cases"] for row in rows if row["name"] == "nsubj head-to-dependent"}
    assert cases == {"gold": "4", "stanza": "2"}
    stand = [tuple(row.values()) for row in read_tsv(tmp_path / "positions.tsv")]
    assert stand == [
        (trees, "nsubj", place, arcs) for trees, arcs in (("gold", "2"), ("stanza", "1")) for place in "12"
    ]
    same = [{key: row[key] for key in row if key != "trees"} for row in rows if row["role"] != "syntactic"]
    assert same[: len(same) // 2] == same[len(same) // 2 :]
    assert [row["trees"] for row in read_tsv(tmp_path / "coverage.tsv")] == ["gold", "stanza"]


@pytest.mark.parametrize("between", ["\n", "\t"])
def test_on_plain_text_all_is_measured_as_on_trees_of_its_sentences_but_what_is_syntactic(
    command: Command, tmp_path: Path, between: str
) -> None:
    """One sentence a line, or the sentences of an example with a tab between them."""
    assert command(sentences=3) == 0
    on_trees, [counted] = read_tsv(tmp_path / "roles.tsv"), read_tsv(tmp_path / "coverage.tsv")
    text = tuple(between.join(tree.text for tree in TREES[:3]).split("\n"))
    torch.manual_seed(8)  # the same model again
    assert command({}, text=text, trees=["gold", "own"]) == 0
    rows, [coverage] = read_tsv(tmp_path / "roles.tsv"), read_tsv(tmp_path / "coverage.tsv")
    assert {row["role"] for row in rows} == {"positional", "positional_words", "rare"}
    assert rows == [row | {"trees": "text"} for row in on_trees if row["role"] != "syntactic"]
    assert coverage == counted | {"trees": "text", "arcs": "0"}
    assert read_tsv(tmp_path / "positions.tsv") == []


def test_plain_text_may_have_no_blanks_between_words_and_lines_without_words(command: Command, tmp_path: Path) -> None:
    lines = ("我们喜欢猫。", "", "他们\t在这里。")
    write_lines(tmp_path / "text.zh", lines)
    treebanks, settings = sentences_of({}, tmp_path / "text.zh", RolesSettings.model_validate(SETTINGS))
    words = [[token.form for token in sentence.tokens] for sentence in treebanks["text"].sentences]
    assert words == [list("我们喜欢猫。"), [], list("他们"), list("在这里。")]
    assert settings.relations == ()
    assert command({}, text=("the cat sees", "", "dogs see the cat", " ")) == 0
    (coverage,) = read_tsv(tmp_path / "coverage.tsv")
    assert [coverage[name] for name in ("sentences", "measured", "too_short")] == ["4", "2", "2"]


@pytest.mark.parametrize(("files", "text"), [({}, ()), ({"gold": TREES}, ("the cat",))])
def test_neither_trees_nor_text_and_both_of_them_are_refused(
    command: Command, capsys: pytest.CaptureFixture[str], files: Any, text: tuple[str, ...]
) -> None:
    assert command(files, text=text) == 1
    assert capsys.readouterr().err == (
        "error: Roles are measured on trees or on plain text: give one of --trees and --text.\n"
    )


def test_only_as_many_sentences_are_read_as_the_settings_say(command: Command, tmp_path: Path) -> None:
    """The first three of four are read; the last one is too long."""
    assert command(sentences=3) == 0
    (coverage,) = read_tsv(tmp_path / "coverage.tsv")
    assert [coverage[name] for name in ("sentences", "measured", "too_long", "tree_words")] == ["3", "2", "0", "7"]


def test_parsed_trees_are_measured_alone_where_there_are_no_gold_ones(command: Command, tmp_path: Path) -> None:
    assert command({"own": TREES}, trees=["gold", "own"]) == 0
    assert {row["trees"] for row in read_tsv(tmp_path / "roles.tsv")} == {"own"}
    assert [row["trees"] for row in read_tsv(tmp_path / "coverage.tsv")] == ["own"]


def test_sentences_of_the_corpuss_own_need_not_be_those_of_the_gold_trees(command: Command, tmp_path: Path) -> None:
    own = [tree("dogs", "see", "the", "cat"), tree("the", "cat", "sees"), TREES[2]]
    assert command({"stanza": TREES, "own": own, "gold": TREES}, trees=["own", "gold", "stanza"]) == 0
    coverage = [(row["trees"], row["measured"], row["tree_words"]) for row in read_tsv(tmp_path / "coverage.tsv")]
    assert coverage == [("own", "2", "8"), ("gold", "2", "58"), ("stanza", "2", "58")]
    rows = read_tsv(tmp_path / "roles.tsv")
    cases = {row["trees"]: row["cases"] for row in rows if row["name"] == "nsubj head-to-dependent"}
    assert cases == {"own": "5", "gold": "4", "stanza": "4"}


def test_a_few_unknown_subwords_are_measured_and_counted(command: Command, tmp_path: Path) -> None:
    assert command({"gold": [tree("the", "cat", "sees", "the", "cat", "ω"), *TREES]}) == 0
    (coverage,) = read_tsv(tmp_path / "coverage.tsv")
    assert (coverage["unknown_subwords"], coverage["measured"]) == ("1", "3")


def test_a_relation_that_never_occurs_has_an_entry_and_a_sentence(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert command({"gold": [tree("cat", "sees", relation="obj")]}, relations=["nsubj", "dobj"]) == 0
    assert "relation dobj never occurs, so its rows stay empty; did you mean obj?" in capsys.readouterr().err
    empty = [row for row in read_tsv(tmp_path / "roles.tsv") if row["name"].startswith("dobj")]
    assert {(row["cases"], row["accuracy"], row["low"], row["holds"]) for row in empty} == {("0", "", "", "0")}
    assert len(empty) == 2 * 3


@pytest.mark.parametrize(
    ("trees", "names", "message"),
    [
        ({"gold": [tree("see")]}, ["gold"], "none of its 1 sentences can be measured (1 with fewer than 2 words"),
        ({"gold": []}, ["gold"], "none of its 0 sentences can be measured"),
        ({"gold": TREES, "stanza": TREES[1:]}, ["gold", "stanza"], "Sentence 1 is 'the cat sees' in"),
        (
            {"gold": TREES, "stanza": TREES[1:], "own": TREES},
            ["own", "stanza", "gold"],
            "Sentence 1 is 'the cat sees' in",
        ),
        ({"gold": TREES, "stanza": TREES}, ["stanza"], "--trees gives gold, but roles.trees is stanza"),
        (
            {"gold": FOREIGN},
            ["gold"],
            "gold.conllu: 50% of the subwords of its sentences are unknown to the vocabulary",
        ),
    ],
)
def test_bad_trees_get_one_sentence_and_no_table(
    command: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str], trees: Any, names: list[str], message: str
) -> None:
    assert command(files=trees, trees=names) == 1
    told = capsys.readouterr().err
    assert message in told
    assert told.count("\n") == 1
    assert not (tmp_path / "roles.tsv").exists()


def test_a_model_without_encoder_heads_has_empty_rows_and_an_alignment(command: Command, tmp_path: Path) -> None:
    assert command(live={**LIVE, "enc_self": ((), (), ())}) == 0
    assert read_tsv(tmp_path / "roles.tsv") == []
    assert read_tsv(tmp_path / "coverage.tsv")[0]["measured"] == "2"


def test_a_path_without_the_name_of_its_trees_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["roles", "--trees", "dev.conllu"])
    assert "'dev.conllu' is not NAME=PATH" in capsys.readouterr().err


def test_the_nearest_relation_that_occurs_is_offered_or_all_of_them() -> None:
    arcs = (Arc(0, 1, "nsubj:pass"), Arc(2, 1, "obj"))
    words = [Words(0, ("a", "b", "c"), arcs, np.arange(3, dtype=np.int32), np.eye(3))]
    assert missing_relations(words, ["nsubj", "nsubj:pass", "obj"]) == []
    (dobj, punct) = missing_relations(words, ["dobj", "punct"])
    assert dobj.endswith("did you mean obj?")
    assert punct.endswith("the trees have nsubj, nsubj:pass, obj.")
    assert missing_relations([], ["obj"])[0].endswith("the trees have no relations.")
