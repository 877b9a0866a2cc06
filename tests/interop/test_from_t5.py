"""An imported T5 of any kind has transformers' logits, texts and subwords; and folders that cannot be read."""

import copy
import io
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sentencepiece
import torch

from heads.__main__ import main
from heads.base.files import UserError
from heads.interop.numbering import Numbering
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.interop.t5.importing import model_of_t5, numbering_of
from heads.interop.t5.reading import read_t5
from heads.model.folder import load_folder
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.translation.beam_search import NEVER, beam_search, length_limit
from marian_models import changed, drawn, transformers
from slow_ones import slow_but
from t5_models import KINDS, NORMS, PREFIX, TEXTS, UMT5, in_double, save_subwords, save_t5

Both = tuple[Any, Transformer, Numbering]
"""Their model, ours, and our numbering of their subwords."""


@pytest.fixture(scope="module", params=KINDS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Both:
    place = tmp_path_factory.mktemp("imported")
    theirs = save_t5(place / "theirs", request.param)
    import_any(str(place / "theirs"), place / "ours")
    return theirs, load_folder(place / "ours"), numbering_of(read_t5(OriginalFiles(place / "theirs")))


@pytest.fixture
def _double(monkeypatch: pytest.MonkeyPatch) -> None:
    for norm in NORMS:
        monkeypatch.setattr(norm, "forward", in_double)


@torch.inference_mode()
@pytest.mark.usefixtures("_double")
def test_logits_are_those_of_transformers(pair: Both) -> None:
    theirs, ours, numbers = copy.deepcopy(pair[0]).double(), copy.deepcopy(pair[1]).double(), pair[2]
    rows = torch.tensor(numbers.rows)
    sources, targets = (
        drawn(lengths, len(rows), seed) for lengths, seed in (([29, 4, 1, 150], 3), ([5, 11, 160, 1], 4))
    )
    batch = make_batch(*([np.array(ids, np.int32) for ids in side] for side in (sources, targets)))
    found = ours.projection(ours(batch.source, batch.source_mask, batch.target_input))[batch.target_mask]
    expected = theirs(
        input_ids=rows[batch.source],
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=rows[batch.target_input],
    ).logits[batch.target_mask]
    own = [number for number in range(len(rows)) if number != BOS]
    torch.testing.assert_close(found[:, own], expected[:, rows[own]], rtol=0, atol=1e-5)
    assert sorted(rows[own].tolist()) == [*range(len(rows) - 1)], "every row has one id of ours"
    assert float(found.softmax(-1)[:, BOS].max()) < 1e-12, "the start has no chance"
    assert float(expected.std()) > 0.1


@torch.inference_mode()
@pytest.mark.parametrize("pair", slow_but(["T5 1.1, wide heads", "MADLAD-400"], KINDS), indirect=True)
@pytest.mark.parametrize(
    ("beam", "alpha", "early_stopping"),
    slow_but([(4, 1.0, False)], [(1, 0.0, NEVER), (4, 0.0, NEVER), (4, 1.0, False), (3, 2.0, True)]),
)
def test_the_search_finds_what_transformers_finds(
    pair: Both, *, beam: int, alpha: float, early_stopping: bool | str
) -> None:
    theirs, ours, numbers = pair
    end, nameless = numbers.rows[EOS], numbers.rows[len(numbers.rows) - numbers.nameless :]
    never = [[row] for row in {numbers.rows[PAD], numbers.rows[UNK], *nameless}]
    lengths = []
    for ids in drawn([3, 15, 8, 2, 4, 7, 9], len(numbers.rows), 5):
        subwords = torch.tensor([[*ids, EOS]])
        how: dict[str, Any] = {"length_penalty": alpha, "early_stopping": early_stopping}
        mask = torch.ones_like(subwords, dtype=torch.bool)
        [found] = beam_search(ours, subwords, mask, beam=beam, length_offset=0, **how)
        expected = theirs.generate(
            input_ids=torch.tensor(numbers.rows)[subwords],
            num_beams=beam,
            use_cache=False,  # of 5.23, it has as many layers as the encoder
            do_sample=False,
            max_new_tokens=length_limit(subwords.shape[1]),
            decoder_start_token_id=numbers.rows[BOS],
            bad_words_ids=never,
            **(how if beam > 1 else {}),
        )[0].tolist()
        assert expected[0] == numbers.rows[BOS]
        if expected[-1] == end or beam == 1:
            assert [numbers.rows[number] for number in found] == [*expected[1:-1]]
            lengths.append(len(found))
    assert lengths
    assert (beam, alpha) != (1, 0.0) or max(lengths) > 2


def texts_of() -> list[str]:
    """Known words, and letters, some of them unknown, with the gaps of pretraining."""
    draw = np.random.default_rng(1)
    letters = [*"abcdefghijklmnopqrstuvwxyzäüß .,!?", "☃", "  ", "É", "ﬁ", "<extra_id_3>", "<2de> ", "漢字"]
    texts = [" ".join(draw.choice(" ".join(TEXTS).split(), draw.integers(1, 9))) for _ in range(500)]
    texts += ["".join(draw.choice(letters, draw.integers(1, 30))) for _ in range(500)]
    return [text.strip() for text in texts if text.strip()]


SUBWORDS = {
    "T5": (transformers.T5Tokenizer, "spiece.model"),
    "tokenizer.json alone": (transformers.T5Tokenizer, "tokenizer.json"),
    "ByT5": (transformers.ByT5Tokenizer, ""),
}


@pytest.mark.parametrize("kind", SUBWORDS)
def test_subwords_are_those_of_the_tokeniser_with_the_prefix_before_them(kind: str, tmp_path: Path) -> None:
    save_t5(tmp_path / "theirs", kind)
    made, file = SUBWORDS[kind]
    assert not file or (tmp_path / "theirs" / file).is_file()
    tokeniser = made.from_pretrained(tmp_path / "theirs")
    rows, texts = numbering_of(read_t5(OriginalFiles(tmp_path / "theirs"))).rows, texts_of()
    for place, prefix in (("ours", ""), ("prefixed", PREFIX)):
        import_any(str(tmp_path / "theirs"), tmp_path / place, prefix)
        source, target = (vocabulary_of(tmp_path / place / f"{side}.model") for side in ("source", "target"))
        expected = tokeniser([f"{prefix}{text}" for text in texts])["input_ids"]
        found = source.encode(texts)
        assert [[rows[number] for number in (*ids, EOS)] for ids in found] == expected
        assert [source.spans(text)[0] for text in texts] == found
        assert target.encode(texts) == [ids[len(source.prefix) :] for ids in found]
        assert bool(source.prefix) == bool(prefix)
    known = [ids for ids in target.encode(texts) if UNK not in ids]
    theirs = [tokeniser.decode([rows[i] for i in ids], skip_special_tokens=True) for ids in known]
    assert len(known) > 400 and target.decode(known) == theirs


def test_the_language_of_a_madlad_is_cut_as_sentencepiece_does_before_any_text(tmp_path: Path) -> None:
    """transformers 5 puts no blank before it, and takes subword 2 for the unknown one, whatever SentencePiece says."""
    save_t5(tmp_path / "theirs", "MADLAD-400")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", "<2de> ")
    segmenter = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "theirs/spiece.model"))
    rows, source = (
        numbering_of(read_t5(OriginalFiles(tmp_path / "theirs"))).rows,
        vocabulary_of(tmp_path / "ours/source.model"),
    )
    texts = [text for text in texts_of() if "<" not in text]
    assert source.subwords(source.prefix) == ["\u2581", "<2de>"]
    expected = segmenter.encode([f"<2de> {text}" for text in texts])
    assert [[rows[number] for number in ids] for ids in source.encode(texts)] == expected
    assert sum(0 in ids for ids in expected) > 50, "unknown letters"


