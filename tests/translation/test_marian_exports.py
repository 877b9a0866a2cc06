"""Imported models in other tools' formats, and ours as transformers' Marian: the same probabilities everywhere."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from heads.__main__ import main
from heads.base.files import UserError, read_json
from heads.base.provenance import provenance
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, EOS, UNK
from heads.translation.agreement import log_probabilities, pairs_of
from heads.translation.beam_search import NEVER
from heads.translation.export import export
from heads.translation.model_folder import load_vocabularies, offset_and_stopping_of, search_of
from heads.translation.opening import import_model
from heads.translation.to_ctranslate2 import agreement_of_ctranslate2, write_ctranslate2
from heads.translation.to_huggingface import write_huggingface
from heads.translation.to_onnx import agreement_of_onnx, write_onnx
from marian_models import CUT, SENTENCES, save_marian, save_tokeniser, transformers
from model_folders import OPEN, SOURCE, Experiment, found_by, post_norm


@pytest.fixture(scope="module", params=[{}, {"activation_function": "gelu", "scale_embedding": False}], ids=str)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an imported model whose heads are cut out unevenly."""
    folder = tmp_path_factory.mktemp("imported")
    save_tokeniser(folder / "theirs", languages=[">>deu<<"])
    save_marian(folder / "theirs", **request.param)
    import_model(str(folder / "theirs"), folder / "ours", ">>deu<<")
    model = prune(load_folder(folder / "ours"), CUT)
    save_folder(model, folder / "ours", {"experiment": "imported", "run": "cut"}, provenance())
    return folder / "ours"


