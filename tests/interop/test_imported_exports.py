"""Imported, pruned models in other tools' formats, and ours as transformers' Marian: the same probabilities."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from fairseq_models import (
    CLASSES,
    LANGUAGES,
    TEXTS,
    in_their_ids,
    numberings_in,
    rewrite_by_transformers,
    save_folder,
)
from heads.__main__ import main
from heads.base.files import UserError, read_json
from heads.base.provenance import provenance
from heads.interop.agreement import log_probabilities, pairs_of
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.interop.marian.exporting import write_huggingface
from heads.interop.opening import import_any
from heads.interop.to_ctranslate2 import agreement_of_ctranslate2
from heads.interop.to_onnx import agreement_of_onnx, write_onnx
from heads.model.folder import load_folder
from heads.model.folder import save_folder as save_ours
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, UNK
from heads.translation.beam_search import NEVER, length_limit
from marian_models import CUT, save_marian, save_tokeniser, transformers
from model_folders import OPEN, SOURCE, Experiment, found_by, output_of, post_norm
from slow_ones import slow_but

KINDS: dict[str, dict[str, Any]] = {
    "marian": {},
    "marian, gelu": {"activation_function": "gelu", "scale_embedding": False},
    "m2m100": {"ending": 1.5},
    "nllb": {"tie_word_embeddings": False, "ending": 1.5},
    "bart": {"ending": 5},
    "mbart": {"scale_embedding": True, "ending": 1.2},
    "mbart25": {"scale_embedding": True, "ending": 0.5},
}
DESCRIBED = ("nllb", "mbart")
"""Those whose tokeniser is a tokenizer.json alone."""
PREFIX = ">>deu<<"
"""What the Marians' source sentences begin with."""


