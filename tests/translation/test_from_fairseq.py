"""An imported M2M100, NLLB, BART or mBART equals that of transformers: logits, search, subwords, languages."""

from __future__ import annotations

import copy
import io
import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from fairseq_models import (
    ALL_LANGUAGES,
    CLASSES,
    LANGUAGES,
    TEXTS,
    in_their_ids,
    save_folder,
    save_model,
    save_subwords,
)
from heads.__main__ import main
from heads.base.files import UserError
from heads.model.folder import load_folder
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, UNK
from heads.translation.beam_search import NEVER, beam_search, length_limit
from heads.translation.fairseq_folder import read_fairseq
from heads.translation.from_marian import numberings_of
from heads.translation.opening import import_model
from heads.translation.stream import open_translator
from marian_models import changed, drawn, transformers

SHAPES: dict[str, tuple[str, dict[str, Any]]] = {
    "M2M100": ("m2m100", {"ending": 2.0}),
    "M2M100, without scaling, gelu, deep encoder": (
        "m2m100",
        {
            "scale_embedding": False,
            "activation_function": "gelu",
            "encoder_layers": 4,
            "decoder_layers": 1,
            "ending": 4,
        },
    ),
    "NLLB, wide": ("nllb", {"d_model": 20, "encoder_attention_heads": 5, "decoder_attention_heads": 5, "ending": 3}),
    "NLLB, nothing tied": ("nllb", {"tie_word_embeddings": False, "ending": 1.5}),
    "BART": ("bart", {"ending": 3}),
    "BART, scaled, relu": ("bart", {"scale_embedding": True, "activation_function": "relu", "ending": 3}),
    "mBART": ("mbart", {"scale_embedding": True, "ending": 1.2}),
    "mBART of 25 languages": ("mbart25", {"scale_embedding": True, "ending": 0.3}),
    "mBART, swish, narrow": (
        "mbart",
        {
            "activation_function": "swish",
            "encoder_ffn_dim": 5,
            "decoder_ffn_dim": 5,
            "decoder_layers": 2,
            "ending": 1.8,
        },
    ),
}


Both = tuple[Any, Transformer, tuple[int, ...], tuple[int, ...]]
"""Their model, ours, and their ids for our subwords of source and target."""


@pytest.fixture(scope="module", params=SHAPES)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    folder = tmp_path_factory.mktemp("fairseq")
    family, changes = SHAPES[request.param]
    theirs = save_folder(folder / "theirs", family, **changes)
    import_model(str(folder / "theirs"), folder / "ours", languages=LANGUAGES[family])
    return theirs, load_folder(folder / "ours"), *rows_of(folder / "theirs", family)