@pytest.mark.parametrize("prefix", ["summarize", "summarize:", "a b"])
def test_a_prefix_that_would_change_the_word_behind_it_is_refused(prefix: str, tmp_path: Path) -> None:
    save_t5(tmp_path / "theirs", "T5")
    with pytest.raises(UserError, match=f'"{prefix}" does not end where a word ends: end it with a blank'):
        import_any(str(tmp_path / "theirs"), tmp_path / "ours", prefix)
    assert not (tmp_path / "ours").exists()
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", f"{prefix} ")


@torch.inference_mode()
@pytest.mark.usefixtures("_double")
def test_logits_are_scaled_where_embeddings_are_tied_as_each_version_of_transformers_says(tmp_path: Path) -> None:
    """What transformers 4 wrote has no key of its own for it; UMT5's authors untied theirs."""
    theirs = save_t5(tmp_path / "t5", "T5").double()
    ids = torch.tensor([[7, 9, 5, 1]])
    expected = theirs(input_ids=ids, decoder_input_ids=ids).logits
    config = json.loads((tmp_path / "t5/config.json").read_text())

    def found(folder: Path) -> torch.Tensor:
        model, rows = (
            model_of_t5(read_t5(OriginalFiles(folder))).double(),
            numbering_of(read_t5(OriginalFiles(folder))).rows,
        )
        ours = torch.tensor([[rows.index(int(number), 2) if number else 1 for number in ids[0]]])
        logits: torch.Tensor = model.projection(model(ours, ours > 0, ours))
        return logits[:, :, [rows.index(number, 2 if number else 0) for number in range(len(rows) - 1)]]

    for keys, factor in (
        ({}, 1),
        ({"scale_decoder_outputs": None, "tie_word_embeddings": True}, 1),
        ({"scale_decoder_outputs": None, "tie_word_embeddings": None}, 1),
        ({"scale_decoder_outputs": False}, 12**0.5),
        ({"scale_decoder_outputs": None, "tie_word_embeddings": False}, 12**0.5),
    ):
        told = {key: value for key, value in {**config, **keys}.items() if value is not None}
        (tmp_path / "t5/config.json").write_text(json.dumps(told))
        torch.testing.assert_close(found(tmp_path / "t5"), expected * factor, rtol=0, atol=1e-5)
    theirs = save_t5(tmp_path / "umt5", "UMT5").double()
    expected = theirs(input_ids=ids, decoder_input_ids=ids).logits
    torch.testing.assert_close(found(tmp_path / "umt5"), expected, rtol=0, atol=1e-5)
    changed(tmp_path / "umt5/config.json", tie_word_embeddings=False)
    torch.testing.assert_close(found(tmp_path / "umt5"), expected * 12**0.5, rtol=0, atol=1e-5)


