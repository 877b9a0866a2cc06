"""Which files of a folder belong to a Marian model, and what its shortlist contains."""

import random
import struct
from pathlib import Path

import pytest

from heads.base.files import UserError
from heads.interop.firefox.file import write
from heads.interop.firefox.parts import find_parts, is_marian, is_shortlist
from heads.interop.firefox.shortlist import checksum_of, read_shortlist
from marian_files import packaged, shortlist, small_file

LISTS = [[2, 5], [], [5], [1, 3, 8]]
"""Likely target subwords of each of four source subwords."""


def test_candidates_are_the_first_subwords_and_those_of_each_source_subword(tmp_path: Path) -> None:
    path = tmp_path / "lex.bin"
    path.write_bytes(shortlist(LISTS))
    assert is_shortlist(path)
    found = read_shortlist(path, (4, 9))
    assert found.candidates([0, 3, 0]).tolist() == [0, 1, 2, 3, 5, 8]
    assert found.candidates([1]).tolist() == found.candidates([]).tolist() == [0, 1]
    path.write_bytes(shortlist([[], []], first=100))
    assert read_shortlist(path, (2, 9)).candidates([0, 1]).tolist() == [*range(9)]


def test_the_checksum_folds_whole_words_as_boost_does() -> None:
    golden = 0x9E3779B9
    assert checksum_of(struct.pack("<Q", 0)) == golden == checksum_of(struct.pack("<QI", 0, 7))
    assert checksum_of(struct.pack("<Q", 2**64 - 1)) == golden - 1
    assert checksum_of(struct.pack("<2Q", 0, 1)) == golden ^ (1 + golden + golden * 64 + golden // 4)


def test_a_shortlist_that_does_not_fit_or_is_damaged_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "lex.bin"
    content = shortlist(LISTS)
    path.write_bytes(content)
    for sizes in ((3, 9), (5, 9), (4, 8)):
        with pytest.raises(
            UserError, match=r"lex\.bin does not fit vocabularies of \d and \d subwords: give the model"
        ):
            read_shortlist(path, sizes)
    path.write_bytes(content[:8] + content[8:][::-1])
    with pytest.raises(UserError, match="is cut off or damaged: copy it again"):
        read_shortlist(path, (4, 9))
    for other in (b"", b"der the 0.5\n" * 9, content[:47]):
        path.write_bytes(other)
        with pytest.raises(UserError, match="is not a shortlist in Marian's binary format"):
            read_shortlist(path, (4, 9))
    with pytest.raises(UserError, match="cannot be read"):
        read_shortlist(tmp_path / "none.bin", (4, 9))
    generator = random.Random(0)
    for _ in range(500):
        broken = bytearray(content)
        broken[generator.randrange(len(broken))] ^= 1 << generator.randrange(8)
        path.write_bytes(broken[: generator.choice((len(broken), len(broken), generator.randrange(len(broken))))])
        with pytest.raises(UserError):
            read_shortlist(path, (4, 9))


def test_offsets_that_go_back_are_refused_though_their_checksum_fits(tmp_path: Path) -> None:
    path = tmp_path / "lex.bin"
    for offsets in ((0, 3, 2, 3, 6), (1, 2, 3, 4, 6), (0, 2, 2, 3, 5), (0, 2**63, 2, 3, 6)):
        rest = struct.pack("<4Q", 2, 3, 5, 6) + struct.pack("<5Q", *offsets) + struct.pack("<6I", *range(6))
        path.write_bytes(struct.pack("<2Q", 0xF11A48D5013417F5, checksum_of(rest)) + rest)
        with pytest.raises(UserError, match="does not fit"):
            read_shortlist(path, (4, 9))


def student(folder: Path, *names: str) -> Path:
    """A folder with a model, a shortlist, and empty files with the given names."""
    folder.mkdir()
    write(folder / "model.enpt.intgemm.alphas.bin", small_file())
    (folder / "lex.50.50.enpt.s2t.bin").write_bytes(shortlist(LISTS))
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def test_a_folder_without_settings_is_told_by_what_its_files_are(tmp_path: Path) -> None:
    one = student(tmp_path / "one", "vocab.enpt.spm", "model.optimizer.npz", "pytorch_model.bin")
    parts = find_parts(one)
    assert is_marian(one) and parts.model.name == "model.enpt.intgemm.alphas.bin"
    assert [path.name for path in parts.vocabularies] == ["vocab.enpt.spm"] * 2
    assert parts.shortlist == one / "lex.50.50.enpt.s2t.bin"
    two = find_parts(student(tmp_path / "two", "trgvocab.enzh.spm", "srcvocab.enzh.spm"))
    assert [path.name for path in two.vocabularies] == ["srcvocab.enzh.spm", "trgvocab.enzh.spm"]
    (one / "lex.50.50.enpt.s2t.bin").unlink()
    assert find_parts(one).shortlist is None
    assert not is_marian(tmp_path) and not is_marian(tmp_path / "none") and is_marian(parts.model)


def test_settings_say_which_file_is_which_wherever_they_were_written(tmp_path: Path) -> None:
    folder = student(tmp_path / "student", "b.spm", "a.spm", "lex.s2t.gz", "[.yml")
    write(folder / "model.npz", small_file())
    (folder / "broken.yml").write_text("a: [b", encoding="utf-8")
    with pytest.raises(UserError, match=r"has several models, model\.enpt.*, model\.npz: give the path of one"):
        find_parts(folder)
    with pytest.raises(UserError, match=r"has a\.spm, b\.spm: rename those of source and target to srcvocab\.spm and"):
        find_parts(folder / "model.npz")
    (folder / "decoder.yml").write_text(
        "models: [/home/someone/model.npz]\nvocabs: [/home/someone/b.spm, ../a.spm]\nshortlist: [lex.s2t.gz, 100]\n",
        encoding="utf-8",
    )
    parts = find_parts(folder)
    assert (parts.model.name, parts.vocabularies) == ("model.npz", (folder / "b.spm", folder / "a.spm"))
    assert parts.shortlist == folder / "lex.50.50.enpt.s2t.bin"
    assert find_parts(folder / "model.enpt.intgemm.alphas.bin").model.name == "model.enpt.intgemm.alphas.bin"


def test_what_a_folder_lacks_is_told_with_the_way_out(tmp_path: Path) -> None:
    folder = student(tmp_path / "student")
    with pytest.raises(UserError, match=r"student has no vocabulary, \*\.spm: copy it from where the model is from\."):
        find_parts(folder)
    (folder / "vocab.enpt.spm.gz").write_bytes(b"")
    with pytest.raises(UserError, match=r"has no vocabulary, \*\.spm: unpack vocab\.enpt\.spm\.gz\."):
        find_parts(folder)
    (folder / "vocab.yml").write_bytes(b"</s>: 0\n")
    (folder / "decoder.yml").write_text("vocabs: [vocab.yml, vocab.yml]\n", encoding="utf-8")
    with pytest.raises(UserError, match=r"vocab\.yml is not a SentencePiece vocabulary"):
        find_parts(folder)
    with pytest.raises(UserError, match=r"lex\.50\.50\.enpt\.s2t\.bin is not a Marian model"):
        find_parts(folder / "lex.50.50.enpt.s2t.bin")
    (folder / "model.enpt.intgemm.alphas.bin").unlink()
    with pytest.raises(UserError, match=r"has no Marian model, a \.bin or \.npz: unpack"):
        find_parts(folder)


def test_shortlists_of_firefox_are_of_fifty_and_have_the_translation_of_a_word() -> None:
    sentencepiece = pytest.importorskip("sentencepiece")
    words = {"enpt": ("▁house", "▁casa"), "pten": ("▁casa", "▁house")}
    for folder in packaged():
        parts = find_parts(folder)
        assert parts.shortlist is not None
        found = read_shortlist(parts.shortlist, (32000, 32000))
        subwords = sentencepiece.SentencePieceProcessor(model_file=str(parts.vocabularies[0]))
        source, target = (subwords.piece_to_id(word) for word in words[folder.name[:4]])
        candidates = found.candidates([source]).tolist()
        assert target in candidates and candidates[:50] == [*range(50)] and len(candidates) <= 100