def rows_of(folder: Path, family: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Their ids for our subwords of source and target."""
    source, target = numberings_of(read_fairseq(folder, LANGUAGES[family]))
    return source.rows, target.rows


@torch.inference_mode()
def test_logits_are_those_of_transformers(pair: Both) -> None:
    theirs, ours, rows, target_rows = pair
    # The remaining difference in single precision is rounding.
    theirs, ours = copy.deepcopy(theirs).double(), copy.deepcopy(ours).double()
    sources, targets = drawn([9, 4, 1, 7], len(rows), 3), drawn([5, 11, 3, 1], len(rows), 4)
    batch = make_batch(*([np.array(ids, np.int32) for ids in side] for side in (sources, targets)))
    found = ours.projection(ours(batch.source, batch.source_mask, batch.target_input))[batch.target_mask]
    expected = theirs(
        input_ids=torch.tensor(rows)[batch.source],
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=torch.tensor(target_rows)[batch.target_input],
    ).logits[batch.target_mask][:, list(target_rows)]
    others = (torch.arange(len(rows)) != BOS) | (target_rows[BOS] != target_rows[EOS])
    assert float((found - expected)[:, others].abs().max()) < 1e-5
    wanted = expected[:, others].log_softmax(-1)
    assert float((found.log_softmax(-1)[:, others] - wanted).abs().max()) < 1e-5, "the start has no chance"


@torch.inference_mode()
@pytest.mark.parametrize(
    ("beam", "alpha", "early_stopping"), [(1, 0.0, NEVER), (4, 0.0, NEVER), (4, 2.0, False), (2, 2.0, True)]
)
def test_the_search_finds_what_transformers_finds(
    pair: Both, *, beam: int, alpha: float, early_stopping: bool | str
) -> None:
    theirs, ours, rows, target_rows = pair
    begins, lengths = ours.shape.first_subword, list[int]()
    start = target_rows[BOS]
    for ids in drawn([3, 5, 8, 2, 6, 4, 7, 9, 5, 3], len(rows), 5):
        subwords = torch.tensor([[*ids, EOS]])
        how: dict[str, Any] = {"length_penalty": alpha, "early_stopping": early_stopping}
        [found] = beam_search(
            ours, subwords, torch.ones_like(subwords, dtype=torch.bool), beam=beam, length_offset=0, **how
        )
        expected = theirs.generate(
            input_ids=torch.tensor(rows)[subwords],
            num_beams=beam,
            do_sample=False,
            max_new_tokens=length_limit(subwords.shape[1]),
            decoder_start_token_id=start,
            forced_bos_token_id=target_rows[begins] if begins else None,
            bad_words_ids=[[1], [3], *([] if begins else [[start]])],
            **(how if beam > 1 else {}),
        )[0].tolist()
        assert expected[0] == start and (not begins or expected[1] == target_rows[begins])
        if expected[-1] == 2 or beam == 1:  # if cut off, its score includes EOS here, but not there
            assert in_their_ids(target_rows, found) == expected[1:-1]
            lengths.append(len(found))
    assert lengths and (beam > 1 or max(lengths) > 2)


def texts_of(seed: int) -> list[str]:
    """Known words, and letters, some of them unknown; no blanks at the ends, which only transformers keeps."""
    draw = np.random.default_rng(seed)
    letters = [*"abcdefghijklmnopqrstuvwxyzäüß .,!?", "☃", "  ", "É", "ﬁ"]
    words = " ".join(TEXTS).split()
    texts = [" ".join(draw.choice(words, draw.integers(1, 9))) for _ in range(100)]
    texts += ["".join(draw.choice(letters, draw.integers(1, 30))).strip() for _ in range(100)]
    return [text for text in texts if text]


TOKENISERS = {
    "m2m100 bpe": transformers.M2M100Tokenizer,
    "m2m100 unigram": transformers.M2M100Tokenizer,
    "nllb bpe": transformers.NllbTokenizer,
    "mbart unigram": transformers.MBart50Tokenizer,
    "mbart25 unigram": transformers.MBartTokenizer,
    "bart bytes": transformers.BartTokenizer,
}


@pytest.mark.parametrize("name", TOKENISERS)
def test_subwords_are_those_of_the_tokeniser_behind_the_language(name: str, tmp_path: Path) -> None:
    family, kind = name.split()
    save_subwords(tmp_path / "theirs", family, kind)
    save_model(tmp_path / "theirs", family)
    languages = dict(zip(("src_lang", "tgt_lang"), LANGUAGES[family], strict=True)) if family != "bart" else {}
    tokeniser = TOKENISERS[name].from_pretrained(tmp_path / "theirs", **languages)
    import_model(str(tmp_path / "theirs"), tmp_path / "ours", languages=LANGUAGES[family])
    both, texts = rows_of(tmp_path / "theirs", family), texts_of(1)
    if family == "mbart25":  # transformers has its normaliser only with a tokenizer.json
        texts = [unicodedata.normalize("NFKC", text) for text in texts]
    unknown = 0
    for side, language, rows in zip(("source", "target"), LANGUAGES[family], both, strict=True):
        expected = tokeniser(texts)["input_ids"] if side == "source" else tokeniser(text_target=texts)["input_ids"]
        if family == "nllb":  # transformers has its language ids only with a tokenizer.json
            segmenter = sentencepiece.SentencePieceProcessor(str(tmp_path / "theirs/sentencepiece.bpe.model"))
            number = segmenter.get_piece_size() + 1 + ALL_LANGUAGES["nllb"].index(language)
            expected = [[number, *ids[1:]] for ids in expected]
        vocabulary = vocabulary_of(tmp_path / f"ours/{side}.model")
        found = vocabulary.encode(texts)
        ends = [EOS, BOS] if (family, side) == ("mbart25", "target") else [EOS]
        assert [in_their_ids(rows, [*ids, *ends]) for ids in found] == expected
        assert [vocabulary.spans(text)[0] for text in texts] == found
        assert vocabulary.spans("dog")[1].count((0, 0)) == (ends == [EOS]), "language or end cover no text"
        known = [ids for ids in found if UNK not in ids]
        theirs = [tokeniser.decode(in_their_ids(rows, ids), skip_special_tokens=True) for ids in known]
        assert vocabulary.decode(known) == theirs, "what names the language is no text"
        unknown += len(found) - len(known)
    assert unknown > 20 or family == "bart"
    if family == "bart":
        assert "".join(vocabulary.subwords(vocabulary.encode(["a dog"])[0][1:])) == "a\u2581dog"


def test_added_subwords_are_found_in_whichever_file_tells_of_them(tmp_path: Path) -> None:
    save_folder(tmp_path, "nllb")
    expected = read_fairseq(tmp_path).languages
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
        assert read_fairseq(tmp_path).languages == expected, name
        (tmp_path / name).unlink()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A valid folder for each; only to be copied."""
    folder = tmp_path_factory.mktemp("good")
    for family in ("nllb", "bart", "mbart"):
        save_folder(folder / family, family)
    return {family: folder / family for family in ("nllb", "bart", "mbart")}


BAD: dict[str, tuple[str, Sequence[str], str]] = {
    "no language": ("nllb", (), "knows 202 languages: give --source-language, such as ace_Arab, ace_Latn"),
    "no target": ("mbart", ("--source-language", "en_XX"), "knows 52 languages: give --target-language, such as ar_AR"),
    "no such source": (
        "nllb",
        ("--source-language", "eng", "--target-language", "deu_Latn"),
        "does not know language eng: give --source-language as it calls it, such as eng_Latn",
    ),
    "no such target": (
        "nllb",
        ("--source-language", "eng_Latn", "--target-language", "de"),
        "does not know language de: give --target-language",
    ),
    "a language of a BART": ("bart", ("--source-language", "en"), "has no languages to choose from: leave out"),
    "a prefix": ("nllb", ("--prefix", ">>deu<<"), "gets its languages from --source-language and --target-language"),
}


@pytest.mark.parametrize("fault", BAD)
def test_a_language_that_is_missing_or_not_known_is_one_sentence_that_lists_some(
    fault: str, good: dict[str, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    family, flags, sentence = BAD[fault]
    told = ["--source-language", "eng_Latn", "--target-language", "deu_Latn"] if fault == "a prefix" else []
    command = ["import", str(good[family]), "-o", str(tmp_path / "out/ours"), *flags, *told]
    assert main(command) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and sentence in said
    assert not (tmp_path / "out").exists() or [*(tmp_path / "out").iterdir()] == []


SPOILT: tuple[tuple[str, Callable[[Path], object], str], ...] = (
    ("nllb", lambda f: (f / "sentencepiece.bpe.model").unlink(), "has no sentencepiece.bpe.model"),
    (
        "nllb",
        lambda f: (f / "sentencepiece.bpe.model").write_bytes(b"\xff" * 50),
        "is not a SentencePiece model, or is damaged",
    ),
    ("bart", lambda f: (f / "merges.txt").unlink(), "has neither sentencepiece.bpe.model nor merges.txt"),
    ("bart", lambda f: changed(f / "config.json", vocab_size=9), "a vocab_size of 9"),
    ("mbart", lambda f: changed(f / "config.json", d_model=24), "x 12 and not"),
    (
        "bart",
        lambda f: changed(f / "config.json", max_position_embeddings=63),
        "the weights of source_embedding.positions.weight are 64 x 12 and not 63 x 12",
    ),
)


@pytest.mark.parametrize(("family", "spoil", "sentence"), SPOILT)
def test_a_folder_that_cannot_be_read_is_one_sentence(
    family: str, spoil: Callable[[Path], object], sentence: str, good: dict[str, Path], tmp_path: Path
) -> None:
    shutil.copytree(good[family], tmp_path / "theirs")
    spoil(tmp_path / "theirs")
    with pytest.raises(UserError, match=re.escape(sentence)):
        import_model(str(tmp_path / "theirs"), tmp_path / "ours", languages=LANGUAGES[family])
    assert not (tmp_path / "ours").exists()


@pytest.mark.parametrize("family", ["nllb", "bart"])
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
    rows = numberings_of(read_fairseq(good[family]))[0].rows
    first = rows[known[1].prefix[0]]
    for line, ids in zip(found, known[0].encode(TEXTS), strict=True):
        told = torch.tensor([[*in_their_ids(rows, ids), 2]])
        how = {"num_beams": 1, "max_new_tokens": min(64, length_limit(told.shape[1])), "bad_words_ids": [[1], [3]]}
        expected = theirs.generate(input_ids=told, forced_bos_token_id=first, **how)[0].tolist()
        assert expected[1] == first
        kept = expected[2:-1]
        assert line == normalised(known[1].decode([[rows.index(number) for number in kept]])[0])


def normalised(text: str) -> str:
    """Normalise blanks as in written lines."""
    return " ".join(text.split())


def test_a_long_line_is_cut_into_parts_that_all_begin_with_its_language(good: dict[str, Path], tmp_path: Path) -> None:
    import_model(str(good["mbart"]), tmp_path / "ours", languages=LANGUAGES["mbart"])
    how: dict[str, Any] = {"beam": 1, "length_penalty": 0.0, "batch_tokens": 100}
    known = open_translator(tmp_path / "ours", torch.device("cpu"), max_subwords=9, **how)
    (first,), [ids] = known.source.prefix, known.source.encode([" ".join(TEXTS)])
    parts = known.parts(ids)
    assert len(parts) > 5 and all(part[0] == first and 2 <= len(part) <= 10 for part in parts)
    assert [first, *(number for part in parts for number in part[1:])] == ids
    longer = replace(known, max_subwords=500)
    assert all(len(part) + 1 <= 64 for part in longer.parts(ids * 3)), "there are no more positions"
    longer.translate([longer.parts(ids * 3)])
