"""With fewer subwords SentencePiece and `tokenizers` cut the text that they are of as with all of them."""

import io
import json
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers

from heads.text.fewer_pieces import merged_on_the_way, needed_pieces, with_pieces
from heads.text.fewer_subwords import fewer_of, needed_for_unknown_words, needed_names, staying, with_names
from heads.text.vocabulary import PREFIX, ROWS, Vocabulary, write_model
from many_lines import lines as many_lines

MESSAGES: Any = import_module("sentencepiece.sentencepiece_model_pb2")
LINES = [line for line in many_lines()[:500] if line.strip()]
TEXT, ELSEWHERE = LINES[:40], LINES[40::20]
ODD = ("☃ unknown", "ωμέγα", "  two  blanks ", "")
SIZES = {"vocab_size": 400, "minloglevel": 2, "hard_vocab_limit": False}
Cut = Callable[[Sequence[str]], list[list[str]]]


def trained(kind: str, **told: Any) -> bytes:
    made = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=made, model_type=kind, **{**SIZES, **told}
    )
    return made.getvalue()


def cutting(content: bytes) -> Cut:
    processor = sentencepiece.SentencePieceProcessor(model_proto=content)
    return lambda lines: [list(processor.encode(line, out_type=str)) for line in lines]


def pieces_in(content: bytes) -> list[Any]:
    model = MESSAGES.ModelProto()
    model.ParseFromString(content)
    return list(model.pieces)


def smaller(content: bytes, lines: Sequence[str]) -> bytes:
    needed = needed_pieces(content, {name for line in cutting(content)(lines) for name in line})
    return with_pieces(content, Path("a.model"), lambda _, name: name in {*needed, "<s>", "</s>"})


@pytest.mark.parametrize(
    ("kind", "told"),
    [
        ("unigram", {}),
        ("unigram", {"byte_fallback": True, "vocab_size": 700}),
        ("bpe", {"user_defined_symbols": ["<2de>", "ing"]}),
        ("bpe", {"byte_fallback": True, "vocab_size": 700}),
    ],
)
def test_sentencepiece_cuts_the_text_as_before_and_can_still_write_any_other(kind: str, told: dict[str, Any]) -> None:
    whole = trained(kind, **told)
    lines = [*TEXT, *ODD]
    fewer = smaller(whole, lines)
    assert cutting(fewer)(lines) == cutting(whole)(lines)
    assert len(pieces_in(fewer)) < 0.95 * len(pieces_in(whole))
    read = [sentencepiece.SentencePieceProcessor(model_proto=content) for content in (whole, fewer)]
    before, after = ([one.decode(one.encode(line)) for line in ELSEWHERE] for one in read)
    assert before == after
    written = MESSAGES.ModelProto()
    written.ParseFromString(fewer)
    assert [written.pieces[number].piece for number in (written.trainer_spec.unk_id, written.trainer_spec.eos_id)] == [
        *("<unk>", "</s>")
    ]
    assert [one.id_to_piece(one.unk_id()) for one in read] == ["<unk>"] * 2
    assert [one.id_to_piece(one.eos_id()) for one in read] == ["</s>"] * 2


def by_hand(scores: dict[str, float]) -> bytes:
    """A unigram model with these pieces behind <unk>."""
    model = MESSAGES.ModelProto()
    model.trainer_spec.model_type = MESSAGES.TrainerSpec.UNIGRAM
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = model.normalizer_spec.remove_extra_whitespaces = False
    model.pieces.add(piece="<unk>", score=0, type=model.SentencePiece.UNKNOWN)
    for name, score in scores.items():
        model.pieces.add(piece=name, score=score)
    return bytes(model.SerializeToString())


def test_what_an_unknown_letter_costs_stays_the_same() -> None:
    low = {"uqv": -12.0, "wx": -12.0, "yz": -12.0, "least": -30.0}
    whole = by_hand({**dict.fromkeys("vwxyz", -9.0), "u": -0.1, "vwxyz": -0.1, **low})
    lines = ["uqvwxyz", "vwxyz", "u"]
    assert cutting(whole)(lines) == [["uqv", "wx", "yz"], ["vwxyz"], ["u"]]
    assert cutting(smaller(whole, lines))(lines) == cutting(whole)(lines)


def test_a_letter_of_a_longer_piece_does_not_become_unknown() -> None:
    low = {"uqv": -12.0, "wx": -12.0, "yz": -12.0, "<0x41>": -1.0}
    model = MESSAGES.ModelProto()
    model.ParseFromString(by_hand({**dict.fromkeys("qvwxyz", -30.0), "u": -0.1, "vwxyz": -0.1, **low}))
    model.pieces[-1].type = model.SentencePiece.BYTE
    whole = bytes(model.SerializeToString())
    needed = needed_pieces(whole, {"uqv", "wx", "yz"})
    assert {*"uqvwxyz", "<0x41>"} <= needed


def test_merges_are_made_in_the_order_of_their_ranks_from_the_left() -> None:
    ranks = {("a", "a"): 1, ("aa", "a"): 0, ("b", "c"): 2, ("aaa", "bc"): 3}
    assert [*merged_on_the_way([*"aaabc"], lambda *pair: ranks.get(pair))] == ["aa", "aaa", "bc", "aaabc"]


