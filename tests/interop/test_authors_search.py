"""The search of a model's authors is ours; what of it ours does not have is said in one line, when it is imported."""

import io
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml

from bert_models import save_bert
from bert_models import save_tokeniser as save_word_pieces
from fairseq_models import LANGUAGES, save_folder
from heads.__main__ import main
from heads.base.files import UserError, read_json
from heads.interop.authors_search import SAMPLING, SEARCH, STEERING
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.families import family_of
from heads.interop.family import ImportOptions
from heads.interop.firefox.file import write
from heads.interop.firefox.parts import decoding_of
from heads.interop.firefox.search import searched_by_marian
from heads.interop.formats import FORMATS
from heads.interop.hub import CONFIG, GENERATION
from heads.interop.opening import import_any, open_model
from heads.interop.original import OriginalFiles
from marian_files import small_file
from marian_models import SENTENCES, changed, save_marian, save_tokeniser, segmenter, transformers

READERS = {each.name: family_of(each).read for each in FORMATS}
SAID = "These settings of its authors are not used: "
ELSEWHERE = {
    *("max_length", "max_new_tokens", "bad_words_ids", "suppress_tokens", "begin_suppress_tokens"),
    *("eos_token_id", "forced_eos_token_id", "forced_bos_token_id", "decoder_start_token_id"),
}
"""Settings whose effect depends on more than their value."""
WITHOUT_EFFECT = {
    *("use_cache", "cache_implementation", "cache_config", "max_cache_len", "low_memory", "prefill_chunk_size"),
    *("compile_config", "disable_compile", "continuous_batching_config", "remove_invalid_values", "use_mtp"),
    *("output_attentions", "output_hidden_states", "output_scores", "output_logits", "return_dict_in_generate"),
    *("is_assistant", "num_assistant_tokens", "num_assistant_tokens_schedule", "assistant_confidence_threshold"),
    *("prompt_lookup_num_tokens", "max_matching_ngram_size", "assistant_early_exit", "assistant_lookbehind"),
    *("target_lookbehind", "assistant_ensemble_weight", "speculation_type", "num_return_sequences"),
    *("pad_token_id", "bos_token_id", "_from_model_config", "transformers_version"),
}
"""Settings of transformers that do not change the best translation."""


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folders of a Marian and of a BART; only to be copied."""
    place = tmp_path_factory.mktemp("good")
    save_tokeniser(place / "marian")
    save_marian(place / "marian")
    save_folder(place / "bart", "bart")
    for family in ("marian", "bart"):
        changed(place / family / GENERATION, max_length=512)
    return place


def test_every_setting_of_transformers_is_one_of_ours_or_named_or_without_effect() -> None:
    known = {*SEARCH, *STEERING, *SAMPLING, *ELSEWHERE}
    told = transformers.GenerationConfig().to_dict().keys()
    assert told <= known | WITHOUT_EFFECT
    assert not known & WITHOUT_EFFECT


def said_of(folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    """What an import says."""
    capfd.readouterr()
    shutil.rmtree(folder.parent / "ours", ignore_errors=True)
    import_any(str(folder), folder.parent / "ours", languages=LANGUAGES.get(folder.name, ("", "")))
    return capfd.readouterr().err


NAMED: tuple[tuple[dict[str, Any], str], ...] = (
    ({"repetition_penalty": 1.2}, "repetition_penalty 1.2"),
    ({"no_repeat_ngram_size": 3, "min_length": 56}, "no_repeat_ngram_size 3, min_length 56"),
    ({"max_length": 142}, "max_length 142"),
    ({"max_new_tokens": 30, "max_length": 20}, "max_new_tokens 30"),
    ({"do_sample": True, "temperature": 0.7, "top_k": 50, "top_p": 0.9}, "do_sample true, temperature 0.7, top_p 0.9"),
    ({"suppress_tokens": [5, 7]}, "suppress_tokens [5, 7]"),
    ({"suppress_tokens": [*range(5, 45)]}, "suppress_tokens (40 values)"),
    ({"begin_suppress_tokens": [4]}, "begin_suppress_tokens [4]"),
    ({"bad_words_ids": [[5, 6]]}, "bad_words_ids [[5, 6]]"),
    ({"bad_words_ids": [[7]]}, "bad_words_ids [[7]]"),
    ({"bad_words_ids": 7}, "bad_words_ids 7"),
    ({"max_length": "long"}, 'max_length "long"'),
    ({"num_beam_groups": 2, "diversity_penalty": 0.5}, "num_beam_groups 2, diversity_penalty 0.5"),
    ({"encoder_no_repeat_ngram_size": 2}, "encoder_no_repeat_ngram_size 2"),
    ({"exponential_decay_length_penalty": [5, 1.1]}, "exponential_decay_length_penalty [5, 1.1]"),
    ({"forced_eos_token_id": 9}, "forced_eos_token_id 9"),
    ({"eos_token_id": [0, 2, 9]}, "eos_token_id [0, 2, 9]"),
    ({"decoder_start_token_id": 8}, "decoder_start_token_id 8"),
)
"""Settings that change what is found, and how they are named."""


@pytest.mark.parametrize(("told", "named"), NAMED)
def test_a_setting_that_changes_what_is_found_is_named(
    good: Path, tmp_path: Path, told: dict[str, Any], named: str
) -> None:
    for family, reader in (("marian", "marian"), ("bart", "fairseq")):
        folder = shutil.copytree(good / family, tmp_path / family)
        changed(folder / GENERATION, **told)
        assert ", ".join(READERS[reader](OriginalFiles(folder), ImportOptions()).unused) == named, family


def test_settings_of_old_folders_stand_in_their_config(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(good / "marian", tmp_path / "marian")
    changed(
        folder / CONFIG,
        num_beams=6,
        no_repeat_ngram_size=2,
        bad_words_ids=[[read_json(folder / CONFIG)["pad_token_id"]]],
    )
    assert said_of(folder, capfd) == ""
    (folder / GENERATION).unlink()
    assert said_of(folder, capfd) == f"{SAID}no_repeat_ngram_size 2.\n"
    assert read_json(tmp_path / "ours/pretrained/about.json")["num_beams"] == 6


def test_values_without_an_effect_are_not_named(good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    defaults = transformers.GenerationConfig._get_default_generation_params()
    assert len(defaults) > 25
    for family in ("marian", "bart"):
        folder = shutil.copytree(good / family, tmp_path / family)
        config = read_json(folder / CONFIG)
        pad, end = config["pad_token_id"], config["eos_token_id"]
        ours = {"max_length": 512, "temperature": 0.5, "top_k": 7, "bad_words_ids": [[pad]], "suppress_tokens": []}
        changed(folder / GENERATION, **{**defaults, **ours, "forced_eos_token_id": end, "eos_token_id": [end]})
        assert said_of(folder, capfd) == "", family


def test_a_first_subword_is_forced_only_where_a_model_has_languages(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    for family, said in (("marian", f"{SAID}forced_bos_token_id 0.\n"), ("bart", "")):
        folder = shutil.copytree(good / family, tmp_path / family)
        changed(folder / GENERATION, forced_bos_token_id=0)
        assert said_of(folder, capfd) == said
    save_folder(tmp_path / "nllb", "nllb")
    changed(tmp_path / "nllb" / GENERATION, forced_bos_token_id=77, max_length=None)
    assert said_of(tmp_path / "nllb", capfd) == ""


def test_a_model_that_stays_in_memory_says_it_too_and_a_bert_searches_nothing(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(good / "marian", tmp_path / "marian")
    changed(folder / GENERATION, repetition_penalty=1.5)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b"a dog .\n"), isatty=lambda: False))
    assert main(["translate", str(folder), "--device", "cpu"]) == 0
    assert capfd.readouterr().err == f"{SAID}repetition_penalty 1.5.\n"
    open_model(str(folder))  # as other commands do
    assert capfd.readouterr().err == f"{SAID}repetition_penalty 1.5.\n"
    save_word_pieces(tmp_path / "bert")
    save_bert(tmp_path / "bert")
    changed(tmp_path / "bert" / CONFIG, repetition_penalty=1.5)
    assert said_of(tmp_path / "bert", capfd) == ""


def student(folder: Path, **settings: Any) -> Path:
    """A model in Marian's own format, with the settings of its decoder."""
    folder.mkdir(exist_ok=True)
    (folder / "vocab.spm").write_bytes(segmenter([*SENTENCES["source"], *SENTENCES["target"]], 60, "unigram"))
    write(folder / "model.bin", small_file(dim_vocabs=[64, 64]))
    told = {"models": ["/home/someone/model.bin"], "vocabs": ["vocab.spm"] * 2, **settings}
    (folder / "decoder.yml").write_text(yaml.safe_dump({key.replace("_", "-"): told[key] for key in told}), "utf-8")
    return folder