BAD: tuple[tuple[Callable[[Path], object], str], ...] = (
    (lambda f: (f / "spiece.model").unlink(), "has neither spiece.model nor tokenizer.json"),
    (lambda f: (f / "spiece.model").write_bytes(b"\xff" * 50), "is not a SentencePiece model, or is damaged"),
    (lambda f: changed(f / "config.json", feed_forward_proj="gated-tanh"), "feed_forward_proj is 'gated-tanh'"),
    (
        lambda f: changed(f / "config.json", architectures=["T5EncoderModel"]),
        "describes a T5EncoderModel, which does not",
    ),
    (lambda f: changed(f / "config.json", model_type="longt5"), "describes longt5, which is not supported"),
    (lambda f: changed(f / "config.json", relative_attention_num_buckets=30), "must be a multiple of 4"),
    (
        lambda f: changed(f / "config.json", relative_attention_num_buckets=8),
        "distances.weight are 32 x 3 and not 8 x 3",
    ),
    (
        lambda f: changed(f / "config.json", d_kv=4),
        "weights of encoder.0.self_attention.query.weight are 15 x 12 and not",
    ),
    (lambda f: changed(f / "config.json", num_layers=3), "has no weights called encoder.block.2.layer.0.layer_norm"),
    (lambda f: changed(f / "config.json", eos_token_id=0), "are not ids of their own"),
    (lambda f: changed(f / "tokenizer_config.json", extra_ids="many"), "extra_ids is 'many'"),
)


@pytest.mark.parametrize(("spoil", "sentence"), BAD)
def test_a_folder_that_cannot_be_read_is_one_sentence(
    spoil: Callable[[Path], object], sentence: str, good: Path, tmp_path: Path
) -> None:
    shutil.copytree(good, tmp_path / "theirs")
    spoil(tmp_path / "theirs")
    with pytest.raises(UserError, match=re.escape(sentence)):
        import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid folder; only to be copied."""
    folder = tmp_path_factory.mktemp("good") / "t5"
    save_t5(folder, "FLAN-T5, 6 heads", num_heads=3, d_kv=5)
    return folder


def test_heads_translate_writes_what_transformers_writes_behind_the_prefix(
    good: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO("\n".join(TEXTS).encode())))
    assert main(["translate", str(good), "--prefix", PREFIX]) == 0
    found = capfd.readouterr().out.splitlines()
    theirs = transformers.T5ForConditionalGeneration.from_pretrained(good)
    tokeniser = transformers.T5Tokenizer.from_pretrained(good)
    rows = theirs.config.vocab_size
    never = [[number] for number in (0, 2, *range(rows - 9, rows))]
    for line, text in zip(found, TEXTS, strict=True):
        told = tokeniser(f"{PREFIX}{text}", return_tensors="pt")
        how = {
            "max_new_tokens": length_limit(told["input_ids"].shape[1]) - 1,
            "bad_words_ids": never,
            "use_cache": False,
        }
        written = theirs.generate(**told, **how)[0]
        assert line == " ".join(tokeniser.decode(written, skip_special_tokens=True).split())
    assert len({*found}) > 4


def test_languages_are_refused(good: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="are for M2M100, NLLB and mBART: leave them out"):
        import_any(str(good), tmp_path / "ours", languages=("en", "de"))


def test_gaps_of_pretraining_without_a_row_are_left_out(tmp_path: Path) -> None:
    """As where a vocabulary was cut down to what its SentencePiece model has."""
    pieces = save_subwords(tmp_path, "T5") - 100
    changed(tmp_path / "tokenizer_config.json", extra_ids=7)
    save = UMT5(UMT5.config_class(vocab_size=pieces + 3, d_model=8, d_kv=2, d_ff=4, num_layers=1, num_heads=2))
    save.save_pretrained(tmp_path)
    names = read_t5(OriginalFiles(tmp_path)).names
    assert names[pieces - 1 :][1:] == ["<extra_id_6>", "<extra_id_5>", "<extra_id_4>"]
