"""Models in other formats give every subword the same probability as ours, with unevenly pruned heads."""

import json
import sys
from pathlib import Path
from typing import Any

import ctranslate2
import pytest
import torch

import heads.interop.to_ctranslate2
from few_heads import RECURRENT
from heads.__main__ import main
from heads.base.files import UserError, read_json, read_tsv, write_lines
from heads.interop.agreement import largest_difference, log_probabilities, pairs_of
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.interop.marian.exporting import write_huggingface
from heads.interop.to_ctranslate2 import agreement_of_ctranslate2, write_ctranslate2
from heads.interop.to_onnx import agreement_of_onnx, write_onnx
from heads.model.folder import load_folder
from heads.model.head_removal import prune
from heads.model.sublayers import layers_of
from heads.model.transformer import Transformer
from heads.text.batches import pad
from heads.text.special_ids import EOS
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import NEVER, beam_search
from model_folders import OPEN, SOURCE, Experiment, found_by, opinionated, output_of, post_norm
from slow_ones import slow_but

LATER = {kind: layers[::-1] for kind, layers in {**OPEN, "dec_enc": [[True] * 3, [False] * 3]}.items()}
"""The second layer of each stack has the most."""
NONE = {kind: [[False] * 3, [False] * 3] for kind in OPEN}


def with_fewer_units(model: Transformer, cut: dict[str, list[list[bool]]]) -> dict[str, list[list[bool]]]:
    """The same cut and other numbers of hidden units in each layer, in one of which none is left."""
    units = model.shape.feedforward
    gone = {"enc_ffn": (range(units), [0, units - 1]), "dec_ffn": ([], range(2, units))}
    return {
        **cut,
        **{stack: [[unit not in lost for unit in range(units)] for lost in both] for stack, both in gone.items()},
    }


@pytest.mark.parametrize(
    "cut", [None, OPEN, LATER, NONE], ids=["whole", "uneven", "fewer at first", "without any head"]
)
@pytest.mark.parametrize("model", [opinionated(seed=1), post_norm()], ids=["pre-norm", "post-norm"])
def test_ctranslate2_gives_every_subword_our_probability(
    model: Transformer, cut: dict[str, list[list[bool]]] | None, experiment: Experiment, tmp_path: Path
) -> None:
    model, known = prune(model, with_fewer_units(model, cut) if cut is LATER else cut or {}), experiment.vocabularies()
    write_ctranslate2(model, known, tmp_path)
    model = model.double()  # so that only CTranslate2 rounds: the two in 32 bits differ by up to 1.05e-5
    for sentences in ((), SOURCE):
        assert agreement_of_ctranslate2(model, known, tmp_path, pairs_of(model, known[0], sentences)) < 1e-5


