"""OPUS-MT's own archives are read as CTranslate2 reads them: ids of their vocab.yml, probabilities, translations."""

import io
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from ctranslate2.converters.marian import load_vocab

from heads.__main__ import main
from heads.base.files import UserError, read_json
from heads.interop.agreement import log_probabilities
from heads.interop.bundle import saved_bundle
from heads.interop.export import export
from heads.interop.firefox.importing import read_firefox
from heads.interop.firefox.parts import find_parts
from heads.interop.firefox.vocabulary import read_vocabulary
from heads.interop.formats import format_of
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.model.folder import load_folder
from heads.text.vocabulary import Vocabulary
from marian_models import SENTENCES
from model_folders import found_by
from opus_archives import LICENCE, MODEL, ODD, cut_by, in_ctranslate2, save_archive
from slow_ones import slow_but

PREFIX = ">>deu<<"
KINDS: dict[str, dict[str, Any]] = {
    "joint": {},
    "with languages": {"languages": [PREFIX, ">>nld<<"]},
    "separate": {"separate": True, "transformer-ffn-activation": "relu"},
    "with more rows": {"more_rows": 7},
}
LINES = (*SENTENCES["source"], "the white dog reads , xyz", "no Yes 1 <<")


@pytest.fixture(scope="module", params=slow_but(["with languages", "with more rows"], KINDS))
def archive(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A place with the archive `theirs` and its import `ours`, and the prefix of source sentences.

    Rows without a subword are only in the last; CTranslate2 does not read it.
    """
    place = tmp_path_factory.mktemp("opus")
    save_archive(place / "theirs", **KINDS[request.param])
    prefix = PREFIX if "languages" in request.param else ""
    import_any(str(place / "theirs"), place / "ours", prefix)
    return place, prefix


def known(place: Path) -> tuple[Vocabulary, Vocabulary]:
    return Vocabulary(place / "ours/source.model"), Vocabulary(place / "ours/target.model")


def cut(place: Path, side: str) -> list[list[str]]:
    return cut_by(place / f"theirs/{side}.spm", LINES)


def test_subwords_have_the_ids_of_the_yml_and_others_are_unknown(archive: tuple[Path, str]) -> None:
    place, prefix = archive
    parts, numberings = find_parts(place / "theirs"), read_firefox(OriginalFiles(place / "theirs")).numberings
    assert parts.numbers
    for side, vocabulary, ours, path in zip(("source", "target"), known(place), numberings, parts.numbers, strict=True):
        numbers = {name: number for number, name in enumerate(load_vocab(path))}
        begins = [numbers[prefix]] if prefix and side == "source" else []
        expected = [[*begins, *(numbers.get(name, 1) for name in subwords)] for subwords in cut(place, side)]
        assert [[ours.rows[number] for number in ids] for ids in vocabulary.encode(LINES)] == expected
        assert any(1 in ids for ids in expected) and {1} < {number for ids in expected for number in ids}
        assert [vocabulary.spans(line)[0] for line in LINES] == vocabulary.encode(LINES)


@pytest.mark.parametrize("archive", slow_but(["with languages"], [*KINDS][:3]), indirect=True)
@torch.inference_mode()
def test_probabilities_and_greedy_translations_are_those_of_ctranslate2(
    archive: tuple[Path, str], tmp_path: Path
) -> None:
    place, prefix = archive
    theirs = in_ctranslate2(place / "theirs", tmp_path / "fast")
    ours, (source, target) = load_folder(place / "ours"), known(place)
    sources, targets = ([[*one] for one in cut(place, side)] for side in ("source", "target"))
    sources = [[prefix] * bool(prefix) + subwords for subwords in sources]
    ids = source.encode(LINES)
    for pair, scored in zip(
        zip(ids, target.encode(LINES), strict=True), theirs.score_batch(sources, targets), strict=True
    ):
        torch.testing.assert_close(log_probabilities(ours, pair), torch.tensor(scored.log_probs), rtol=0, atol=1e-4)
    found = found_by(ours, ids, beam=1, length_offset=0)
    same = 0
    for subwords, result in zip(
        found,
        theirs.translate_batch(sources, beam_size=1, disable_unk=True, max_decoding_length=20),
        strict=True,
    ):
        names = [target.subword(number) for number in subwords]
        assert names[:20] == result.hypotheses[0][: len(names)]
        same += names == result.hypotheses[0]
    assert len({tuple(one) for one in found}) > 2


def test_it_goes_back_with_the_numbers_that_it_came_with(archive: tuple[Path, str], tmp_path: Path) -> None:
    place, prefix = archive
    assert export(saved_bundle(place / "ours"), tmp_path / "back", "marian") == 0
    assert export(saved_bundle(place / "ours"), tmp_path / "plain", "npz") == 0
    before = np.load(place / "theirs" / MODEL)
    for folder, name in (("back", MODEL), ("plain", "model.npz")):
        after = np.load(tmp_path / folder / name)
        assert {*after.files} == {*before.files}
        assert all(np.array_equal(after[one], before[one]) for one in before.files)
        import_any(str(tmp_path / folder), tmp_path / f"{folder} again", prefix)
        again = Vocabulary(tmp_path / f"{folder} again/source.model")
        assert again.encode(LINES) == known(place)[0].encode(LINES)
    files = {path.name for path in (tmp_path / "back").iterdir()}
    assert {path.name for path in (place / "theirs").iterdir()} <= files
    about = read_json(place / "ours/pretrained/about.json")
    assert about["prefix"] == prefix and (place / "ours/pretrained/LICENSE").read_text() == LICENCE


@pytest.mark.slow
def test_people_translate_inspect_and_name_its_file(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save_archive(tmp_path / "opus-2020-01-08", languages=[PREFIX, ">>nld<<"])
    import_any(str(folder), tmp_path / "ours", PREFIX)
    found, place = format_of(str(folder))
    assert found.heads(place) == {"enc_self": (2, 3), "dec_self": (3, 3), "dec_enc": (3, 3)}
    given, said = "".join(f"{line}\n" for line in LINES).encode(), []
    flags = ["--prefix", PREFIX]
    for words in ([str(folder), *flags], [str(folder / MODEL), *flags], [str(tmp_path / "ours")]):
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(given), isatty=lambda: False))
        assert main(["translate", *words, "--device", "cpu"]) == 0
        said.append(capfd.readouterr().out)
    assert said[0] == said[1] == said[2] and said[0].count("\n") == len(LINES)
    (tmp_path / "text").write_bytes(given)
    out = tmp_path / "page.html"
    assert main(["inspect", str(folder), str(tmp_path / "text"), "-o", str(out), *flags]) == 0
    assert out.stat().st_size > 1000


def test_rows_without_a_subword_are_never_written(tmp_path: Path) -> None:
    folder = save_archive(tmp_path / "theirs", more_rows=7)
    content = dict(np.load(folder / MODEL))
    content["decoder_ff_logit_out_b"][:, -7:] += 90
    np.savez(folder / MODEL, **content)
    import_any(str(folder), tmp_path / "ours")
    ours = load_folder(tmp_path / "ours")
    assert ours.shape.nameless_subwords == 7
    for ids in found_by(ours, known(tmp_path)[0].encode(LINES)):
        assert ids and max(ids) < ours.shape.named_subwords[1]


def without_spm(folder: Path) -> None:
    for side in ("source", "target"):
        (folder / f"{side}.spm").unlink()


def of_merges(folder: Path) -> None:
    without_spm(folder)
    for name in ("source.bpe", "target.bpe", "source.tcmodel"):
        (folder / name).write_text("#version: 0.2\nt h\n", encoding="utf-8")


def written(text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / "opus.spm32k-spm32k.vocab.yml").write_text(text, encoding="utf-8")


BAD: tuple[tuple[Callable[[Path], object], str], ...] = (
    (
        of_merges,
        r"vocab\.yml is not a SentencePiece vocabulary, and texts are cut with source\.bpe, target\.bpe: give a",
    ),
    (without_spm, r"vocab\.yml is not a SentencePiece vocabulary: give a model with source\.spm and target\.spm"),
    (lambda f: (f / "target.spm").write_bytes(b"no"), r"target\.spm is not a SentencePiece model"),
    (written("</s>: 0\n<unk>: 1\na: 1\n"), r"vocab\.yml does not give each subword a number of its own"),
    (written("</s>: 0\n<unk>: -1\n"), r"vocab\.yml does not give each subword a number of its own"),
    (written("</s>: 0\n<unk>: one\n"), r"vocab\.yml is not a vocabulary of Marian, names and their numbers"),
    (written("- </s>\n- <unk>\n"), r"vocab\.yml is not a vocabulary of Marian"),
    (written(""), r"vocab\.yml does not give each subword a number of its own"),
    (written("a: [b\n"), r"vocab\.yml is not a vocabulary of Marian"),
    (written("<unk>: 1\na: 2\n"), r"vocab\.yml has no end token, </s>: take the vocabulary that Marian made"),
    (written("</s>: 0\na: 2\n"), r"vocab\.yml has no unknown token, <unk>: take"),
    (
        written("</s>: 0\n<unk>: 1\na: 4000\n"),
        r"vocab\.yml has 4001 tokens, but its model \d+: take both from the same",
    ),
)


@pytest.mark.parametrize(("spoil", "sentence"), BAD)
def test_an_archive_that_cannot_be_read_is_one_sentence(
    spoil: Callable[[Path], object], sentence: str, tmp_path: Path
) -> None:
    folder = save_archive(tmp_path / "theirs")
    spoil(folder)
    with pytest.raises(UserError, match=sentence) as told:
        import_any(str(folder), tmp_path / "ours")
    assert "\n" not in str(told.value) and not (tmp_path / "ours").exists()


def test_one_language_of_several_has_to_be_named_and_none_where_there_are_none(tmp_path: Path) -> None:
    folder = save_archive(tmp_path / "many", languages=[PREFIX, ">>nld<<"])
    with pytest.raises(
        UserError, match="many translates into several languages: give one as the prefix, such as >>deu<<"
    ):
        import_any(str(folder), tmp_path / "ours")
    with pytest.raises(UserError, match=r"vocab\.yml has no prefix >>fra<<: choose one of >>deu<<, >>nld<<"):
        import_any(str(folder), tmp_path / "ours", ">>fra<<")
    one = save_archive(tmp_path / "one")
    with pytest.raises(UserError, match=r"vocab\.yml has no prefix >>deu<<: leave the prefix out"):
        import_any(str(one), tmp_path / "ours", PREFIX)


def test_names_in_a_yml_stay_names_whatever_they_look_like(tmp_path: Path) -> None:
    path = save_archive(tmp_path / "theirs") / "opus.spm32k-spm32k.vocab.yml"
    found = read_vocabulary(path)
    assert {*ODD} <= {*found} and len({*found.values()}) == len(found) == max(found.values()) + 1
    assert [found[name] for name in load_vocab(path)] == [*range(len(found))]
    longer = path.with_name("longer.yml")
    longer.write_text('? "' + "a" * 200 + '"\n: 2\n</s>: 0\n<unk>: 1\n', encoding="utf-8")
    assert read_vocabulary(longer)["a" * 200] == 2


def test_without_a_decoder_yml_names_tell_the_sides_apart(tmp_path: Path) -> None:
    folder = save_archive(tmp_path / "theirs", separate=True)
    told = find_parts(folder)
    (folder / "decoder.yml").unlink()
    assert find_parts(folder) == told and told.numbers and told.numbers[0].name.endswith("src.vocab.yml")
    for path, name in zip(told.numbers, ("vocab.en.yml", "vocab.de.yml"), strict=True):
        path.rename(folder / name)
    with pytest.raises(
        UserError, match=r"has vocab\.de\.yml, vocab\.en\.yml: name those of source and target in a dec"
    ):
        find_parts(folder)
    joint = save_archive(tmp_path / "joint")
    told = find_parts(joint)
    (joint / "decoder.yml").unlink()
    assert find_parts(joint) == told
    (joint / "decoder.yml").write_text(yaml.safe_dump({"vocabs": ["gone.yml"]}), encoding="utf-8")
    assert find_parts(joint) == told