@pytest.fixture(scope="module", params=slow_but(("marian",), KINDS))
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The family, and the folder of an imported model that was pruned unevenly and, but for Marian, fine-tuned."""
    folder, family = tmp_path_factory.mktemp("imported"), request.param.partition(",")[0]
    if family == "marian":
        save_tokeniser(folder / "theirs", languages=[PREFIX])
        save_marian(folder / "theirs", **KINDS[request.param])
    else:
        save_folder(folder / "theirs", family, **KINDS[family])
        if family in DESCRIBED:
            rewrite_by_transformers(folder / "theirs", family)
    import_again(family, folder / "theirs", folder / "ours")
    whole = load_folder(folder / "ours")
    layers = {"enc_ffn": whole.shape.encoder_layers, "dec_ffn": whole.shape.decoder_layers}
    places = range(whole.shape.feedforward)
    units = {stack: [[unit % (layer + 2) > 0 for unit in places] for layer in range(n)] for stack, n in layers.items()}
    model = prune(whole, {**CUT, **units})
    draw = torch.Generator().manual_seed(5)
    for value in model.parameters() if family != "marian" else ():
        if value.requires_grad:
            value.data += 0.1 * torch.randn(value.shape, generator=draw)
    save_ours(model, folder / "ours", {"experiment": "imported", "run": "cut"}, provenance())
    return family, folder / "ours"


def import_again(family: str, theirs: Path, out: Path) -> None:
    import_any(str(theirs), out, PREFIX if family == "marian" else "", languages=LANGUAGES[family])


def searched(model: Transformer, ids: list[int], **search: Any) -> list[int]:
    """Our translation, without a first subword that is forced."""
    [found] = found_by(model, [ids], length_offset=0, **search)
    first = model.shape.first_subword
    assert not first or found[0] == first
    return found[bool(first) :]


@torch.inference_mode()
def test_transformers_reads_it_again_with_our_probabilities_and_finds_our_translations(
    imported: tuple[str, Path], tmp_path: Path
) -> None:
    family, folder = imported
    assert main(["export", str(folder), "--format", "huggingface", "-o", str(tmp_path / "back")]) == 0
    theirs = {**CLASSES, "marian": transformers.MarianMTModel}[family].from_pretrained(tmp_path / "back").eval()
    model, (source, _) = saved_bundle(folder).translates()
    rows, target_rows = (one.rows for one in numberings_in(tmp_path / "back", family))
    others = torch.arange(len(rows)) != (BOS if model.shape.start_subword else -1)
    for ids, target in pairs_of(model, source, TEXTS):
        told = torch.tensor([in_their_ids(rows, [*ids, EOS])])
        logits = theirs(
            input_ids=told, decoder_input_ids=torch.tensor([in_their_ids(target_rows, [BOS, *target])])
        ).logits
        found = logits[0].log_softmax(-1)
        assert found.shape[1] == int(others.sum()), "no row is left out, and none is there twice"
        wanted = torch.tensor(in_their_ids(target_rows, [*target, EOS]))
        torch.testing.assert_close(
            found.gather(1, wanted[:, None])[:, 0], log_probabilities(model, (ids, target)), rtol=0, atol=2e-5
        )
        limit = min(model.shape.longest, length_limit(told.shape[1]))
        written = theirs.generate(input_ids=told, num_beams=1, max_new_tokens=limit)[0].tolist()
        found_here = in_their_ids(target_rows, searched(model, ids, beam=1, length_penalty=0.0))
        assert found_here == written[1 + bool(model.shape.first_subword) : -1]
    assert theirs.generation_config.num_beams == 4
    if family == "marian":
        assert [UNK] in theirs.generation_config.bad_words_ids
        assert theirs.config.share_encoder_decoder_embeddings and theirs.config.tie_word_embeddings
        tokeniser = transformers.MarianTokenizer.from_pretrained(tmp_path / "back")
        told = tokeniser([f"{PREFIX}{line}" for line in TEXTS])["input_ids"]
        assert told == [[*ids, EOS] for ids in source.encode(TEXTS)]
    elif family in DESCRIBED:
        tokeniser = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
        assert tokeniser(TEXTS)["input_ids"] == [in_their_ids(rows, [*ids, EOS]) for ids in source.encode(TEXTS)]


def test_it_comes_in_again_from_there_as_it_was(imported: tuple[str, Path], tmp_path: Path) -> None:
    family, folder = imported
    export(saved_bundle(folder), tmp_path / "back", "huggingface")
    import_again(family, tmp_path / "back", tmp_path / "again")
    model, again = load_folder(folder).double(), load_folder(tmp_path / "again").double()
    for pair in pairs_of(model, vocabulary_of(folder / "source.model"), ()):
        torch.testing.assert_close(log_probabilities(again, pair), log_probabilities(model, pair), rtol=0, atol=1e-9)
    known = [[vocabulary_of(place / "source.model").encode(TEXTS)] for place in (folder, tmp_path / "again")]
    assert known[0] == known[1]


@pytest.mark.slow
def test_ctranslate2_gives_every_subword_our_probability_and_its_page_tells_how_to_translate(
    imported: tuple[str, Path], tmp_path: Path
) -> None:
    family, folder = imported
    export(saved_bundle(folder), tmp_path / "fast", "ctranslate2")
    model, known = saved_bundle(folder).translates()
    pairs = [*pairs_of(model, known[0], ()), *pairs_of(model, known[0], TEXTS)]
    assert agreement_of_ctranslate2(model, known, tmp_path / "fast", pairs) < (1e-5 if family == "marian" else 1e-4)
    page = (tmp_path / "fast/README.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    script = script.replace('["A sentence.", "Another one."]', repr(TEXTS)).replace(
        "beam_size=4", "beam_size=1, max_decoding_length=60"
    )
    same = 0
    for ids, line in zip(known[0].encode(TEXTS), output_of(["-c", script], tmp_path / "fast"), strict=True):
        found = searched(model, ids, beam=1, length_penalty=0.0)
        text = known[1].decode([found])[0]
        # It has its own limit, at which it stops in the middle of a translation that never ends by itself.
        assert line.startswith(text) or text.startswith(line)
        same += line == text
    assert same or family == "marian", "random Marians never end"


@pytest.mark.slow
@pytest.mark.parametrize("imported", ["marian", "nllb", "bart", "mbart"], indirect=True)
def test_graphs_give_every_subword_our_probability_and_their_script_translates_as_we_do(
    imported: tuple[str, Path], tmp_path: Path
) -> None:
    family, folder = imported
    export(saved_bundle(folder), tmp_path / "graphs", "onnx")
    model, known = saved_bundle(folder).translates()
    pairs = [*pairs_of(model, known[0], ()), *pairs_of(model, known[0], TEXTS)]
    assert agreement_of_onnx(model, tmp_path / "graphs", pairs) < (2e-5 if family == "marian" else 1e-4)
    texts = [text for text, ids in zip(TEXTS, known[0].encode(TEXTS), strict=True) if length_limit(len(ids)) < 64]
    page = (tmp_path / "graphs/README.md").read_text(encoding="utf-8")
    _, *words = next(line for line in page.splitlines() if "translate.py --" in line).split(" <")[0].split()
    assert words[1:] == ["--beam", "4", "--length-penalty", "1", "--length-offset", "0", "--early-stopping", "false"]
    search: dict[str, Any] = {"beam": 4, "length_penalty": 1.0, "early_stopping": False}
    found = [searched(model, ids, **search) for ids in known[0].encode(texts)]
    assert len(texts) > 2 and output_of(["-I", *words], tmp_path / "graphs", texts) == known[1].decode(found)


def test_a_folder_says_where_the_model_is_from_and_what_its_texts_begin_with(imported: tuple[str, Path]) -> None:
    family, folder = imported
    page = (folder / "README.md").read_text(encoding="utf-8")
    names = {"marian": "Marian", "bart": "BART", "mbart": "mBART", "mbart25": "mBART"}
    assert f"Made from the {names.get(family, 'M2M100')} model theirs" in page
    about = read_json(folder / "pretrained/about.json")
    if family == "marian":
        assert about["prefix"] == PREFIX and f"Each source sentence begins with `{PREFIX}`." in page
        return
    assert (about["source_language"], about["target_language"]) == LANGUAGES[family]
    if family == "mbart25":
        assert "Each source sentence ends with `</s> en_XX`." in page
        return
    begins = {"m2m100": "__de__", "nllb": "deu_Latn", "bart": "<s>", "mbart": "de_DE"}[family]
    assert f"Each translation begins with `{begins}`." in page


@pytest.mark.slow
def test_the_script_beside_the_graphs_ends_as_early_as_the_model_does(tmp_path: Path) -> None:
    from heads.interop.translate_onnx import Model

    save_tokeniser(tmp_path / "theirs")
    save_marian(tmp_path / "theirs", biases=0.4)
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
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


@pytest.mark.parametrize("name", slow_but(["cut unevenly"], MADE))
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


def test_a_model_that_normalises_first_is_told_where_else_to_go(experiment: Experiment, tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="normalises before each sub-layer, but Marian after it: export it with --format"
    ):
        export(saved_bundle(experiment.pruned), tmp_path / "out", "huggingface")
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
