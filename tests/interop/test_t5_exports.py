"""A T5 that was pruned unevenly is the same in transformers' format, in CTranslate2's and in ONNX."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import torch

from heads.base.files import UserError
from heads.base.provenance import made_by
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.export import export
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.interop.t5.importing import model_of_t5
from heads.interop.t5.reading import read_t5
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune
from heads.text.encoding import vocabulary_of
from heads.translation.stream import translated
from marian_models import transformers
from slow_ones import slow_but
from t5_models import KINDS, PREFIX, TEXTS, save_t5

OPEN: Mapping[str, Any] = {
    "enc_self": [[True, False, False], [False, False, True]],
    "dec_self": [[False] * 3, [True, True, False], [False, True, True]],
    "dec_enc": [[False, True, True], [True] * 3, [False] * 3],
    "enc_ffn": [[number % 3 > 0 for number in range(14)], [True] * 14],
    "dec_ffn": [[True] * 14, [number % 2 > 0 for number in range(14)], [number > 3 for number in range(14)]],
}
NAMES = ("T5", "T5 1.1, wide heads", "mT5")


@pytest.fixture(scope="module", params=slow_but(["T5 1.1, wide heads"], ["T5", "T5 1.1, wide heads", "UMT5"]))
def pruned(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of ours with such a model, whose sources begin with a prefix of several subwords."""
    place = tmp_path_factory.mktemp("pruned")
    save_t5(place / "theirs", request.param, num_decoder_layers=3, ending=2.0)
    import_any(str(place / "theirs"), place / "ours", PREFIX)
    smaller = prune(load_folder(place / "ours"), OPEN)
    facts = {"experiment": "imported", "run": "theirs", "updates": 0, "total_updates": 0}
    save_folder(smaller, place / "ours", facts, made_by())
    return place / "ours"


@pytest.mark.parametrize("form", slow_but(("huggingface", "ctranslate2"), ("huggingface", "ctranslate2", "onnx")))
def test_log_probabilities_are_those_of_our_model(pruned: Path, form: str, tmp_path: Path) -> None:
    difference = export(saved_bundle(pruned), tmp_path / "out", form, sentences=[*TEXTS, " ".join(TEXTS * 3)])
    assert difference is not None and difference < 1e-4
    page = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert "begins with `translate English to German: `" in page
    subwords = vocabulary_of(pruned / "source.model").subwords(vocabulary_of(pruned / "source.model").prefix)
    if form == "ctranslate2":
        assert f"{json.dumps(subwords, ensure_ascii=False)} + " in page and len(subwords) > 5
    elif form == "huggingface":
        assert f'tokenizer(["{PREFIX}A sentence.", "{PREFIX}Another one."]' in page


@torch.inference_mode()
def test_transformers_reads_what_was_written_and_writes_what_we_write(pruned: Path, tmp_path: Path) -> None:
    export(saved_bundle(pruned), tmp_path / "out", "huggingface", sentences=TEXTS)
    theirs = transformers.AutoModelForSeq2SeqLM.from_pretrained(tmp_path / "out").eval()
    tokeniser = transformers.T5Tokenizer.from_pretrained(tmp_path / "out")
    known = open_translator(
        saved_bundle(pruned), torch.device("cpu"), beam=1, length_penalty=0.0, batch_tokens=100, max_subwords=200
    )
    ours = next(iter(translated(TEXTS, known, block_lines=50, report=print)))
    for line, text in zip(ours, TEXTS, strict=True):
        told = tokeniser(f"{PREFIX}{text}", return_tensors="pt")
        most = 2 * told["input_ids"].shape[1] + 9
        [written] = theirs.generate(**told, num_beams=1, max_new_tokens=most, max_length=None, use_cache=False)
        assert line == " ".join(tokeniser.decode(written, skip_special_tokens=True).split())
    assert len({*ours}) > 2
    # Once more from there, without what was removed.
    again = model_of_t5(read_t5(OriginalFiles(tmp_path / "out")))
    assert again.shape.feedforward == 14 and again.shape.live_heads["dec_self"] == ((0, 1, 2),) * 3


@pytest.mark.parametrize("name", slow_but(["T5"], NAMES))
def test_an_export_of_the_whole_model_is_the_folder_that_it_came_from(tmp_path: Path, name: str) -> None:
    save_t5(tmp_path / "theirs", name)
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    export(saved_bundle(tmp_path / "ours"), tmp_path / "out", "huggingface", sentences=TEXTS)
    before, after = (read_t5(OriginalFiles(tmp_path / place)).tensors for place in ("theirs", "out"))
    assert {*before} == {*after}
    for key, value in before.items():
        torch.testing.assert_close(after[key], value, rtol=0 if "final" not in key else 1e-6, atol=0)
    assert KINDS[name][0].from_pretrained(tmp_path / "out")


@pytest.mark.slow
def test_a_whole_model_is_written_to_onnx_too(tmp_path: Path) -> None:
    save_t5(tmp_path / "theirs", "T5", num_layers=1, num_decoder_layers=1, d_kv=4, ending=2.0)
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    difference = export(saved_bundle(tmp_path / "ours"), tmp_path / "out", "onnx", sentences=TEXTS)
    assert difference is not None and difference < 1e-4


def test_marians_own_format_is_refused(pruned: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError):
        export(saved_bundle(pruned), tmp_path / "out", "npz", sentences=TEXTS)
    assert not (tmp_path / "out").exists()
