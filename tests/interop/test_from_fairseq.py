"""Languages of an imported M2M100, NLLB or mBART, its commands, and folders that cannot be read."""

import io
import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_models import (
    ALL_LANGUAGES,
    CLASSES,
    LANGUAGES,
    TEXTS,
    in_their_ids,
    numberings_in,
    save_folder,
)
from heads.__main__ import main
from heads.base.files import UserError
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.fairseq.format import SEGMENTER
from heads.interop.fairseq.reading import read_fairseq
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.text.encoding import vocabulary_of
from heads.translation.beam_search import length_limit
from marian_models import changed
from slow_ones import slow_but


def test_added_subwords_are_found_in_whichever_file_tells_of_them(tmp_path: Path) -> None:
    save_folder(tmp_path, "nllb")
    expected = read_fairseq(OriginalFiles(tmp_path)).languages
    assert len(expected) == len(ALL_LANGUAGES["nllb"]) and expected["deu_Latn"] == expected["ace_Arab"] + 41
    (tmp_path / "special_tokens_map.json").unlink()
    listed = {str(number): {"content": code} for code, number in expected.items()}
    one_by_one = [{"id": number, "content": code} for code, number in expected.items()]
    for name, told in (
        ("tokenizer_config.json", {"added_tokens_decoder": listed}),
        ("tokenizer.json", {"added_tokens": one_by_one, "model": {"vocab": {}}}),
        ("added_tokens.json", dict(expected)),
        ("tokenizer_config.json", {"extra_special_tokens": [*expected]}),
        ("special_tokens_map.json", {"additional_special_tokens": [{"content": code} for code in expected]}),
    ):
        (tmp_path / name).write_text(json.dumps(told), encoding="utf-8")
        assert read_fairseq(OriginalFiles(tmp_path)).languages == expected, name
        (tmp_path / name).unlink()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A valid folder for each; only to be copied."""
    folder = tmp_path_factory.mktemp("good")
    for family in ("nllb", "bart", "mbart"):
        save_folder(folder / family, family)
    return {family: folder / family for family in ("nllb", "bart", "mbart")}


BAD: tuple[tuple[str, dict[str, str], str], ...] = (
    ("nllb", {}, "knows 202 languages: give --source-language, such as ace_Arab, ace_Latn"),
    ("mbart", {"source-language": "en_XX"}, "knows 52 languages: give --target-language, such as ar_AR"),
    ("nllb", {"source-language": "eng", "target-language": "deu_Latn"}, "does not know language eng: give --source-"),
    ("nllb", {"source-language": "eng"}, "give --source-language as it calls it, such as eng_Latn"),
    ("nllb", {"source-language": "eng_Latn", "target-language": "de"}, "not know language de: give --target-language"),
    ("bart", {"source-language": "en"}, "has no languages to choose from: leave out"),
    ("nllb", {"prefix": ">>deu<<"}, "gets its languages from --source-language and --target-language"),
)


@pytest.mark.parametrize(("family", "flags", "sentence"), BAD)
def test_a_language_that_is_missing_or_not_known_is_one_sentence_that_lists_some(
    family: str,
    flags: dict[str, str],
    sentence: str,
    good: dict[str, Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    told = [word for name, value in flags.items() for word in (f"--{name}", value)]
    assert main(["import", str(good[family]), "-o", str(tmp_path / "out/ours"), *told]) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and sentence in said
    assert not (tmp_path / "out").exists() or [*(tmp_path / "out").iterdir()] == []


def more_subwords(folder: Path) -> None:
    changed(folder / "vocab.json", **{f"one more {number}": number for number in range(300, 305)})


SPOILT: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("nllb", lambda f: (f / SEGMENTER).unlink(), "has no sentencepiece.bpe.model"),
    ("nllb", lambda f: (f / SEGMENTER).write_bytes(b"\xff" * 50), "is not a SentencePiece model, or is damaged"),
    ("bart", lambda f: (f / "merges.txt").unlink(), "has neither sentencepiece.bpe.model nor merges.txt"),
    ("bart", lambda f: more_subwords(f), "does not fit its weights, 305 subwords for 303 rows of model.decoder.embed"),
    ("mbart", lambda f: changed(f / "config.json", d_model=24), "x 12 and not"),
    ("bart", lambda f: changed(f / "config.json", max_position_embeddings=63), "positions.weight are 64 x 12 and not"),
)


@pytest.mark.parametrize(("family", "spoil", "sentence"), SPOILT)
def test_a_folder_that_cannot_be_read_is_one_sentence(
    family: str, spoil: Callable[[Path], object], sentence: str, good: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(good[family], tmp_path / "theirs")
    spoil(tmp_path / "theirs")
    with pytest.raises(UserError, match=re.escape(sentence)):
        import_any(str(tmp_path / "theirs"), tmp_path / "ours", languages=LANGUAGES[family])
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("family", slow_but(["nllb"], ["nllb", "bart"]))
def test_by_two_commands_an_imported_model_translates_lines_as_transformers_does(
    family: str,
    good: dict[str, Path],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    source, target = LANGUAGES[family]
    flags = ["--source-language", source, "--target-language", target] if source else []
    out = tmp_path / "ours"
    assert main(["import", str(good[family]), "-o", str(out), *flags]) == 0
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode())))
    capfd.readouterr()
    assert main(["translate", str(out), "--beam", "1", "--length-penalty", "0"]) == 0
    found = capfd.readouterr().out.splitlines()
    theirs = CLASSES[family].from_pretrained(good[family]).eval()
    known = [vocabulary_of(out / f"{side}.model") for side in ("source", "target")]
    rows = numberings_in(good[family], family)[0].rows
    first = rows[known[1].prefix[0]]
    for line, ids in zip(found, known[0].encode(TEXTS), strict=True):
        told = torch.tensor([[*in_their_ids(rows, ids), 2]])
        how = {"num_beams": 1, "max_new_tokens": min(64, length_limit(told.shape[1])), "bad_words_ids": [[1], [3]]}
        _, begun, *kept, _ = theirs.generate(input_ids=told, forced_bos_token_id=first, **how)[0].tolist()
        assert begun == first
        assert line == " ".join(known[1].decode([[rows.index(number) for number in kept]])[0].split())


def test_a_long_line_is_cut_into_parts_that_all_begin_with_its_language(good: dict[str, Path], tmp_path: Path) -> None:
    import_any(str(good["mbart"]), tmp_path / "ours", languages=LANGUAGES["mbart"])
    how: dict[str, Any] = {"beam": 1, "length_penalty": 0.0, "batch_tokens": 100}
    known = open_translator(saved_bundle(tmp_path / "ours"), torch.device("cpu"), max_subwords=9, **how)
    (first,), [ids] = known.source.prefix, known.source.encode([" ".join(TEXTS)])
    parts = known.parts(ids)
    assert len(parts) > 5 and all(part[0] == first and 2 <= len(part) <= 10 for part in parts)
    assert [first, *(number for part in parts for number in part[1:])] == ids
    longer = replace(known, max_subwords=500)
    assert all(len(part) + 1 <= 64 for part in longer.parts(ids * 3)), "there are no more positions"
    longer.translate([longer.parts(ids * 3)])
