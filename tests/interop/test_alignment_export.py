"""Alignment heads are exported to CTranslate2: in config.json, and as the attention that it returns."""

from pathlib import Path

import ctranslate2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heads.__main__ import main
from heads.base.columns import ALIGNMENT_COLUMNS
from heads.base.files import UserError, read_json, write_tsv
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.interop.to_ctranslate2 import aligning_heads
from heads.model.attention import Trace
from heads.model.folder import load_folder
from heads.model.transformer import Transformer
from heads.text.batches import make_batch
from model_folders import OPEN, SOURCE, TARGET, Experiment

LIVE = [(layer, head) for layer, row in enumerate(OPEN["dec_enc"]) for head, is_open in enumerate(row) if is_open]
assert LIVE == [(0, 1), (0, 2), (1, 0), (1, 1), (1, 2)]


def table(path: Path, rates: dict[tuple[int, int], float], below: float = 0.5) -> Path:
    """Write rows in which heads with an AER below `below` align; for the step "input" it is the other way round."""
    rows = []
    for name in ("input", "output"):
        for (layer, head), rate in rates.items():
            aer = rate if name == "output" else 1 - rate
            known = {"step": name, "layer": layer, "head": head, "aer": aer, "aligns": int(aer < below)}
            rows.append(dict.fromkeys(ALIGNMENT_COLUMNS, 0) | known)
    write_tsv(path, rows, ALIGNMENT_COLUMNS)
    return path


def ours(model: Transformer, experiment: Experiment) -> dict[tuple[int, int], NDArray[np.float32]]:
    """Attention of every live head, by layer and original number, with the reference translation as input."""
    ids = [
        np.array(v.encode([text])[0], np.int32)
        for v, text in zip(experiment.vocabularies(), (SOURCE[1], TARGET[1]), strict=True)
    ]
    batch, trace = make_batch([ids[0]], [ids[1]]), Trace()
    with torch.no_grad():
        model(batch.source, batch.source_mask, batch.target_input, trace=trace)
    return {
        (layer, head): trace[f"dec_enc.{layer}.weights"][0, place, : len(ids[1]), : len(ids[0])].numpy()
        for layer, heads in enumerate(model.shape.live_heads["dec_enc"]) for place, head in enumerate(heads)
    }  # fmt: skip


def theirs(folder: Path, experiment: Experiment) -> NDArray[np.float64]:
    """The attention that CTranslate2 returns for the same subwords."""
    source, target = experiment.vocabularies()
    subwords = [v.subwords(v.encode([text])[0]) for v, text in ((source, SOURCE[1]), (target, TARGET[1]))]
    translator = ctranslate2.Translator(str(folder), compute_type="float32", intra_threads=1)
    found = translator.translate_batch([subwords[0]], target_prefix=[subwords[1]], beam_size=1, return_attention=True,
                                       max_decoding_length=60)  # fmt: skip
    return np.array(found[0].attention[0])[: len(subwords[1])]


RATES = {(0, 1): 0.3, (0, 2): 0.9, (1, 0): 0.8, (1, 1): 0.4, (1, 2): 0.1}


def test_the_config_lists_heads_that_align_by_their_places_and_the_attention_is_the_mean_over_the_best_layers(
    experiment: Experiment, tmp_path: Path
) -> None:
    """In the second layer heads 2 and 1 align, best first, and head 0 moves behind them; in the first, head 1."""
    rows = table(tmp_path / "rows.tsv", RATES)
    told = [str(experiment.pruned), "--format", "ctranslate2", "-o", str(tmp_path / "out")]
    assert main(["export", *told, "--alignment", str(rows)]) == 0
    assert read_json(tmp_path / "out/config.json")["alignment_heads"] == [[1, 0], [0, 0], [1, 1]]
    known = ours(load_folder(experiment.pruned), experiment)
    expected = (known[1, 2] + known[1, 1]) / 2
    found = theirs(tmp_path / "out", experiment)
    np.testing.assert_allclose(found[:, : expected.shape[1]], expected, atol=1e-5)
    assert max(np.abs(expected - other).max() for other in known.values()) > 0.1
    assert "return_attention" in (tmp_path / "out/README.md").read_text(encoding="utf-8")


def test_where_no_head_aligns_the_one_that_errs_least_is_taken(experiment: Experiment, tmp_path: Path) -> None:
    rows = table(tmp_path / "rows.tsv", RATES, below=0.05)
    export(saved_bundle(experiment.pruned), tmp_path / "out", "ctranslate2", alignment=rows)
    assert read_json(tmp_path / "out/config.json")["alignment_heads"] == [[1, 0]]
    expected = ours(load_folder(experiment.pruned), experiment)[1, 2]
    np.testing.assert_allclose(theirs(tmp_path / "out", experiment)[:, : expected.shape[1]], expected, atol=1e-5)


def test_the_rows_in_the_folder_of_the_run_are_taken_and_without_any_nothing_is_told(
    experiment: Experiment, tmp_path: Path
) -> None:
    rows = experiment.pruned / "alignment_heads.tsv"
    export(saved_bundle(experiment.pruned), tmp_path / "without", "ctranslate2")
    assert "alignment_heads" not in read_json(tmp_path / "without/config.json")
    assert "alignment_heads" not in (tmp_path / "without/README.md").read_text(encoding="utf-8")
    table(rows, {**RATES, (1, 2): 0.9})
    try:
        export(saved_bundle(experiment.pruned), tmp_path / "with", "ctranslate2")
    finally:
        rows.unlink()
    assert read_json(tmp_path / "with/config.json")["alignment_heads"] == [[0, 0], [1, 1]]
    expected = ours(load_folder(experiment.pruned), experiment)[0, 1]
    np.testing.assert_allclose(theirs(tmp_path / "with", experiment)[:, : expected.shape[1]], expected, atol=1e-5)


def test_rows_of_another_model_or_no_rows_at_all_are_refused(experiment: Experiment, tmp_path: Path) -> None:
    shape = load_folder(experiment.pruned).shape
    for other in ({(0, 1): 0.5}, {**RATES, (0, 0): 0.2}):
        with pytest.raises(
            UserError, match=r"rows\.tsv does not list exactly the live cross-attention heads of this model"
        ):
            aligning_heads(table(tmp_path / "rows.tsv", other), shape)
    write_tsv(tmp_path / "rows.tsv", [{"layer": 1}], ("layer",))
    with pytest.raises(UserError, match=r"rows\.tsv is not a table of alignment heads"):
        aligning_heads(tmp_path / "rows.tsv", shape)
    with pytest.raises(UserError, match=r"nothing\.tsv is missing"):
        export(saved_bundle(experiment.pruned), tmp_path / "out", "ctranslate2", alignment=tmp_path / "nothing.tsv")
    assert not (tmp_path / "out").exists()
