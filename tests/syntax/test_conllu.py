"""CoNLL-U files: spans, multiword tokens, empty nodes, errors."""

import gzip
from pathlib import Path

import pytest

from heads.base.files import UserError
from heads.syntax.conllu import Sentence, check_same_sentences, place, read_conllu, write_conllu

ROWS = [
    ("1-2", "Don't", "_", "_", "_"),
    ("1", "Do", "do", "3", "aux"),
    ("2", "n't", "not", "3", "advmod"),
    ("3", "go", "go", "0", "root"),
    ("3.1", "far", "far", "_", "_"),
    ("4", "now", "now", "3", "advmod"),
    ("5", "!", "!", "3", "punct"),
]


def conllu(rows: list[tuple[str, str, str, str, str]], glued: tuple[str, ...] = ("4",)) -> str:
    """A sentence in CoNLL-U; the words numbered in `glued` have no space after them."""
    lines = ["# sent_id = a-1", "# text = Don't go now!"]
    for number, form, lemma, head, relation in rows:
        misc = "SpaceAfter=No" if number in glued else "_"
        lines.append("\t".join([number, form, lemma, "X", "_", "_", head, relation, "_", misc]))
    return "\n".join(lines) + "\n\n"


def read(path: Path, text: str) -> list[Sentence]:
    """Read `text` through a file."""
    path.write_text(text, encoding="utf-8")
    return list(read_conllu(path))


def test_words_of_a_multiword_token_share_its_span_and_empty_nodes_are_left_out(tmp_path: Path) -> None:
    (sentence,) = read(tmp_path / "a.conllu", conllu(ROWS))
    assert (sentence.sent_id, sentence.text) == ("a-1", "Don't go now!")
    assert [token.form for token in sentence] == ["Do", "n't", "go", "now", "!"]
    assert [(token.start, token.end) for token in sentence] == [(0, 5), (0, 5), (6, 8), (9, 12), (12, 13)]
    assert [token.head for token in sentence] == [3, 3, 0, 3, 3]


def test_what_is_written_reads_back_the_same(tmp_path: Path) -> None:
    first = read(tmp_path / "a.conllu", conllu(ROWS) * 2)
    write_conllu(tmp_path / "b.conllu", first)
    assert list(read_conllu(tmp_path / "b.conllu")) == first


def test_a_gzipped_file_without_a_last_empty_line_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.conllu.gz"
    path.write_bytes(gzip.compress(conllu(ROWS).rstrip("\n").encode()))
    assert [sentence.text for sentence in read_conllu(path)] == ["Don't go now!"]


def test_two_multiword_tokens_in_a_row_keep_their_own_spans(tmp_path: Path) -> None:
    rows = [("1-2", "dunno", "_", "_", "_"), ("1", "du", "do", "0", "root"), ("2", "no", "not", "1", "advmod")]
    rows += [("3-4", "gonna", "_", "_", "_"), ("3", "gon", "go", "1", "dep"), ("4", "na", "to", "3", "dep")]
    (sentence,) = read(tmp_path / "a.conllu", conllu(rows, glued=()))
    assert sentence.text == "dunno gonna"
    assert [(token.start, token.end) for token in sentence] == [(0, 5), (0, 5), (6, 11), (6, 11)]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1\tOne\tone", "line 1: 3 columns"),
        ("2\tOne\tone\tX\t_\t_\t0\troot\t_\t_", "line 1: word '2' follows word 0"),
        ("1\tOne\tone\tX\t_\t_\t_\troot\t_\t_", "line 1: the head '_'"),
        ("1\tOne\tone\tX\t_\t_\t7\troot\t_\t_", "line 1: head 7"),
        ("2-1\tOne\t_\t_\t_\t_\t_\t_\t_\t_", "line 1: '2-1'"),
        ("# text = nothing", "line 1: the sentence that ends here has no words"),
        ("1\tOne\tone\tX\t_\t_\t1\troot\t_\t_", "line 1: word 1 of the sentence above depends on itself"),
        ("1\tOne\tone\tX\t_\t_\t²\troot\t_\t_", "line 1: the head '²' is not a number"),
        ("1\t\tone\tX\t_\t_\t0\troot\t_\t_", "line 1: the form is empty"),
    ],
)
def test_a_malformed_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    with pytest.raises(UserError, match=message) as caught:
        read(tmp_path / "bad.conllu", line + "\n\n")
    assert "bad.conllu" in str(caught.value)


def test_words_that_hang_on_each_other_in_a_circle_are_named(tmp_path: Path) -> None:
    rows = [("1", "a", "a", "0", "root"), ("2", "b", "b", "4", "dep"), ("3", "c", "c", "2", "dep")]
    with pytest.raises(UserError, match="line 6: word 2 of the sentence above depends on itself"):
        read(tmp_path / "bad.conllu", conllu([*rows, ("4", "d", "d", "3", "dep")]))
    assert len(read(tmp_path / "good.conllu", conllu([*rows, ("4", "d", "d", "1", "dep")]))[0]) == 4


def test_a_multiword_token_inside_another_is_refused(tmp_path: Path) -> None:
    rows = [("1-3", "abc", "_", "_", "_"), ("1", "a", "a", "0", "root"), ("2-3", "bc", "_", "_", "_")]
    rows += [("2", "b", "b", "1", "dep"), ("3", "c", "c", "1", "dep")]
    with pytest.raises(UserError, match="line 5: '2-3' is not a range"):
        read(tmp_path / "bad.conllu", conllu(rows))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conllu", "1\tÜber".encode("latin-1")),
        ("a.conllu.gz", b"no gzip"),
        ("b.conllu.gz", gzip.compress(b"1" * 99, mtime=0)[:-9]),
    ],
    ids=["latin", "no-gzip", "cut-gzip"],
)
def test_a_file_that_is_no_text_is_named(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UserError, match=f"{name} cannot be read to its end"):
        list(read_conllu(tmp_path / name))


def test_odd_blanks_inside_and_at_the_end_of_forms_keep_their_places(tmp_path: Path) -> None:
    rows = [("1", "10\u00a0000", "x", "0", "root"), ("2", "\u3000", "x", "1", "dep"), ("3", "a b ", "x", "1", "dep")]
    (sentence,) = read(tmp_path / "a.conllu", conllu(rows, glued=("1",)))
    assert sentence.text == "10\u00a0000\u3000 a b "
    assert [sentence.text[token.start : token.end] for token in sentence] == [form for _, form, *_ in rows]


def test_trees_of_other_sentences_are_told_apart_from_other_trees_of_the_same_sentences(tmp_path: Path) -> None:
    gold, parsed = tmp_path / "gold.conllu", tmp_path / "parsed.conllu"
    rain = place([("Rain", "", "", 2, "nsubj", True), ("fell", "", "", 0, "root", False)])
    other_tree = place([("Rain", "", "", 0, "root", True), ("fell", "", "", 1, "dep", False)])
    glued = place([("Rain", "", "", 0, "root", False), (" fell", "", "", 1, "dep", False)])
    write_conllu(gold, [rain, rain])
    write_conllu(parsed, [other_tree, other_tree])
    check_same_sentences(gold, parsed, 0)
    write_conllu(parsed, [other_tree, glued])
    check_same_sentences(gold, parsed, 1)
    with pytest.raises(UserError, match=r"Sentence 2 is 'Rain fell' in .*gold.conllu"):
        check_same_sentences(gold, parsed, 0)
    write_conllu(parsed, [other_tree])
    with pytest.raises(UserError, match=r"parsed.conllu has no sentence 2"):
        check_same_sentences(gold, parsed, 0)
