"""What goes along with an imported Marian model: origin, search, prefix, text; a folder that is none is refused."""

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
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.downloads import fetched
from heads.interop.export import export
from heads.interop.formats import format_of
from heads.interop.hub import CONFIG, GENERATION, INDEX, PICKLED, VOCAB, WEIGHTS
from heads.interop.marian.format import SOURCE_SPM, TARGET_SPM
from heads.interop.marian.importing import numberings_of
from heads.interop.marian.reading import read_marian
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.text.special_ids import EOS, UNK
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import LENGTH_OFFSET, NEVER, beam_search
from marian_models import SENTENCES, changed, save_marian, save_tokeniser, transformers
from small_server import serving_hub


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that can be imported; only to be copied."""
    folder = tmp_path_factory.mktemp("good") / "opus-mt-en-de"
    save_tokeniser(folder)
    save_marian(folder, biases=0.4)
    card = "---\nlanguage: [en, de]\nlicense: apache-2.0\ntags:\n- translation\n---\nlicense: no\n"
    (folder / "README.md").write_text(card, encoding="utf-8")
    return folder


BAD: tuple[tuple[str, dict[str, Any] | Callable[[Path], object], str], ...] = (
    (CONFIG, {"model_type": "longt5"}, "describes longt5, which is not supported: give a model of type marian, umt5"),
    (SOURCE_SPM, Path.unlink, "has no source.spm: copy it from where the model is from"),
    (VOCAB, Path.unlink, "has no vocab.json"),
    (TARGET_SPM, lambda p: p.write_bytes(b"\xff" * 50), "spm is not a SentencePiece"),
    (TARGET_SPM, lambda p: p.write_bytes(b""), "spm is not a SentencePiece"),
    (VOCAB, lambda p: changed(p, **{"one more": len(read_json(p))}), "rows of model.encoder"),
    (VOCAB, {"one more": 3}, "does not number its subwords from 0 on"),
    (CONFIG, {"activation_function": "gelu_new"}, "'gelu_new', and not one"),
    (CONFIG, {"decoder_attention_heads": 4}, "attention_heads is 3 and 4"),
    (CONFIG, {"dropout": None}, "dropout is None: it must be at least 0"),
    (CONFIG, {"attention_dropout": 3}, "attention_dropout is 3: it must"),
    (GENERATION, {"num_beams": 0}, "num_beams of its generation is 0, which no"),
    (GENERATION, {"num_beams": True}, "num_beams of its generation is True"),
    (GENERATION, {"num_beams": "a"}, "num_beams of its generation is 'a'"),
    (GENERATION, {"length_penalty": float("nan")}, "length_penalty of its"),
    (GENERATION, {"early_stopping": "maybe"}, "is 'maybe', which no"),
    (CONFIG, {"encoder_layers": "two"}, "encoder_layers is 'two'"),
    (CONFIG, {"encoder_layers": 3}, "no weights called model.encoder.layers.2"),
    (CONFIG, {"encoder_ffn_dim": 15, "decoder_ffn_dim": 15}, "are 14 x 12 and not"),
    (CONFIG, {"decoder_start_token_id": 0}, "start 0 and the end 0 are not ids of their own"),
    (CONFIG, {"pad_token_id": 900, "decoder_start_token_id": 900}, "start 900 and the end 0 are not ids"),
    (CONFIG, lambda p: p.write_text("{"), "config.json is not valid JSON"),
    (WEIGHTS, lambda p: p.write_bytes(p.read_bytes()[:-9]), "missing or damaged"),
    (WEIGHTS, Path.unlink, "has no model.safetensors"),
    (WEIGHTS, lambda p: p.rename(p.with_name(PICKLED)), "pickled weights, which may run code and are not opened"),
    (INDEX, lambda p: p.write_text('{"weight_map": {"x": "../model.safetensors"}}'), "names no files beside it"),
    (INDEX, lambda p: p.write_text('{"weight_map": {"x": "model-1.safetensors"}}'), "1.safetensors is missing or"),
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


def test_where_a_model_is_from_and_its_licence_go_along_into_exports(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["import", str(good), "-o", str(tmp_path / "ours")]) == 0
    export(saved_bundle(tmp_path / "ours"), tmp_path / "faster", "ctranslate2")
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
    assert saved_bundle(tmp_path / "ours").search == (4, 1)


def test_a_model_of_others_translates_and_is_exported_as_it_stands(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    given, said = "".join(f"{line}\n" for line in SENTENCES["source"]).encode(), []
    export_it = ["export", str(good), "-o", str(tmp_path / "out")]
    assert main([*export_it, "--format", "huggingface"]) == 0
    assert (
        main([*export_it[:-1], str(tmp_path / "another")]) == 1
        and "is not in our format: convert it with heads import, or give --format." in capfd.readouterr().err
    )
    import_any(str(good), tmp_path / "ours")
    for model in (good, tmp_path / "ours", tmp_path / "out"):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
        assert main(["translate", str(model), "--device", "cpu"]) == 0
        said.append(capfd.readouterr().out)
    assert said[0] == said[1] == said[2] and said[0].count("\n") == 4


def test_an_imported_model_is_searched_as_its_authors_do_until_an_experiment_scored_it(
    good: Path, tmp_path: Path
) -> None:
    import_any(str(good), tmp_path / "ours")
    device = torch.device("cpu")
    how: dict[str, Any] = {"beam": 4, "length_penalty": 2.0, "batch_tokens": 100, "max_subwords": 50}
    known = open_translator(saved_bundle(tmp_path / "ours"), device, **how)
    assert (known.length_offset, known.early_stopping) == (0, False)
    ids = list(range(UNK + 1, 14))
    subwords = torch.tensor([[*ids, EOS]])
    search: dict[str, Any] = {"beam": 4, "length_penalty": 2.0, "length_offset": 0}
    for stopping in (False, True):
        found = beam_search(known.model, subwords, torch.ones_like(subwords).bool(), early_stopping=stopping, **search)
        assert replace(known, early_stopping=stopping).translate([[ids]]) == known.target.decode(found)
    score = {"beam": 4, "length_penalty": 0.6, "bleu": 1.0, "split": "test", "sentences": 1, "signature": "x"}
    write_json(tmp_path / "ours/bleu.json", score)
    known = open_translator(saved_bundle(tmp_path / "ours"), device, **how)
    assert (known.length_offset, known.early_stopping) == (LENGTH_OFFSET, NEVER)


def test_a_length_penalty_of_zero_is_no_missing_one(good: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good, tmp_path / good.name)
    changed(folder / "generation_config.json", length_penalty=0.0, num_beams=None)
    import_any(str(folder), tmp_path / "ours")
    assert saved_bundle(tmp_path / "ours").search == (1, 0.0)


def test_a_language_is_named_by_a_prefix_that_every_source_sentence_begins_with(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    tokeniser = save_tokeniser(folder, languages=[">>deu<<", ">>nld<<"])
    save_marian(folder)
    with pytest.raises(UserError, match="into several languages: give one as the prefix, such as >>deu<<, >>nld<<"):
        import_any(str(folder), tmp_path / "none")
    with pytest.raises(UserError, match="has no prefix >>fra<<: choose one of >>deu<<, >>nld<<"):
        import_any(str(folder), tmp_path / "none", ">>fra<<")
    import_any(str(folder), tmp_path / "ours", ">>nld<<")
    source, target = (Vocabulary(tmp_path / f"ours/{side}.model") for side in ("source", "target"))
    ours, _ = numberings_of(read_marian(OriginalFiles(folder)))
    for text in SENTENCES["source"]:
        (found,) = source.encode([text])
        assert [*(ours.rows[i] for i in found), ours.rows[EOS]] == tokeniser(f">>nld<<{text}")["input_ids"]
        ids, spans = source.spans(text)
        assert ids == found and spans[0] == (0, 0) and len(spans) == len(ids)
        assert ours.rows[found[0]] not in [ours.rows[i] for i in target.encode([text])[0]]


def test_text_comes_back_from_subwords_as_the_tokeniser_gives_it_back(good: Path, tmp_path: Path) -> None:
    tokeniser = transformers.MarianTokenizer.from_pretrained(good)
    import_any(str(good), tmp_path / "ours")
    target, (_, ours) = Vocabulary(tmp_path / "ours/target.model"), numberings_of(read_marian(OriginalFiles(good)))
    draw = np.random.default_rng(3)
    sentences = [draw.integers(UNK + 1, len(target), 9).tolist() for _ in range(50)]
    theirs = [tokeniser.decode([ours.rows[i] for i in ids], use_source_tokenizer=False) for ids in sentences]
    assert target.decode(sentences) == theirs


def test_a_name_on_the_hub_is_fetched_file_by_file_and_without_a_network_told_what_to_fetch_by_hand(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    files = shutil.copytree(good, tmp_path / "site/Some-Lab/opus-mt-en-de/resolve/main")
    (files / "tokenizer_config.json").unlink()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    name = Path("Some-Lab/opus-mt-en-de")
    with serving_hub(tmp_path / "site") as hub:
        folder = fetched(name.as_posix(), hub=hub)
        import_any(str(name), tmp_path / "ours")
        (files / "source.spm").unlink()
        assert fetched(name.as_posix(), hub=hub) == folder == tmp_path / "cache/heads/hub" / name
        assert format_of(name.as_posix())[1] == folder  # as planning finds it
        assert main(["import", name.as_posix()]) == 0
        assert capsys.readouterr().out.strip() == str(folder)
        shutil.rmtree(tmp_path / "cache")
        with pytest.raises(
            UserError, match=r"fetch config\.json, vocab\.json.*the hub has no file tokenizer\.json of it"
        ):
            fetched(name.as_posix(), hub=hub)
        shutil.copyfile(good / "source.spm", files / "source.spm")
        shutil.rmtree(tmp_path / "cache")
        (files / "model.safetensors").rename(files / "pytorch_model.bin")
        with pytest.raises(
            UserError, match=r"^Some-Lab/opus-mt-en-de has no model\.safetensors on the hub.* save_pretr"
        ):
            fetched(name.as_posix(), hub=hub)
    assert not folder.parent.exists()
    assert "# imported/Some-Lab/opus-mt-en-de" in (tmp_path / "ours/README.md").read_text(encoding="utf-8")
    monkeypatch.setattr("time.sleep", lambda _: None)
    said = (
        r"no folder: where there is a network run .*, or fetch config\.json, vocab\.json, source\.spm, target\.spm.*"
        r"from https://huggingface\.co/Some-Lab"
    )
    with pytest.raises(UserError, match=said):
        fetched(name.as_posix(), hub=hub)
    assert fetched(str(good)) == good
