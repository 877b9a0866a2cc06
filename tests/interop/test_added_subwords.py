"""Added subwords and matrices with more rows than subwords: read, searched and exported as transformers does."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tokenizers import AddedToken

from fairseq_models import (
    CLASSES,
    LANGUAGES,
    TEXTS,
    TOKENISERS,
    in_their_ids,
    numberings_in,
    rewrite_by_transformers,
    save_folder,
)
from heads.__main__ import main
from heads.interop.agreement import log_probabilities, pairs_of
from heads.interop.bundle import saved_bundle
from heads.interop.opening import import_any
from heads.model.folder import load_folder
from heads.text.batches import make_batch
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, NAMELESS, PAD, UNK
from heads.translation.beam_search import beam_search, length_limit
from marian_models import changed, drawn, save_marian, save_tokeniser, transformers
from model_folders import found_by, output_of
from slow_ones import slow_but

ADDED = ("Klingon", "ab+c", "Klingonese", AddedToken("[SIGN]", special=True, lstrip=True, rstrip=True))
LINES = (
    *TEXTS,
    "the Klingon sees a Klingonese dog, ab+cat",
    "Klingon",
    " [SIGN]  the dogKlingon ab+ [SIGN]",
    "ab+cKlingon[SIGN]Klingonx  Klingon ",
)
KINDS = ("marian", "marian bpe", "m2m100", "nllb", "bart")


@dataclass(frozen=True)
class Padded:
    """A model with added subwords and a matrix with 64 rows or a multiple, and what is needed to compare it."""

    family: str
    kind: str
    theirs: Any
    tokeniser: Any
    place: Path
    """With the folders `theirs` and `ours`."""


@pytest.fixture(scope="module", params=slow_but(("nllb",), KINDS))
def padded(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Padded:
    place, (family, *kind) = tmp_path_factory.mktemp("padded"), request.param.split()
    folder = place / "theirs"
    if family == "marian":
        tokeniser, model = save_tokeniser(folder, kind="bpe" if kind else "unigram"), save_marian(folder, biases=0.4)
    else:
        model = save_folder(folder, family, ending=3)
        if family in TOKENISERS:
            tokeniser = rewrite_by_transformers(folder, family)
        else:
            tokeniser = transformers.M2M100Tokenizer.from_pretrained(folder, src_lang="en", tgt_lang="de")
    tokeniser.add_tokens([*ADDED])
    # It draws them from the distribution of all others.
    torch.manual_seed(2)
    model.resize_token_embeddings(len(tokeniser) + 3, pad_to_multiple_of=64)
    with torch.no_grad():
        # Rows without a subword are the most probable ones.
        rows, named = model.get_output_embeddings().weight, len(tokeniser)
        if family == "marian":
            # transformers 5.23 leaves the bias without those rows, and then cannot compute anything.
            more = torch.zeros(1, len(rows) - model.final_logits_bias.shape[1])
            model.final_logits_bias = torch.cat([model.final_logits_bias, more], 1)
        if family in ("marian", "bart"):
            model.final_logits_bias[:, named:] += 12
            model.final_logits_bias[:, tokeniser.eos_token_id] += 6
        else:
            shift = model.get_decoder().layer_norm.bias
            rows[named:] += 8 * shift / shift.dot(shift)
    tokeniser.save_pretrained(folder)
    model.save_pretrained(folder)
    import_any(str(folder), place / "ours", languages=LANGUAGES[family])
    return Padded(family, "".join(kind), model.eval(), tokeniser, place)


def test_texts_are_split_at_added_subwords_as_transformers_splits_them(padded: Padded) -> None:
    known = [vocabulary_of(padded.place / f"ours/{side}.model") for side in ("source", "target")]
    source, target = numberings_in(padded.place / "theirs", padded.family)
    found = known[0].encode(LINES)
    assert [in_their_ids(source.rows, [*ids, EOS]) for ids in found] == padded.tokeniser([*LINES])["input_ids"]
    named = {name for ids in found for name in map(known[0].subword, ids)}
    assert {str(one) for one in ADDED} <= named
    for line, ids in zip(LINES, found, strict=True):
        again, spans = known[0].spans(line)
        assert again == ids
        for number, (start, end) in zip(ids, spans, strict=True):
            if known[0].subword(number) in map(str, ADDED):
                # `tokenizers` counts the blanks that a sign takes away.
                assert line[start:end].strip() == known[0].subword(number)
    for ids in known[1].encode(LINES):
        # SentencePiece gives back no subword that only the other side's BPE has.
        if UNK not in ids and padded.kind != "bpe":
            text = padded.tokeniser.decode(
                in_their_ids(target.rows, ids), skip_special_tokens=True, use_source_tokenizer=False
            )
            assert known[1].decode([ids]) == [text]


@torch.inference_mode()
def test_every_named_subword_has_its_logit_and_its_probability_beside_all_rows(padded: Padded) -> None:
    ours = load_folder(padded.place / "ours").double()
    theirs = padded.theirs.double()
    source, target = numberings_in(padded.place / "theirs", padded.family)
    assert target.nameless == len(theirs.get_output_embeddings().weight) - len(padded.tokeniser) > 0
    assert ours.shape.nameless_subwords == target.nameless
    named = ours.shape.named_subwords
    sources, targets = drawn([9, 4, 1], len(source.rows) - source.nameless, 3), drawn([5, 11, 3], named[1], 4)
    batch = make_batch(*([np.array(ids, np.int32) for ids in side] for side in (sources, targets)))
    found = ours.projection(ours(batch.source, batch.source_mask, batch.target_input))[batch.target_mask]
    expected = theirs(
        input_ids=torch.tensor(source.rows)[batch.source],
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=torch.tensor(target.rows)[batch.target_input],
    ).logits[batch.target_mask]
    rows = torch.tensor(target.rows)[UNK:]
    torch.testing.assert_close(found[:, UNK:], expected[:, rows], rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(found.log_softmax(-1)[:, UNK:], expected.log_softmax(-1)[:, rows], rtol=1e-6, atol=1e-6)
    padded.theirs.float()
    assert float(found.softmax(-1)[:, named[1] :].sum(-1).max()) > 0.3


@torch.inference_mode()
@pytest.mark.parametrize(("beam", "alpha"), slow_but([(4, 2.0)], [(1, 0.0), (4, 2.0), (2, 2.0)]))
def test_rows_without_a_subword_are_never_written_but_count_in_every_probability(
    padded: Padded, beam: int, alpha: float
) -> None:
    ours = load_folder(padded.place / "ours")
    source, target = numberings_in(padded.place / "theirs", padded.family)
    begins, start, end = ours.shape.first_subword, target.rows[BOS], target.rows[EOS]
    marian = padded.family == "marian"
    nameless = [*target.rows[ours.shape.named_subwords[1] :]]
    never = [[target.rows[PAD]], [target.rows[UNK]], *([] if begins else [[start]])]
    how: dict[str, Any] = {"num_beams": beam, "do_sample": False, "decoder_start_token_id": start}
    how |= {"length_penalty": alpha, "early_stopping": False} if beam > 1 else {}
    how |= {
        "forced_bos_token_id": target.rows[begins] if begins else None,
        "forced_eos_token_id": end if marian else None,
    }
    same, tempted = 0, 0
    for ids in drawn([3, 5, 8, 2, 6, 4], len(source.rows) - source.nameless, 5):
        subwords = torch.tensor([[*ids, EOS]])
        found = beam_search(
            ours,
            subwords,
            torch.ones_like(subwords, dtype=torch.bool),
            beam=beam,
            length_offset=0,
            length_penalty=alpha,
            early_stopping=False,
        )[0]
        assert max(found, default=0) < ours.shape.named_subwords[1]
        told = {"input_ids": torch.tensor(source.rows)[subwords], "max_new_tokens": length_limit(subwords.shape[1])}
        expected, free = (
            padded.theirs.generate(**told, **how, bad_words_ids=words)[0].tolist()
            for words in ([*never, *([row] for row in nameless)], never)
        )
        # At its limit transformers may end a translation for nothing.
        if (expected[-1] == end and len(expected) <= length_limit(subwords.shape[1])) or beam == 1:
            assert in_their_ids(target.rows, found) == expected[1:-1]
            same += 1
        tempted += bool({*free} & {*nameless})
    assert same and (tempted or beam > 1), "transformers alone writes them"


@pytest.mark.slow
@pytest.mark.parametrize("padded", ["marian", "bart"], indirect=True)
def test_the_scripts_of_exports_split_texts_and_write_as_we_do(padded: Padded, tmp_path: Path) -> None:
    ours, known = saved_bundle(padded.place / "ours").translates()
    lines = [line for line in LINES if length_limit(len(known[0].encode([line])[0])) < 60]
    found = found_by(ours, known[0].encode(lines), beam=4, length_penalty=1.0, length_offset=0, early_stopping=False)
    (tmp_path / "lines").write_text("\n".join(lines), encoding="utf-8")
    for form in ("ctranslate2", "onnx"):
        told = ["export", str(padded.place / "ours"), "--format", form, "-o", str(tmp_path / form)]
        assert main([*told, "--sentences", str(tmp_path / "lines")]) == 0
    told = ["translate.py", "--beam", "4", "--length-penalty", "1", "--length-offset", "0", "--early-stopping", "false"]
    assert output_of(told, tmp_path / "onnx", lines) == known[1].decode(found)
    page = (tmp_path / "ctranslate2/README.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    shorter = "max_decoding_length=50"
    for old, new in (
        ('["A sentence.", "Another one."]', repr(lines)),
        ("beam_size=4", f"beam_size=1, {shorter}"),
    ):
        script = script.replace(old, new)
    script += "\nimport json\n"
    script += f"found = [one.hypotheses[0] for one in translator.translate_batch(subwords, {shorter})]\n"
    script += "print(json.dumps([subwords, found]))"
    cut, written = json.loads(output_of(["-c", script], tmp_path / "ctranslate2")[-1])
    names = [*map(known[0].subword, range(len(known[0])))]
    cut = [[name if name in names else names[UNK] for name in subwords] for subwords in cut]
    assert cut == [[*map(known[0].subword, ids)] for ids in known[0].encode(lines)]
    assert len(written) == len(lines) and not any(NAMELESS.fullmatch(name) for one in written for name in one)


@torch.inference_mode()
def test_transformers_reads_it_again_with_its_added_subwords_and_its_rows(
    padded: Padded, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["export", str(padded.place / "ours"), "--format", "huggingface", "-o", str(tmp_path / "back")]) == 0
    ours, known = saved_bundle(padded.place / "ours").translates()
    back = type(padded.theirs).from_pretrained(tmp_path / "back").eval()
    tokeniser = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    source, target = (one.rows for one in numberings_in(tmp_path / "back", padded.family))
    nameless = {*target[ours.shape.named_subwords[1] :]}
    assert {*map(tuple, back.generation_config.bad_words_ids)} >= {(row,) for row in nameless}
    for line, ids in zip(LINES, known[0].encode(LINES), strict=True):
        batch = tokeniser([line], return_tensors="pt")
        assert batch["input_ids"][0].tolist() == in_their_ids(source, [*ids, EOS])
        assert not {*back.generate(**batch, max_new_tokens=20)[0].tolist()} & nameless
    for ids, subwords in pairs_of(ours, known[0], ()):
        logits = back(
            input_ids=torch.tensor([in_their_ids(source, [*ids, EOS])]),
            decoder_input_ids=torch.tensor([in_their_ids(target, [BOS, *subwords])]),
        ).logits[0]
        found = logits.log_softmax(-1).gather(1, torch.tensor(in_their_ids(target, [*subwords, EOS]))[:, None])[:, 0]
        torch.testing.assert_close(found, log_probabilities(ours, (ids, subwords)), rtol=0, atol=5e-5)
    assert main(["import", str(tmp_path / "back"), "-o", str(tmp_path / "again"), *flags(padded)]) == 0
    assert load_folder(tmp_path / "again").shape.nameless_subwords == ours.shape.nameless_subwords
    assert "not used" not in capsys.readouterr().err, "its search does as the export asks"
    assert vocabulary_of(tmp_path / "again/source.model").encode(LINES) == known[0].encode(LINES)


def flags(padded: Padded) -> list[str]:
    source, target = LANGUAGES[padded.family]
    return ["--source-language", source, "--target-language", target] if source else []


def test_the_bias_that_transformers_forgets_to_pad_is_padded(tmp_path: Path) -> None:
    tokeniser, model = save_tokeniser(tmp_path / "theirs"), save_marian(tmp_path / "theirs")
    model.resize_token_embeddings(len(tokeniser), pad_to_multiple_of=64, mean_resizing=False)
    model.save_pretrained(tmp_path / "theirs")
    assert model.final_logits_bias.shape[1] < len(model.lm_head.weight) == 64
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    ours, rows = load_folder(tmp_path / "ours"), numberings_in(tmp_path / "theirs", "marian")[1].rows
    missing = 64 - model.final_logits_bias.shape[1]
    assert ours.shape.nameless_subwords == missing and not ours.projection.bias[-missing:].any()
    torch.testing.assert_close(ours.projection.bias[UNK:-missing], model.final_logits_bias[0, list(rows[UNK:-missing])])
    assert main(["export", str(tmp_path / "ours"), "--format", "huggingface", "-o", str(tmp_path / "back")]) == 0
    assert transformers.MarianMTModel.from_pretrained(tmp_path / "back").final_logits_bias.shape == (1, 65)


@pytest.mark.parametrize("told", slow_but([4000], [5, 4000]))
def test_weights_say_how_many_rows_there_are_whatever_the_configuration_says(tmp_path: Path, told: int) -> None:
    model = save_folder(tmp_path / "theirs", "nllb")
    changed(tmp_path / "theirs/config.json", vocab_size=told)
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", languages=LANGUAGES["nllb"])
    rows = len(model.lm_head.weight)
    assert load_folder(tmp_path / "ours").shape.target_subwords == rows + 1, "our start is a row of its own"
    assert main(["export", str(tmp_path / "ours"), "--format", "huggingface", "-o", str(tmp_path / "back")]) == 0
    assert len(CLASSES["nllb"].from_pretrained(tmp_path / "back").lm_head.weight) == rows


def test_a_number_that_a_vocabulary_leaves_out_is_a_row_without_a_subword(tmp_path: Path) -> None:
    save_tokeniser(tmp_path / "theirs")
    save_marian(tmp_path / "theirs")
    path = tmp_path / "theirs/vocab.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    gone = told.pop(sorted(told)[30])
    path.write_text(json.dumps(told), encoding="utf-8")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    assert load_folder(tmp_path / "ours").shape.nameless_subwords == 1
    assert numberings_in(tmp_path / "theirs", "marian")[1].rows[-1] == gone


def test_a_mask_without_a_row_is_unknown_in_texts(tmp_path: Path) -> None:
    """As in bart-large-cnn, whose vocabulary has one more subword than its matrix has rows."""
    save_folder(tmp_path / "theirs", "bart")
    tokeniser = rewrite_by_transformers(tmp_path / "theirs", "bart")
    model = CLASSES["bart"].from_pretrained(tmp_path / "theirs")
    model.resize_token_embeddings(tokeniser.mask_token_id)
    model.save_pretrained(tmp_path / "theirs")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    vocabulary = vocabulary_of(tmp_path / "ours/source.model")
    assert vocabulary.encode(["a<mask>"])[0][-1] == UNK and vocabulary.decode([[UNK]]) == [""]
