"""An imported Marian model equals that of transformers: subwords, logits, results of greedy and beam search."""

from __future__ import annotations

import hashlib
import io
import shutil
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

from heads.__main__ import main
from heads.base.files import UserError, read_json, write_json
from heads.formats.registry import format_of
from heads.model.folder import load_folder
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import LENGTH_OFFSET, NEVER, beam_search, length_limit
from heads.translation.downloads import folder_of
from heads.translation.export import export
from heads.translation.from_marian import Numbering, numberings_of
from heads.translation.marian_folder import read_marian
from heads.translation.model_folder import search_of
from heads.translation.opening import import_model
from heads.translation.stream import open_translator
from marian_models import SENTENCES, changed, drawn, save_marian, save_tokeniser, transformers
from small_server import serving_folder

SHAPES: dict[str, dict[str, Any]] = {
    "as OPUS-MT": {},
    "separate vocabularies": {"separate": True, "share_encoder_decoder_embeddings": False},
    "nothing tied": {"separate": True, "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    "one vocabulary, two embeddings": {"share_encoder_decoder_embeddings": False},
    "without scaling, gelu": {"scale_embedding": False, "activation_function": "gelu"},
    "relu, deep encoder": {"activation_function": "relu", "encoder_layers": 4, "decoder_layers": 1},
    "half precision, in shards": {"half": True, "shards": "8KB"},
}


def made(folder: Path, changes: dict[str, Any]) -> tuple[Any, Any]:
    """A folder of transformers, and its tokeniser and model."""
    changes = dict(changes)
    return save_tokeniser(folder, separate=changes.pop("separate", False)), save_marian(folder, biases=0.4, **changes)


@pytest.fixture(scope="module", params=SHAPES)
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Any, Transformer, tuple[Numbering, Numbering]]:
    """Their model, ours, and the numbering of its subwords."""
    folder = tmp_path_factory.mktemp("marian")
    _, theirs = made(folder / "theirs", SHAPES[request.param])
    import_model(str(folder / "theirs"), folder / "ours")
    return theirs, load_folder(folder / "ours"), numberings_of(read_marian(folder / "theirs"))


@torch.inference_mode()
def test_logits_are_those_of_transformers(pair: tuple[Any, Transformer, tuple[Numbering, Numbering]]) -> None:
    theirs, ours, (source, target) = pair
    sources = drawn([9, 4, 1, 7], len(source.rows), 3)
    targets = drawn([5, 11, 3, 1], len(target.rows), 4)
    batch = make_batch(*([np.array(ids, np.int32) for ids in side] for side in (sources, targets)))
    found = ours.projection(ours(batch.source, batch.source_mask, batch.target_input))
    expected = theirs(
        input_ids=torch.tensor(source.rows)[batch.source],
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=torch.tensor(target.rows)[batch.target_input],
    ).logits
    real = batch.target_mask
    ordered = expected[..., list(target.rows)]
    assert float((found - ordered)[real][:, EOS:].abs().max()) < 1e-5
    start = found[real][:, [PAD, BOS]].logsumexp(-1)
    assert float((start - expected[real][:, target.rows[BOS]]).abs().max()) < 1e-5
    log_probs = expected.log_softmax(-1)[..., list(target.rows)]
    assert float((found.log_softmax(-1) - log_probs)[real][:, EOS:].abs().max()) < 1e-5


SEARCHES = [(1, 0.0, NEVER), (4, 0.0, NEVER), (4, 2.0, NEVER), (4, 2.0, False), (2, 2.0, False), (4, 2.0, True)]
"""Beam size, length penalty and when to stop; the last four differ on the first of the shapes."""