def test_ctranslate2_knows_the_special_subwords_and_ends_the_source_itself(
    experiment: Experiment, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    export(saved_bundle(experiment.pruned), out, "ctranslate2")
    source, target = (Vocabulary(experiment.bpe / f"{side}.model").processor for side in ("source", "target"))
    translator = ctranslate2.Translator(str(out), compute_type="float32", intra_threads=1)
    # A beam of one, since CTranslate2 divides scores by a different length.
    found = translator.translate_batch(
        [source.encode(line, out_type=str) for line in SOURCE],
        beam_size=1,
        suppress_sequences=[["<pad>"], ["<s>"], ["<unk>"]],
        max_decoding_length=25,
    )
    model = load_folder(experiment.pruned)
    for line, result in zip(SOURCE, found, strict=True):
        ids = torch.tensor([*source.encode(line), EOS]).numpy()
        expected = beam_search(model, *pad([ids]), beam=1, length_penalty=0.0)[0][:25]
        assert [target.piece_to_id(subword) for subword in result.hypotheses[0]] == expected


def test_whole_numbers_of_8_bits_take_less_room_and_change_probabilities(
    experiment: Experiment, tmp_path: Path
) -> None:
    exact = export(saved_bundle(experiment.baseline), tmp_path / "exact", "ctranslate2")
    rough = export(saved_bundle(experiment.baseline), tmp_path / "rough", "ctranslate2", quantization="int8")
    assert exact is not None and rough is not None and exact < 1e-4 < rough
    sizes = [(tmp_path / name / "model.bin").stat().st_size for name in ("exact", "rough")]
    assert sizes[1] < sizes[0]


@pytest.mark.slow
@pytest.mark.parametrize("cut", slow_but([OPEN], [None, OPEN, NONE]), ids=["whole", "uneven", "without any head"])
def test_onnx_graphs_give_every_subword_our_probability_and_the_script_finds_our_translations(
    cut: dict[str, list[list[bool]]] | None, experiment: Experiment, tmp_path: Path
) -> None:
    from heads.interop.translate_onnx import Model

    model, known = opinionated(seed=1), experiment.vocabularies()
    model = model if cut is None else prune(model, with_fewer_units(model, cut) if cut is OPEN else cut)
    write_onnx(model, tmp_path)
    for sentences in ((), SOURCE):
        assert agreement_of_onnx(model, tmp_path, pairs_of(model, known[0], sentences)) < 2e-5
    graphs = Model(tmp_path)
    by_penalty = {}
    for alpha, offset in ((0.6, 5), (1.0, 5), (1.0, 0)):
        found = [graphs.translate([*ids, EOS], 4, alpha, offset, NEVER) for ids in known[0].encode(SOURCE)]
        assert found == found_by(model, known[0].encode(SOURCE), length_penalty=alpha, length_offset=offset)
        by_penalty[alpha, offset] = found
    assert cut is not OPEN or len({len(each) for each in by_penalty[0.6, 5]}) > 1
    assert cut is not None or by_penalty[1.0, 0] != by_penalty[1.0, 5]


@pytest.mark.slow
def test_graphs_of_a_recurrent_decoder_give_our_probabilities_and_the_script_finds_our_translations(
    experiment: Experiment, tmp_path: Path
) -> None:
    from heads.interop.translate_onnx import Model

    known, cut = experiment.vocabularies(), {kind: OPEN[kind] for kind in ("enc_self", "dec_enc")}
    lengths = set()
    for number, positions in enumerate(("tensor2tensor", "interleaved")):
        model, folder = prune(opinionated(seed=number, positions=positions, **RECURRENT), cut), tmp_path / positions
        folder.mkdir()
        write_onnx(model, folder)
        for sentences in ((), SOURCE):
            assert agreement_of_onnx(model, folder, pairs_of(model, known[0], sentences)) < 2e-5
        found = [Model(folder).translate([*ids, EOS], 4, 0.6, 5, NEVER) for ids in known[0].encode(SOURCE)]
        assert found == found_by(model, known[0].encode(SOURCE))
        lengths |= {len(each) for each in found}
    assert len(lengths) > 1


def test_what_other_formats_have_no_recurrent_decoder_for_is_refused(experiment: Experiment, tmp_path: Path) -> None:
    model, known = opinionated(seed=1, pre_norm=False, **RECURRENT), experiment.vocabularies()
    with pytest.raises(UserError, match=r"^CTranslate2 does not .* recurrent decoder: export it with --format onnx\.$"):
        write_ctranslate2(model, known, tmp_path)
    other = opinionated(seed=1, pre_norm=False, positions="tensor2tensor")
    for one, lacks in ((model, "support this model's recurrent decoder"), (other, "have the position signals of this")):
        with pytest.raises(UserError, match=f"^transformers' Marian does not {lacks}.*: use another --format"):
            write_huggingface(one, known, (4, 0.6), tmp_path)


@pytest.mark.slow
def test_the_script_beside_the_graphs_translates_a_text_without_this_project(
    experiment: Experiment, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert main(["export", str(experiment.pruned), "--format", "onnx", "-o", str(out)]) == 0
    told = output_of(["-I", out / "translate.py", "--beam", "4", "--length-penalty", "0.6"], tmp_path, SOURCE)
    known = experiment.vocabularies()
    expected = known[1].decode(found_by(load_folder(experiment.pruned), known[0].encode(SOURCE)))
    assert told == expected
    files = {"encoder.onnx", "step.onnx", "translate.py"}
    assert {path.name for path in out.iterdir()} == files | {
        *("source.model", "target.model", "heads.tsv", "origin.json", "bleu.json", "README.md")
    }


def test_the_page_the_removed_heads_and_the_origin_go_along(experiment: Experiment, tmp_path: Path) -> None:
    out = tmp_path / "out"
    farthest = export(saved_bundle(experiment.pruned), out, "ctranslate2", sentences=SOURCE)
    page = (out / "README.md").read_text(encoding="utf-8")
    for text in ("| encoder self-attention | 2 | 0 | 2 of 6 |", "BLEU 12.35", f"{farthest:.1e} nats", "ctranslate2"):
        assert text in page
    rows = {(row["attention"], row["layer"], row["head"]): row["open"] for row in read_tsv(out / "heads.tsv")}
    assert len(rows) == 18 and rows["enc_self", "0", "1"] == "0" and rows["enc_self", "0", "2"] == "1"
    assert read_json(out / "origin.json") == read_json(experiment.pruned / "model.json")["provenance"]
    assert json.loads((out / "config.json").read_text())["add_source_eos"] is True


def test_a_model_that_became_another_one_is_not_exported(
    experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(model: Transformer, *arguments: Any) -> None:
        with torch.no_grad():
            layers_of(model.decoder)[1].feedforward.inner.weight[0] += 0.01
        write_ctranslate2(model, *arguments)
        with torch.no_grad():
            layers_of(model.decoder)[1].feedforward.inner.weight[0] -= 0.01

    monkeypatch.setattr(heads.interop.to_ctranslate2, "write_ctranslate2", spoil)
    with pytest.raises(ArithmeticError, match="differ from ours by"):
        export(saved_bundle(experiment.pruned), tmp_path / "there" / "out", "ctranslate2")
    assert list((tmp_path / "there").iterdir()) == []


def test_differences_are_the_largest_over_all_subwords_and_a_number_that_is_none_is_infinite() -> None:
    model = opinionated(seed=1)
    pairs = [([5, 6], [7, 8, 9]), ([10], [11])]
    theirs = [log_probabilities(model, pair).clone() for pair in pairs]
    assert largest_difference(model, pairs, theirs) == 0.0
    theirs[0][3] -= 0.25
    assert largest_difference(model, pairs, theirs) == pytest.approx(0.25)
    theirs[1][0] = torch.nan
    assert largest_difference(model, pairs, theirs) == torch.inf


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        ("--quantization int8", "--quantization int8 needs --format ctranslate2: use it, or remove --quantization."),
        ("--alignment x", "--alignment needs --format ctranslate2: use it, or remove --alignment."),
        ("--sentences x", "--sentences needs a format other than folder: add --format, or remove --sentences."),
    ],
)
def test_flags_that_mean_nothing_are_refused(
    flags: str, sentence: str, experiment: Experiment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(experiment.pruned), "-o", str(tmp_path / "out"), *flags.split()]) == 1
    assert sentence in capfd.readouterr().err


