"""A BERT without a task gives the same vectors as in transformers, and is exported with its heads cut out."""

import re
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from numpy.typing import NDArray

from bert_models import ALONE, EXAMPLES, encoded, save_bert, save_tokeniser, transformers, vectors_of
from heads.__main__ import main
from heads.base.files import UserError
from heads.interop.bundle import saved_bundle
from heads.interop.export_encoder import export_encoder
from heads.interop.opening import import_any
from heads.model.encoder_only import SentenceEncoder
from heads.model.folder import load_classifier, load_encoder_only, load_folder, save_folder
from heads.model.head_removal import prune
from heads.model.shape import facts_of, shape_of

OPEN = {"enc_self": [[True, False], [False, True], [False, False]]}


@torch.no_grad()
def theirs(model: Any, tokeniser: Any) -> NDArray[np.float32]:
    """The mean of the last states over real subwords, at unit length, one sentence after another."""
    found = []
    for line in ALONE:
        states = model(**encoded(tokeniser, (line,))).last_hidden_state[0].numpy()
        mean = states.mean(0)
        found.append(mean / np.sqrt((mean**2).sum()))
    return np.array(found, np.float32)


@pytest.fixture
def imported(tmp_path: Path) -> tuple[Path, Any, Any]:
    """A folder of ours, and the transformers tokeniser and model that it was imported from."""
    tokeniser, model = save_tokeniser(tmp_path / "theirs"), save_bert(tmp_path / "theirs", "BertModel")
    assert import_any(str(tmp_path / "theirs"), tmp_path / "ours").note == ""
    return tmp_path / "ours", tokeniser, model


def pruned(folder: Path) -> Path:
    model = prune(load_encoder_only(folder), OPEN)
    save_folder(model, folder, facts_of(folder), facts_of(folder)["provenance"])
    return folder


def test_vectors_are_those_of_transformers_whatever_is_padded(imported: tuple[Path, Any, Any]) -> None:
    folder, tokeniser, model = imported
    shape = shape_of(folder)
    assert (shape.embeds, shape.classifies, shape.encoder_only) == (True, False, True)
    expected = theirs(model, tokeniser)
    np.testing.assert_allclose(vectors_of(folder), expected, rtol=0, atol=1e-6)
    assert np.abs(expected[0] - expected[1]).max() > 0.01


def test_a_classifier_embeds_nothing_and_a_sentence_encoder_tells_no_labels(imported: tuple[Path, Any, Any]) -> None:
    folder = imported[0]
    assert isinstance(load_encoder_only(folder), SentenceEncoder)
    with pytest.raises(UserError, match="holds a model that embeds sentences and predicts no labels"):
        load_classifier(folder)
    with pytest.raises(UserError, match="holds a model that embeds sentences and does not translate"):
        load_folder(folder)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_automodel_reads_it_with_zeros_for_heads_that_were_cut_out(
    imported: tuple[Path, Any, Any], tmp_path: Path
) -> None:
    whole = vectors_of(imported[0])
    folder = pruned(imported[0])
    difference = export_encoder(saved_bundle(folder), tmp_path / "back", "huggingface", examples=ALONE)
    assert difference is not None and difference < 1e-6
    back = transformers.AutoModel.from_pretrained(tmp_path / "back", add_pooling_layer=False).eval()
    assert type(back).__name__ == "BertModel" and bool((back.encoder.layer[2].attention.self.query.weight == 0).all())
    found = theirs(back, transformers.AutoTokenizer.from_pretrained(tmp_path / "back"))
    np.testing.assert_allclose(found, vectors_of(folder), rtol=0, atol=1e-6)
    assert np.abs(found - whole).max() > 0.001


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_the_graph_has_no_matrices_of_heads_that_were_cut_out_and_its_readme_runs(
    imported: tuple[Path, Any, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["export", str(imported[0]), "--format", "onnx", "-o", str(tmp_path / "whole")])
    folder, out = pruned(imported[0]), tmp_path / "small"
    main(["export", str(folder), "--format", "onnx", "-o", str(out)])
    assert "per component of a vector of length 1; its README.md says" in capsys.readouterr().err
    # Four of six heads, each with four maps of 12 x 6 numbers and biases of 6 for three of them.
    weights = [sum(np.prod(one.dims) for one in onnx.load(tmp_path / name / "encoder.onnx").graph.initializer) for name
               in ("whole", "small")]  # fmt: skip
    assert weights[0] - weights[1] == pytest.approx(4 * (4 * 12 * 6 + 3 * 6), abs=8)
    (code,) = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "use.py").write_text(code.replace('["A sentence.", "One that is longer."]', repr(ALONE)))
    monkeypatch.chdir(out)
    used = runpy.run_path(str(tmp_path / "use.py"))
    found = used["session"].run(None, {"source": used["ids"], "source_mask": used["ids"] > 0})[0]
    np.testing.assert_allclose(found, vectors_of(folder), rtol=0, atol=1e-6)


@pytest.mark.slow
def test_the_graph_of_a_classifier_tells_its_logits(tmp_path: Path) -> None:
    save_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    difference = export_encoder(saved_bundle(tmp_path / "ours"), tmp_path / "out", "onnx", examples=EXAMPLES)
    assert difference is not None and difference < 1e-5
    assert [one.name for one in onnx.load(tmp_path / "out/encoder.onnx").graph.output] == ["logits"]
