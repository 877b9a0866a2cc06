"""The folder of a model: its weights alone restore it, and errors name a folder that holds something else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from heads.base.files import UserError, read_json, write_json
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.folder import load_folder, load_weights, save_folder
from heads.model.shape import facts_of, shape_of
from heads.model.transformer import Transformer

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

Build = Callable[..., Transformer]
FEW = {"enc_self": ((0, 2), ()), "dec_self": ((1,), (0, 1, 2)), "dec_enc": ((0, 1), (2,))}


def test_the_weights_alone_make_the_model_again(tiny_model: Build, tmp_path: Path) -> None:
    model = tiny_model(live_heads=FEW, pre_norm=False).float()
    save_folder(model, tmp_path / "whole", {"updates": 3}, {"commit": "c"})
    (tmp_path / "bare").mkdir()
    shutil.copy(tmp_path / "whole/model.safetensors", tmp_path / "bare")
    for name in ("whole", "bare"):
        found = load_folder(tmp_path / name)
        assert found.shape == model.shape and not found.training
        assert all(torch.equal(found.state_dict()[key], value) for key, value in model.state_dict().items())


def test_what_is_told_of_a_model_is_its_own_and_not_of_the_one_that_it_was_made_from(
    tiny_model: Build, tmp_path: Path
) -> None:
    model = tiny_model(live_heads=FEW)
    save_folder(
        model, tmp_path, {"shape": {"width": 9}, "provenance": {"commit": "old"}, "updates": 3}, {"commit": "n"}
    )
    facts = facts_of(tmp_path)
    assert (facts["updates"], facts["provenance"]) == (3, {"commit": "n"})
    assert shape_of(tmp_path) == model.shape
    notes = load_tensors(tmp_path / "model.safetensors")[1]
    assert notes.keys() == {"shape", "updates"}
    assert read_json(tmp_path / "model.json") == {**notes, "provenance": {"commit": "n"}}


def test_a_folder_that_calls_subwords_pieces_is_read(tiny_model: Build, tmp_path: Path) -> None:
    model = tiny_model(live_heads=FEW).float()
    old = {name.replace("subword", "piece"): value for name, value in model.state_dict().items()}
    shape = {name.replace("subword", "piece"): value for name, value in model.shape.as_dict().items()}
    assert {"source_embedding.pieces.weight"} < old.keys() and {"source_pieces", "target_pieces"} < shape.keys()
    save_tensors(tmp_path / "model.safetensors", old, {"shape": shape})
    write_json(tmp_path / "model.json", {"shape": shape})
    found = load_folder(tmp_path)
    assert found.shape == shape_of(tmp_path) == model.shape
    assert all(torch.equal(found.state_dict()[key], value) for key, value in model.state_dict().items())


@pytest.mark.parametrize("shape", [None, {}, {"width": 8}, "none", [1]])
def test_a_folder_that_tells_no_shape_is_named(tiny_model: Build, tmp_path: Path, shape: object) -> None:
    save_tensors(tmp_path / "model.safetensors", tiny_model().state_dict(), {"shape": shape} if shape else {})
    write_json(tmp_path / "model.json", {"shape": shape} if shape else {})
    with pytest.raises(UserError, match=r"model\.safetensors does not hold a model: delete it and run its stage again"):
        load_folder(tmp_path)
    with pytest.raises(UserError, match=r"model\.json does not hold a model: delete it and run its stage again"):
        shape_of(tmp_path)


def test_weights_of_another_shape_are_named(tiny_model: Build, tmp_path: Path) -> None:
    model, other = tiny_model(), tiny_model(live_heads=FEW)
    save_tensors(tmp_path / "kept.safetensors", other.state_dict(), {})
    with pytest.raises(UserError, match=r"kept\.safetensors does not fit the shape of its model: delete it"):
        load_weights(model, tmp_path / "kept.safetensors")
    save_tensors(tmp_path / "model.safetensors", other.state_dict(), {"shape": model.shape.as_dict()})
    with pytest.raises(UserError, match=r"model\.safetensors does not fit the shape of its model: delete it"):
        load_folder(tmp_path)