@pytest.fixture(scope="module")
def graphs(imported: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That model's folder for ONNX, with the script beside the graphs."""
    out = tmp_path_factory.mktemp("graphs") / "out"
    export(imported, out, "onnx")
    return out


def test_other_formats_give_every_subword_our_probability(imported: Path, graphs: Path, tmp_path: Path) -> None:
    model = load_folder(imported)
    known = load_vocabularies(imported, model)
    pairs = [*pairs_of(model, known[0], ()), *pairs_of(model, known[0], SENTENCES["source"])]
    write_ctranslate2(model, known, tmp_path)
    assert agreement_of_ctranslate2(model, known, tmp_path, pairs) < 1e-5
    assert agreement_of_onnx(model, graphs, pairs) < 2e-5


def test_the_script_beside_the_graphs_cuts_begins_and_searches_as_the_imported_model_does(
    imported: Path, graphs: Path
) -> None:
    """By the command on its page, with its authors' search settings."""
    page = (graphs / "README.md").read_text(encoding="utf-8")
    _, script, *options = next(line for line in page.splitlines() if "translate.py --" in line).split(" <")[0].split()
    assert options[-4:-1] == ["--length-offset", "0", "--early-stopping"], "transformers divides by the length itself"
    model = load_folder(imported)
    source, target = load_vocabularies(imported, model)
    (beam, alpha), (offset, ends) = search_of(imported), offset_and_stopping_of(imported)
    assert offset == 0
    assert options[-1] == str(ends).lower()
    told = subprocess.run(
        [sys.executable, "-I", graphs / script, *options],
        input="".join(f"{line}\n" for line in SENTENCES["source"]),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    search = {"length_penalty": alpha, "length_offset": offset, "early_stopping": ends}
    found = found_by(model, source.encode(SENTENCES["source"]), beam=beam, **search)
    assert told.stdout.splitlines() == target.decode(found)


def test_the_script_beside_the_graphs_ends_as_early_as_the_model_does(tmp_path: Path) -> None:
    from heads.translation.translate_onnx import Model

    save_tokeniser(tmp_path / "theirs")
    save_marian(tmp_path / "theirs", biases=0.4)
    import_model(str(tmp_path / "theirs"), tmp_path / "ours")
    model = load_folder(tmp_path / "ours")
    write_onnx(model, tmp_path)
    graphs, draw = Model(tmp_path), np.random.default_rng(5)
    sentences = [draw.integers(UNK, model.shape.source_subwords, length).tolist() for length in (3, 5, 8, 2, 6, 4)]
    found = {}
    for word, ends in (("never", NEVER), ("false", False), ("true", True)):
        found[word] = [graphs.translate([*sentence, EOS], 4, 2.0, 0, word) for sentence in sentences]
        assert found[word] == found_by(
            model, sentences, beam=4, length_penalty=2.0, length_offset=0, early_stopping=ends
        )
    assert len({str(each) for each in found.values()}) == 3


MADE: dict[str, Callable[[], Transformer]] = {
    "trained here": lambda: post_norm(width=6),
    "cut unevenly": lambda: prune(post_norm(width=6), OPEN),
    "tied": lambda: post_norm(width=6, tied_projection=True, activation="silu"),
    "with biases": lambda: prune(post_norm(width=6, attention_biases=True, positions="halves"), OPEN),
}


@pytest.mark.parametrize("name", MADE)
@torch.inference_mode()
def test_transformers_gives_every_subword_our_probability_and_finds_our_translations(
    name: str, experiment: Experiment, tmp_path: Path
) -> None:
    model = MADE[name]()
    known = experiment.vocabularies()
    write_huggingface(model, known, (1, 1.0), tmp_path)
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    tokeniser = transformers.MarianTokenizer.from_pretrained(tmp_path)
    for source, target in pairs_of(model, known[0], SOURCE):
        logits = theirs(
            input_ids=torch.tensor([[*source, EOS]]), decoder_input_ids=torch.tensor([[BOS, *target]])
        ).logits
        found = logits[0].log_softmax(-1).gather(1, torch.tensor([*target, EOS])[:, None])[:, 0]
        torch.testing.assert_close(found, log_probabilities(model, (source, target)), rtol=0, atol=2e-5)
    lengths = set()
    for line in SOURCE:
        batch = tokeniser([line], return_tensors="pt")
        (ids,) = known[0].encode([line])
        assert batch["input_ids"][0].tolist() == [*ids, EOS]
        (expected,) = found_by(model, [ids], beam=1)
        found = theirs.generate(**batch, max_new_tokens=2 * len(ids) + 12)[0].tolist()
        assert found[1 : found.index(EOS)] == expected
        lengths.add(len(expected))
        assert (
            tokeniser.decode(found, skip_special_tokens=True, use_source_tokenizer=False)
            == known[1].decode([expected])[0]
        )
    assert len(lengths) > 1


@torch.inference_mode()
def test_an_imported_model_goes_back_to_transformers_with_its_tokeniser(imported: Path, tmp_path: Path) -> None:
    assert main(["export", str(imported), "--format", "huggingface", "-o", str(tmp_path / "back")]) == 0
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path / "back").eval()
    tokeniser = transformers.MarianTokenizer.from_pretrained(tmp_path / "back")
    model = load_folder(imported)
    source, _ = load_vocabularies(imported, model)
    for line, ids in zip(SENTENCES["source"], source.encode(SENTENCES["source"]), strict=True):
        batch = tokeniser([f">>deu<<{line}"], return_tensors="pt")
        assert batch["input_ids"][0].tolist() == [*ids, EOS]
        how = {"max_new_tokens": 2 * len(ids) + 12, "num_beams": 1}
        found = theirs.generate(**batch, **how)[0].tolist()
        assert found[1 : found.index(EOS)] == found_by(model, [ids], beam=1)[0]
    config, generation = (
        json.loads((tmp_path / f"back/{name}.json").read_text()) for name in ("config", "generation_config")
    )
    assert config["share_encoder_decoder_embeddings"] and config["tie_word_embeddings"]
    assert generation["num_beams"] == 4 and [UNK] in generation["bad_words_ids"]
    assert read_json(tmp_path / "back/pretrained/about.json")["prefix"] == ">>deu<<"
    import_model(str(tmp_path / "back"), tmp_path / "again", ">>deu<<")
    again = load_folder(tmp_path / "again")
    for pair in pairs_of(model, source, ()):
        torch.testing.assert_close(log_probabilities(again, pair), log_probabilities(model, pair), rtol=0, atol=2e-5)


def test_a_model_that_normalises_first_is_told_where_else_to_go(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="normalises before each sub-layer, but Marian after it: export it with --format"
    ):
        export(experiment.pruned, tmp_path / "out", "huggingface")
    assert not [*tmp_path.iterdir()]
    narrow = replace(post_norm(width=6).shape, width=8)
    known = experiment.vocabularies()
    for shape, sentence in (
        (narrow, "heads do not add up to the model's width"),
        (replace(post_norm(width=6).shape, norm_epsilon=1e-6), "layer norms have epsilon 1e-06"),
    ):
        with pytest.raises(UserError, match=sentence):
            write_huggingface(Transformer(shape), known, (4, 0.6), tmp_path)
    assert not [*tmp_path.iterdir()]