@torch.inference_mode()
@pytest.mark.parametrize(("beam", "alpha", "early_stopping"), SEARCHES)
def test_the_search_finds_what_transformers_finds(
    pair: tuple[Any, Transformer, tuple[Numbering, Numbering]], *, beam: int, alpha: float, early_stopping: bool | str
) -> None:
    theirs, ours, (source, target) = pair
    lengths = set()
    for ids in drawn([3, 5, 8, 2, 6, 4], len(source.rows), 5):
        subwords = torch.tensor([[*ids, EOS]])
        how: dict[str, Any] = {"length_penalty": alpha, "early_stopping": early_stopping}
        [found] = beam_search(
            ours, subwords, torch.ones_like(subwords, dtype=torch.bool), beam=beam, length_offset=0, **how
        )
        # Random models are cut off, where EOS costs nothing on their side: a penalty of one gives other results.
        # benchmarks/marian_search.py compares trained models.
        limit = length_limit(subwords.shape[1])
        expected = theirs.generate(
            input_ids=torch.tensor(source.rows)[subwords],
            num_beams=beam,
            do_sample=False,
            max_new_tokens=limit,
            forced_eos_token_id=target.rows[EOS],
            bad_words_ids=[[target.rows[PAD]], [target.rows[UNK]]],
            **(how if beam > 1 else {}),
        )[0].tolist()
        kept = expected[1 : expected.index(target.rows[EOS])]
        assert [target.rows[number] for number in found] == kept
        lengths.add(len(kept))
    assert len(lengths) > 1


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
@pytest.mark.parametrize("separate", [False, True])
def test_subwords_are_those_of_the_tokeniser(kind: str, *, separate: bool, tmp_path: Path) -> None:
    tokeniser = save_tokeniser(tmp_path / "theirs", kind=kind, separate=separate)
    save_marian(tmp_path / "theirs", share_encoder_decoder_embeddings=not separate)
    import_model(str(tmp_path / "theirs"), tmp_path / "ours")
    numberings = numberings_of(read_marian(tmp_path / "theirs"))
    draw = np.random.default_rng(1)
    letters = [*"abcdefghijklmnopqrstuvwxyzäüß .,!?", "☃", "  ", "É", "ﬁ"]
    unknown = 0
    for side, ours in zip(("source", "target"), numberings, strict=True):
        words = " ".join(SENTENCES["source"] + SENTENCES["target"]).split()
        texts = [" ".join(draw.choice(words, draw.integers(1, 9))) for _ in range(200)]
        texts += ["".join(draw.choice(letters, draw.integers(1, 30))) for _ in range(300)]
        expected = tokeniser(texts)["input_ids"] if side == "source" else tokeniser(text_target=texts)["input_ids"]
        vocabulary = Vocabulary(tmp_path / f"ours/{side}.model")
        assert len(vocabulary) == len(ours.rows)
        found = vocabulary.encode(texts)
        assert [[*(ours.rows[i] for i in ids), ours.rows[EOS]] for ids in found] == expected
        assert [vocabulary.spans(text)[0] for text in texts] == found
        unknown += sum(ids.count(UNK) for ids in found[:200])
    assert unknown > 20, "subwords that the vocabulary lacks are met"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that can be imported; only to be copied."""
    folder = tmp_path_factory.mktemp("good") / "opus-mt-en-de"
    made(folder, {})
    card = "---\nlanguage: [en, de]\nlicense: apache-2.0\ntags:\n- translation\n---\nlicense: no\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


BAD: tuple[tuple[str, dict[str, Any] | Callable[[Path], object], str], ...] = (
    (
        "config.json",
        {"model_type": "t5"},
        "config.json describes t5, which is not supported: give a model of type marian, m2m",
    ),
    ("source.spm", Path.unlink, "has no source.spm: copy it from where the model is from"),
    ("vocab.json", Path.unlink, "has no vocab.json"),
    ("target.spm", lambda p: p.write_bytes(b"\xff" * 50), "spm is not a SentencePiece"),
    ("target.spm", lambda p: p.write_bytes(b""), "spm is not a SentencePiece"),
    ("vocab.json", lambda p: changed(p, **{"one more": len(read_json(p))}), "rows of model.encoder"),
    ("vocab.json", {"one more": 3}, "does not number its subwords from 0 on"),
    ("config.json", {"activation_function": "gelu_new"}, "'gelu_new', and not one"),
    ("config.json", {"decoder_attention_heads": 4}, "attention_heads is 3 and 4"),
    ("config.json", {"dropout": None}, "dropout is None: it must be at least 0"),
    ("config.json", {"attention_dropout": 3}, "attention_dropout is 3: it must"),
    ("generation_config.json", {"num_beams": 0}, "num_beams of its generation is 0, which no"),
    ("generation_config.json", {"num_beams": True}, "num_beams of its generation is True"),
    ("generation_config.json", {"num_beams": "a"}, "num_beams of its generation is 'a'"),
    ("generation_config.json", {"length_penalty": float("nan")}, "length_penalty of its"),
    ("generation_config.json", {"early_stopping": "maybe"}, "is 'maybe', which no"),
    ("config.json", {"encoder_layers": "two"}, "encoder_layers is 'two'"),
    ("config.json", {"encoder_layers": 3}, "no weights called model.encoder.layers.2"),
    ("config.json", {"encoder_ffn_dim": 15, "decoder_ffn_dim": 15}, "are 14 x 12 and not"),
    ("config.json", {"decoder_start_token_id": 0}, "start 0 and the end 0 are not ids of their own"),
    (
        "config.json",
        {"pad_token_id": 900, "decoder_start_token_id": 900},
        "padding 900, the decoder's start 900 and the end 0 are not ids",
    ),
    ("config.json", lambda p: p.write_text("{"), "config.json is not valid JSON"),
    ("model.safetensors", lambda p: p.write_bytes(p.read_bytes()[:-9]), "missing or damaged"),
    ("model.safetensors", Path.unlink, "has no model.safetensors"),
    (
        "model.safetensors",
        lambda p: p.rename(p.with_name("pytorch_model.bin")),
        "pickled weights, which may run code and are not opened",
    ),
    (
        "model.safetensors.index.json",
        lambda p: p.write_text('{"weight_map": {"x": "../model.safetensors"}}'),
        "names no files beside it",
    ),
    (
        "model.safetensors.index.json",
        lambda p: p.write_text('{"weight_map": {"x": "model-1.safetensors"}}'),
        "model-1.safetensors is missing or damaged",
    ),
)
"""A file, changes to its JSON or what else is done to it, and what is said."""


@pytest.mark.parametrize(("name", "spoil", "sentence"), BAD)
def test_a_folder_that_is_no_marian_model_is_one_sentence_and_leaves_nothing(
    name: str,
    spoil: dict[str, Any] | Callable[[Path], object],
    sentence: str,
    good: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    folder = shutil.copytree(good, tmp_path / good.name)
    if isinstance(spoil, dict):
        changed(folder / name, **spoil)
    else:
        spoil(folder / name)
    assert main(["import", str(folder), "-o", str(tmp_path / "out/ours")]) == 1
    said = capfd.readouterr().err
    assert said.startswith("error: ") and said.count("\n") == 1 and sentence in said
    assert not (tmp_path / "out").exists() or [*(tmp_path / "out").iterdir()] == []


def test_a_folder_that_is_there_already_is_not_written_over(good: Path, tmp_path: Path) -> None:
    (tmp_path / "ours").mkdir()
    with pytest.raises(UserError, match="is already there"):
        import_model(str(good), tmp_path / "ours")


def test_where_a_model_is_from_and_its_licence_go_along_into_exports(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(good), "-o", str(tmp_path / "ours")]) == 0
    export(tmp_path / "ours", tmp_path / "faster", "ctranslate2")
    for name in ("ours", "faster"):
        page = (tmp_path / name / "README.md").read_text(encoding="utf-8")
        for text in (
            "# imported/opus-mt-en-de",
            "the Marian model opus-mt-en-de, under the licence apache-2.0",
            "beam of 4",
        ):
            assert text in page
        for kept in ("README.md", "config.json", "vocab.json", "source.spm", "generation_config.json"):
            assert (tmp_path / name / "pretrained" / kept).read_bytes() == (good / kept).read_bytes()
        about = read_json(tmp_path / name / "pretrained/about.json")
        digest = hashlib.sha256((good / "model.safetensors").read_bytes()).hexdigest()
        assert about["files_sha256"]["model.safetensors"] == digest
    assert search_of(tmp_path / "ours") == (4, 1)


def test_a_model_of_others_translates_and_is_exported_as_it_stands(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given, said = "".join(f"{line}\n" for line in SENTENCES["source"]).encode(), []
    export_it = ["export", str(good), "-o", str(tmp_path / "out")]
    assert main([*export_it, "--format", "huggingface"]) == 0
    assert (
        main(export_it) == 1
        and "is not in our format: convert it with heads import, or give --format." in capfd.readouterr().err
    )
    import_model(str(good), tmp_path / "ours")
    for model in (good, tmp_path / "ours", tmp_path / "out"):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
        assert main(["translate", str(model), "--device", "cpu"]) == 0
        said.append(capfd.readouterr().out)
    assert said[0] == said[1] == said[2] and said[0].count("\n") == 4


def test_an_imported_model_is_searched_as_its_authors_do_until_an_experiment_scored_it(
    good: Path, tmp_path: Path
) -> None:
    import_model(str(good), tmp_path / "ours")
    device = torch.device("cpu")
    how: dict[str, Any] = {"beam": 4, "length_penalty": 2.0, "batch_tokens": 100, "max_subwords": 50}
    known = open_translator(tmp_path / "ours", device, **how)
    assert (known.length_offset, known.early_stopping) == (0, False)
    ids = list(range(UNK + 1, 14))
    subwords = torch.tensor([[*ids, EOS]])
    search: dict[str, Any] = {"beam": 4, "length_penalty": 2.0, "length_offset": 0}
    for stopping in (False, True):
        found = beam_search(known.model, subwords, torch.ones_like(subwords).bool(), early_stopping=stopping, **search)
        assert replace(known, early_stopping=stopping).translate([[ids]]) == known.target.decode(found)
    score = {"beam": 4, "length_penalty": 0.6, "bleu": 1.0, "split": "test", "sentences": 1, "signature": "x"}
    write_json(tmp_path / "ours/bleu.json", score)
    known = open_translator(tmp_path / "ours", device, **how)
    assert (known.length_offset, known.early_stopping) == (LENGTH_OFFSET, NEVER)


def test_a_length_penalty_of_zero_is_no_missing_one(good: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good, tmp_path / good.name)
    changed(folder / "generation_config.json", length_penalty=0.0, num_beams=None)
    import_model(str(folder), tmp_path / "ours")
    assert search_of(tmp_path / "ours") == (1, 0.0)


def test_a_language_is_named_by_a_prefix_that_every_source_sentence_begins_with(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    tokeniser = save_tokeniser(folder, languages=[">>deu<<", ">>nld<<"])
    save_marian(folder)
    with pytest.raises(UserError, match="into several languages: give one as the prefix, such as >>deu<<, >>nld<<"):
        import_model(str(folder), tmp_path / "none")
    with pytest.raises(UserError, match="has no prefix >>fra<<: choose one of >>deu<<, >>nld<<"):
        import_model(str(folder), tmp_path / "none", ">>fra<<")
    import_model(str(folder), tmp_path / "ours", ">>nld<<")
    source, target = (Vocabulary(tmp_path / f"ours/{side}.model") for side in ("source", "target"))
    ours, _ = numberings_of(read_marian(folder))
    for text in SENTENCES["source"]:
        (found,) = source.encode([text])
        assert [*(ours.rows[i] for i in found), ours.rows[EOS]] == tokeniser(f">>nld<<{text}")["input_ids"]
        ids, spans = source.spans(text)
        assert ids == found and spans[0] == (0, 0) and len(spans) == len(ids)
        assert ours.rows[found[0]] not in [ours.rows[i] for i in target.encode([text])[0]]


def test_text_comes_back_from_subwords_as_the_tokeniser_gives_it_back(good: Path, tmp_path: Path) -> None:
    tokeniser = transformers.MarianTokenizer.from_pretrained(good)
    import_model(str(good), tmp_path / "ours")
    target, (_, ours) = Vocabulary(tmp_path / "ours/target.model"), numberings_of(read_marian(good))
    draw = np.random.default_rng(3)
    sentences = [draw.integers(UNK + 1, len(target), 9).tolist() for _ in range(50)]
    theirs = [tokeniser.decode([ours.rows[i] for i in ids], use_source_tokenizer=False) for ids in sentences]
    assert target.decode(sentences) == theirs


def test_a_name_on_the_hub_is_fetched_file_by_file_and_without_a_network_told_what_to_fetch_by_hand(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copytree(good, tmp_path / "site/Some-Lab/opus-mt-en-de/resolve/main")
    (tmp_path / "site/Some-Lab/opus-mt-en-de/resolve/main/tokenizer_config.json").unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = Path("Some-Lab/opus-mt-en-de")
    with serving_folder(tmp_path / "site") as hub:
        folder = folder_of(name, hub)
        import_model(str(name), tmp_path / "ours")
        (tmp_path / "site/Some-Lab/opus-mt-en-de/resolve/main/source.spm").unlink()
        assert folder_of(name, hub) == folder == tmp_path / "cache/heads/hub" / name
        assert format_of(name.as_posix())[1] == folder  # as planning finds it
        assert main(["import", name.as_posix()]) == 0
        assert capsys.readouterr().out.strip() == str(folder)
        shutil.rmtree(folder)
        with pytest.raises(UserError, match=r"fetch config\.json, vocab\.json.*answers 404"):
            folder_of(name, hub)
        files = tmp_path / "site/Some-Lab/opus-mt-en-de/resolve/main"
        shutil.copyfile(good / "source.spm", files / "source.spm")
        (files / "model.safetensors").rename(files / "pytorch_model.bin")
        with pytest.raises(
            UserError, match=r"^Some-Lab/opus-mt-en-de has no model\.safetensors on the hub.* save_pretr"
        ):
            folder_of(name, hub)
    assert not [*folder.parent.iterdir()]
    assert "imported/opus-mt-en-de" in (tmp_path / "ours/README.md").read_text(encoding="utf-8")
    said = (
        r"no folder: where there is a network run .*, or fetch config\.json, vocab\.json, source\.spm, target\.spm.*"
        r"from https://huggingface\.co/Some-Lab"
    )
    with pytest.raises(UserError, match=said):
        folder_of(name, hub)
    assert folder_of(good) == good