def test_sentences_without_a_word_are_refused_and_long_ones_are_held_against_ours_as_far_as_there_are_positions(
    experiment: Experiment, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    write_lines(tmp_path / "blank.txt", ["", ""])
    write_lines(tmp_path / "long.txt", ["the cat " * 1000])
    given = ["export", str(experiment.pruned), "--format", "ctranslate2", "-o", str(tmp_path / "out")]
    assert main([*given, "--sentences", str(tmp_path / "blank.txt")]) == 1
    assert (
        "the sentences to check the exported model with contain no words" in capfd.readouterr().err
        and not (tmp_path / "out").exists()
    )
    assert main([*given, "--sentences", str(tmp_path / "long.txt")]) == 0
    assert main(["export", str(tmp_path / "nowhere"), *given[2:-1], str(tmp_path / "other")]) == 1
    assert "nowhere is no folder: give one as save_pretrained" in capfd.readouterr().err


@pytest.mark.parametrize(("form", "library"), [("ctranslate2", "ctranslate2"), ("onnx", "onnxruntime")])
def test_a_library_that_is_missing_is_named_with_the_way_to_get_it(
    form: str, library: str, experiment: Experiment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(UserError, match=f'{library} is not installed: pip install "heads\\[{form}\\]"'):
        export(saved_bundle(experiment.pruned), tmp_path / "out", form)