def test_a_model_of_marian_is_searched_as_its_settings_say(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    student(tmp_path / "marian", beam_size=3, normalize=0.6, word_penalty=0, mini_batch=1, maxi_batch_sort="src")
    import_any(str(tmp_path / "marian"), tmp_path / "ours")
    assert capfd.readouterr().err == ""
    how: dict[str, Any] = {"batch_tokens": 100, "max_subwords": 50}
    known = open_translator(saved_bundle(tmp_path / "ours"), torch.device("cpu"), beam=None, length_penalty=None, **how)
    found = (known.beam, known.length_penalty, known.length_offset, known.early_stopping)
    assert found == (3, 0.6, 0, True)
    student(tmp_path / "marian", beam_size=12, normalize=True, word_penalty=-0.3, allow_unk=True)
    shutil.rmtree(tmp_path / "ours")
    import_any(str(tmp_path / "marian"), tmp_path / "ours")
    assert capfd.readouterr().err == f"{SAID}word-penalty -0.3, allow-unk true.\n"
    about = read_json(tmp_path / "ours/pretrained/about.json")
    assert (about["num_beams"], about["length_penalty"], about["early_stopping"]) == (12, 1, True)


@pytest.mark.parametrize(
    ("told", "found"),
    [
        ({}, (1, 1, False)),
        ({"normalize": 0.7}, (1, 0.7, False)),
        ({"beam_size": 6}, (6, 0, True)),
        ({"beam_size": 1, "normalize": 1.0}, (1, 1.0, False)),
        ({"beam_size": 4, "normalize": 1, "models": ["another.bin"]}, (4, 1, True)),
    ],
)
def test_what_settings_leave_out_is_as_in_marian_and_without_settings_as_in_firefox(
    tmp_path: Path, told: dict[str, Any], found: tuple[Any, ...]
) -> None:
    assert tuple(searched_by_marian(student(tmp_path / "one", **told) / "model.bin").values()) == found


def test_of_several_settings_those_that_name_the_model_count(tmp_path: Path) -> None:
    folder = student(tmp_path / "one", beam_size=2)
    (folder / "a.yml").write_text("models: [other.bin]\nbeam-size: 7\n", encoding="utf-8")
    (folder / "model.bin.yml").write_text("model: model.bin\nbeam-size: 12\n", encoding="utf-8")
    assert decoding_of(folder / "model.bin")[0].name == "decoder.yml"
    (folder / "decoder.yml").write_text("models: [third.bin]\nbeam-size: 9\n", encoding="utf-8")
    assert searched_by_marian(folder / "model.bin") == SEARCH


@pytest.mark.parametrize(
    "told", [{"beam_size": 0}, {"beam_size": "six"}, {"normalize": "yes"}, {"normalize": float("nan")}]
)
def test_settings_of_marian_that_no_search_can_use_are_one_sentence(tmp_path: Path, told: dict[str, Any]) -> None:
    folder = student(tmp_path / "one", **told)
    (key,) = told
    with pytest.raises(UserError, match=rf"decoder\.yml: {key.replace('_', '-')} is .*, which no search can use"):
        import_any(str(folder), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
