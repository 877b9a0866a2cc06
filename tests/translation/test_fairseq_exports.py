"""An imported, pruned M2M100, NLLB, BART or mBART gives the same probabilities in other tools' formats."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from fairseq_models import CLASSES, LANGUAGES, TEXTS, in_their_ids, save_folder
from heads.__main__ import main
from heads.base.files import UserError, read_json
from heads.base.provenance import provenance
from heads.model.folder import load_folder
from heads.model.folder import save_folder as save_ours
from heads.model.head_removal import prune
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS
from heads.translation.agreement import log_probabilities, pairs_of
from heads.translation.beam_search import length_limit
from heads.translation.export import export
from heads.translation.fairseq_folder import read_fairseq
from heads.translation.from_marian import numberings_of
from heads.translation.model_folder import load_vocabularies
from heads.translation.opening import import_model
from heads.translation.to_ctranslate2 import agreement_of_ctranslate2
from heads.translation.to_onnx import agreement_of_onnx
from marian_models import CUT
from model_folders import found_by

KINDS: dict[str, dict[str, Any]] = {
    "m2m100": {"ending": 1.5},
    "nllb": {"tie_word_embeddings": False, "ending": 1.5},
    "bart": {"ending": 5},
    "mbart": {"scale_embedding": True, "ending": 1.2},
    "mbart25": {"scale_embedding": True, "ending": 0.5},
}


@pytest.fixture(scope="module", params=KINDS)
def imported(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The family, and the folder of an imported model that was pruned unevenly and fine-tuned."""
    folder, family = tmp_path_factory.mktemp("imported"), request.param
    save_folder(folder / "theirs", family, **KINDS[family])
    import_model(str(folder / "theirs"), folder / "ours", languages=LANGUAGES[family])
    model = prune(load_folder(folder / "ours"), CUT)
    draw = torch.Generator().manual_seed(5)
    for value in model.parameters():
        if value.requires_grad:
            value.data += 0.1 * torch.randn(value.shape, generator=draw)
    save_ours(model, folder / "ours", {"experiment": "imported", "run": "cut"}, provenance())
    return family, folder / "ours"


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
    theirs = CLASSES[family].from_pretrained(tmp_path / "back").eval()
    model = load_folder(folder)
    source, _ = load_vocabularies(folder, model)
    rows, target_rows = (one.rows for one in numberings_of(read_fairseq(tmp_path / "back", LANGUAGES[family])))
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


def test_it_comes_in_again_from_there_as_it_was(imported: tuple[str, Path], tmp_path: Path) -> None:
    family, folder = imported
    export(folder, tmp_path / "back", "huggingface")
    import_model(str(tmp_path / "back"), tmp_path / "again", languages=LANGUAGES[family])
    model, again = load_folder(folder), load_folder(tmp_path / "again")
    for pair in pairs_of(model, load_vocabularies(folder, model)[0], ()):
        torch.testing.assert_close(log_probabilities(again, pair), log_probabilities(model, pair), rtol=0, atol=2e-5)
    known = [[vocabulary_of(place / "source.model").encode(TEXTS)] for place in (folder, tmp_path / "again")]
    assert known[0] == known[1]


def test_ctranslate2_gives_every_subword_our_probability_and_its_page_tells_how_to_translate(
    imported: tuple[str, Path], tmp_path: Path
) -> None:
    _, folder = imported
    export(folder, tmp_path / "fast", "ctranslate2")
    model = load_folder(folder)
    known = load_vocabularies(folder, model)
    pairs = [*pairs_of(model, known[0], ()), *pairs_of(model, known[0], TEXTS)]
    assert agreement_of_ctranslate2(model, known, tmp_path / "fast", pairs) < 1e-4
    page = (tmp_path / "fast/README.md").read_text(encoding="utf-8")
    script = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    script = script.replace('["A sentence.", "Another one."]', repr(TEXTS)).replace(
        "beam_size=4", "beam_size=1, max_decoding_length=60"
    )
    told = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path / "fast",
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    same = 0
    for ids, line in zip(known[0].encode(TEXTS), told.stdout.splitlines(), strict=True):
        found = searched(model, ids, beam=1, length_penalty=0.0)
        text = known[1].decode([found])[0]
        # It has its own limit, at which it stops in the middle of a translation that never ends by itself.
        assert line.startswith(text) or text.startswith(line)
        same += line == text
    assert same


def test_graphs_give_every_subword_our_probability_and_their_script_translates_as_we_do(
    imported: tuple[str, Path], tmp_path: Path
) -> None:
    family, folder = imported
    if family == "bart":
        with pytest.raises(UserError, match="cannot cut text into a BART's subwords: use another --format"):
            export(folder, tmp_path / "graphs", "onnx")
        assert not [*tmp_path.iterdir()]
        return
    export(folder, tmp_path / "graphs", "onnx")
    model = load_folder(folder)
    known = load_vocabularies(folder, model)
    assert agreement_of_onnx(model, tmp_path / "graphs", pairs_of(model, known[0], TEXTS)) < 1e-4
    texts = [text for text, ids in zip(TEXTS, known[0].encode(TEXTS), strict=True) if length_limit(len(ids)) < 64]
    flags = "--beam 2 --length-penalty 1 --length-offset 0 --early-stopping false"
    told = subprocess.run(
        [sys.executable, "-I", tmp_path / "graphs/translate.py", *flags.split()],
        input="".join(f"{line}\n" for line in texts),
        capture_output=True,
        encoding="utf-8",
        check=True,
        timeout=300,
    )
    search: dict[str, Any] = {"beam": 2, "length_penalty": 1.0, "early_stopping": False}
    found = [searched(model, ids, **search) for ids in known[0].encode(texts)]
    assert len(texts) > 2 and told.stdout.splitlines() == known[1].decode(found)


def test_a_folder_says_where_the_model_is_from_and_what_its_texts_begin_with(imported: tuple[str, Path]) -> None:
    family, folder = imported
    page = (folder / "README.md").read_text(encoding="utf-8")
    names = {"m2m100": "M2M100", "nllb": "M2M100", "bart": "BART", "mbart": "mBART", "mbart25": "mBART"}
    assert f"Made from the {names[family]} model theirs" in page
    about = read_json(folder / "pretrained/about.json")
    assert (about["source_language"], about["target_language"]) == LANGUAGES[family]
    if family == "mbart25":
        assert "Each source sentence ends with `</s> en_XX`." in page
        return
    begins = {"m2m100": "__de__", "nllb": "deu_Latn", "bart": "<s>", "mbart": "de_DE"}[family]
    assert f"Each translation begins with `{begins}`." in page
