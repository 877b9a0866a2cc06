"""The model that CTranslate2 is timed with is ours: both write the same."""

from pathlib import Path

import pytest

ctranslate2 = pytest.importorskip("ctranslate2")

import peers_decoding  # noqa: E402

import heads.translation.beam_search  # noqa: E402
from heads.text.special_ids import EOS  # noqa: E402


def test_both_are_timed_on_the_same_translations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps = peers_decoding.STEPS
    monkeypatch.setattr(heads.translation.beam_search, "length_limit", lambda _: steps + 2)
    model, batches = peers_decoding.random_model(), [[[5, 77, 3000, EOS], [8, 9, EOS]], [[2500, EOS]]]
    peers_decoding.save(model, tmp_path)
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32", **peers_decoding.ONE_THREAD)
    found = peers_decoding.ours(model, batches, steps)
    assert found == peers_decoding.theirs(translator, batches)
    assert [len(ids) for ids in found] == [steps] * 3
    assert [len(ids) for ids in peers_decoding.ours_in_bf16(model, batches)] == [steps - 1] * 3