def described(kind: str) -> dict[str, Any]:
    """A description of a tokeniser of this kind that learnt the text, with special tokens in the middle."""
    models = tokenizers.models
    model, trainer, pre, decoder = {
        "BPE": (
            models.BPE(unk_token="<unk>", end_of_word_suffix="</w>"),
            tokenizers.trainers.BpeTrainer(vocab_size=700, special_tokens=["<unk>", "<s>"], end_of_word_suffix="</w>"),
            tokenizers.pre_tokenizers.Whitespace(),
            None,
        ),
        "bytes": (
            models.BPE(),
            tokenizers.trainers.BpeTrainer(
                vocab_size=800, special_tokens=["<s>"], initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()
            ),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False),
            tokenizers.decoders.ByteLevel(),
        ),
        "Unigram": (
            models.Unigram(),
            tokenizers.trainers.UnigramTrainer(vocab_size=200, special_tokens=["<s>", "<unk>"], unk_token="<unk>"),
            tokenizers.pre_tokenizers.Metaspace(),
            None,
        ),
        "WordPiece": (
            models.WordPiece(unk_token="[UNK]"),
            tokenizers.trainers.WordPieceTrainer(vocab_size=600, special_tokens=["[PAD]", "[UNK]", "[CLS]"]),
            tokenizers.pre_tokenizers.BertPreTokenizer(),
            None,
        ),
    }[kind]
    made = tokenizers.Tokenizer(model)
    made.pre_tokenizer = pre
    if decoder:
        made.decoder = decoder
    made.train_from_iterator(LINES, trainer)
    made.add_tokens(["two words", "last"])
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A last", special_tokens=[("last", made.token_to_id("last"))]
    )
    content: dict[str, Any] = json.loads(made.to_str())
    return content


@pytest.mark.parametrize("kind", ["BPE", "bytes", "Unigram", "WordPiece"])
def test_a_description_cuts_the_text_as_before_with_ids_in_their_order(kind: str) -> None:
    whole = described(kind)
    one = tokenizers.Tokenizer.from_str(json.dumps(whole))
    lines = [*TEXT, *ODD, "here two words stand"]
    cut = [one.encode(line).tokens for line in lines]
    used = {name for line in cut for name in line} | needed_for_unknown_words(whole, lines)
    fewer = with_names(whole, needed_names(whole, used))
    other = tokenizers.Tokenizer.from_str(json.dumps(fewer))
    assert [other.encode(line).tokens for line in lines] == cut
    framed = other.encode(lines[0])
    assert framed.ids == [other.token_to_id(name) for name in framed.tokens]
    assert other.get_vocab_size() < 0.95 * one.get_vocab_size()
    assert sorted(other.get_vocab().values()) == [*range(other.get_vocab_size())]
    names = sorted(other.get_vocab(), key=other.get_vocab().__getitem__)
    assert names == sorted(names, key=one.get_vocab().__getitem__)
    unknown = {"<unk>", "[UNK]"}
    assert not any(unknown & {*other.encode(line).tokens} - {*one.encode(line).tokens} for line in ELSEWHERE)


def test_a_word_that_cannot_be_spelled_stays_unknown() -> None:
    names = ["[UNK]", "x", "y", "z", "##x", "##y", "##z", "xyz", "##zq", "xy"]
    model = tokenizers.models.WordPiece({name: number for number, name in enumerate(names)}, unk_token="[UNK]")
    one = tokenizers.Tokenizer(model)
    one.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    whole, lines = json.loads(one.to_str()), ["xyzq xyzx", "yzq"]
    cut = [one.encode(line).tokens for line in lines]
    assert cut[0][0] == "[UNK]" and cut[1] == ["y", "##zq"]
    used = {name for line in cut for name in line} | needed_for_unknown_words(whole, lines)
    other = tokenizers.Tokenizer.from_str(json.dumps(with_names(whole, needed_names(whole, used))))
    assert [other.encode(line).tokens for line in lines] == cut and "xy" in used


def test_a_vocabulary_of_ours_keeps_its_first_ids_its_prefix_and_its_pieces_without_a_row(tmp_path: Path) -> None:
    content = trained("unigram", pad_id=0, bos_id=1, eos_id=2, unk_id=3)
    names = [piece.piece for piece in pieces_in(content)]
    rows = len(names) - 20
    write_model(tmp_path / "a.model", content, {ROWS: rows, PREFIX: [rows - 1]})
    whole = Vocabulary(tmp_path / "a.model")
    used = {number for line in whole.encode(TEXT) for number in line}
    kept = staying(whole, used)
    fewer_of(whole, kept).write(tmp_path / "b.model")
    fewer = Vocabulary(tmp_path / "b.model")
    assert [fewer.subword(number) for number in range(4)] == names[:4]
    assert len(fewer) == len(kept) < rows
    assert [fewer.subword(number) for number in fewer.prefix] == [names[rows - 1]]
    assert [[kept[number] for number in line] for line in fewer.encode(TEXT)] == whole.encode(TEXT)
    assert [piece.piece for piece in pieces_in((tmp_path / "b.model").read_bytes())][len(kept) :] == names[rows:]
