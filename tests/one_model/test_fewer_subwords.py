"""With fewer subwords a model of any family writes the same for the text that they are of, in its own format too."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bert_models import EXAMPLES, encoded, save_bert
from bert_models import save_tokeniser as save_bert_tokeniser
from fairseq_models import LANGUAGES, TEXTS, rewrite_by_transformers
from fairseq_models import save_folder as save_fairseq
from heads.base.files import UserError
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.export import export
from heads.interop.export_encoder import export_encoder
from heads.interop.firefox.fewer import fewer_in, written
from heads.interop.firefox.shortlist import HEADER, Shortlist, read_shortlist
from heads.interop.opening import import_any
from heads.model.folder import load_folder
from heads.one_model.request import PruningRequest
from heads.one_model.smaller_vocabulary import refuse_vocabulary, staying_in, write_with_fewer
from heads.text.encoding import vocabulary_of
from heads.text.fewer_subwords import all_subwords
from heads.text.special_ids import NAMELESS
from marian_files import write_student
from marian_models import save_marian, save_tokeniser, transformers
from model_folders import write_experiment
from slow_ones import slow_but
from t5_models import PREFIX, save_t5

KINDS = (
    *("ours", "firefox", "marian", "marian, bpe", "marian, separate", "T5", "mT5", "UMT5", "MADLAD-400"),
    *("tokenizer.json alone", "m2m100", "nllb", "nllb, tokenizer.json", "mbart", "mbart25", "mbart, tokenizer.json"),
    "bart",
)
ENDINGS: dict[str, dict[str, Any]] = {
    "m2m100": {"ending": 1.5},
    "nllb": {"tie_word_embeddings": False, "ending": 0.6},
    "bart": {"ending": 2},
    "mbart": {"scale_embedding": True, "ending": 1.2},
    "mbart25": {"scale_embedding": True, "ending": 0.5},
}
"""With these, texts end by themselves, at different places."""
OF_T5 = ("T5", "mT5", "UMT5", "MADLAD-400", "tokenizer.json alone")
TEXT = tuple(TEXTS[:3])
"""What the smaller vocabulary is made for, less than what the whole one was learnt from."""
IN_ITS_LANGUAGE = TEXTS[:4]


@cache
def written_by(folder: Path, text: tuple[str, ...]) -> tuple[list[list[int]], list[list[int]]]:
    """The ids of a text, and those that a model writes for it, greedily."""
    torch.set_num_threads(1)
    known = open_translator(
        saved_bundle(folder), torch.device("cpu"), beam=1, length_penalty=0.0, batch_tokens=40, max_subwords=90
    )
    found = list[list[int]]()

    class Noted:
        def decode(self, ids: Sequence[Sequence[int]]) -> list[str]:
            found.extend([int(number) for number in one] for one in ids)
            return ["" for _ in ids]

    sources = known.source.encode(text)
    for ids in sources:
        replace(known, target=Noted()).translate([known.parts(ids)])  # type: ignore[arg-type]
    return sources, found


def save_whole(place: Path, kind: str) -> Path:
    """Write a random model of a kind, and return its folder of ours; the original one is beside it."""
    family, _, form = kind.partition(", ")
    theirs, ours = place / "theirs", place / "ours"
    if family == "ours":
        export(saved_bundle(write_experiment(place / "experiment", TEXTS, TEXTS[::-1]).baseline), ours)
        return ours
    if family == "firefox":
        write_student(theirs, IN_ITS_LANGUAGE)
    elif family == "marian":
        apart = form == "separate"
        save_tokeniser(theirs, kind="bpe" if form == "bpe" else "unigram", separate=apart)
        save_marian(theirs, share_encoder_decoder_embeddings=not apart)
    elif family in OF_T5:
        save_t5(theirs, family, ending=2.0)
    else:
        save_fairseq(theirs, family, **ENDINGS[family])
        if form:
            rewrite_by_transformers(theirs, family)
    import_any(str(theirs), ours, PREFIX if family in OF_T5 else "", languages=LANGUAGES.get(family, ("", "")))
    return ours


@pytest.fixture(scope="module", params=slow_but(("ours", "marian"), KINDS))
def folders(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Path]:
    """The kind, and the folders of the whole model and of the one with the subwords of a text."""
    place = tmp_path_factory.mktemp("fewer")
    whole = save_whole(place, request.param)
    # Firefox's student has hardly more subwords than letters.
    text = TEXT[: 1 if request.param == "firefox" else None]
    used = [{number for line in side for number in line} for side in written_by(whole, text)]
    model = saved_bundle(whole)
    write_with_fewer(model, staying_in(model, used, (text, [])), place / "fewer")
    return request.param, whole, place / "fewer"


def named(folder: Path, ids: Sequence[Sequence[Sequence[int]]]) -> list[list[list[str]]]:
    vocabularies = saved_bundle(folder).translates()[1]
    return [
        [[one.subword(number) for number in line] for line in side] for one, side in zip(vocabularies, ids, strict=True)
    ]


def test_text_and_translations_are_the_same_subwords_as_before(folders: tuple[str, Path, Path]) -> None:
    kind, whole, fewer = folders
    text = TEXT[: 1 if kind == "firefox" else None]
    before, after = (named(folder, written_by(folder, text)) for folder in (whole, fewer))
    assert before == after
    assert len({*map(tuple, before[1])}) > len(text) // 2
    sizes = [[len(all_subwords(one)) for one in saved_bundle(folder).translates()[1]] for folder in (whole, fewer)]
    assert all(one < other for one, other in zip(sizes[1], sizes[0], strict=True))
    assert not any(NAMELESS.fullmatch(name) for name in all_subwords(vocabulary_of(fewer / "target.model")))


def test_any_text_of_known_letters_is_written_without_unknown_subwords(folders: tuple[str, Path, Path]) -> None:
    _, whole, fewer = folders
    before, after = (vocabulary_of(folder / "source.model") for folder in (whole, fewer))
    for line in IN_ITS_LANGUAGE:
        [old], [new] = before.encode([line]), after.encode([line])
        assert new.count(3) <= old.count(3), line
        assert before.decode([old]) == after.decode([new])


@torch.inference_mode()
def test_logits_of_what_is_left_are_the_same(folders: tuple[str, Path, Path]) -> None:
    _, whole, fewer = folders
    before, after = (load_folder(folder) for folder in (whole, fewer))
    names = [all_subwords(vocabulary_of(folder / "target.model")) for folder in (whole, fewer)]
    rows = [names[0].index(name) for name in names[1]]
    ids = [torch.tensor(vocabulary_of(folder / "source.model").encode(TEXT[:1])) for folder in (whole, fewer)]
    start = torch.ones(1, 1, dtype=torch.long)
    one, other = (
        model.projection(model(own, own > 0, start))[0, 0] for model, own in zip((before, after), ids, strict=True)
    )
    assert torch.allclose(one[rows], other, atol=1e-6)


FORMS = {"ours": ("ctranslate2",), "firefox": ("marian", "npz"), "T5": ("huggingface", "ctranslate2", "onnx")}


@pytest.mark.slow
def test_other_formats_have_the_same_probabilities(folders: tuple[str, Path, Path], tmp_path: Path) -> None:
    kind, _, fewer = folders
    for form in FORMS.get(kind, ("huggingface",)):
        export(saved_bundle(fewer), tmp_path / form, form, sentences=TEXT)


def test_an_import_of_what_was_exported_has_our_ids(folders: tuple[str, Path, Path], tmp_path: Path) -> None:
    kind, _, fewer = folders
    if kind == "ours":
        return
    family = kind.partition(", ")[0]
    export(saved_bundle(fewer), tmp_path / "out", "marian" if family == "firefox" else "huggingface", sentences=TEXT)
    spoken = LANGUAGES.get(family, ("", ""))
    import_any(str(tmp_path / "out"), tmp_path / "again", PREFIX if family in OF_T5 else "", languages=spoken)
    for side in ("source", "target"):
        one, other = (vocabulary_of(folder / f"{side}.model") for folder in (fewer, tmp_path / "again"))
        assert all_subwords(one) == all_subwords(other)
        assert one.encode(TEXTS) == other.encode(TEXTS)
        assert (one.prefix, one.suffix) == (other.prefix, other.suffix)
    assert written_by(fewer, tuple(TEXTS)) == written_by(tmp_path / "again", tuple(TEXTS))


TOKENISERS = {"T5": "T5Tokenizer", "mT5": "T5Tokenizer", "m2m100": "M2M100Tokenizer", "nllb": "NllbTokenizer"}
TOKENISERS |= {"mbart": "MBart50Tokenizer", "bart": "BartTokenizer", "marian": "MarianTokenizer"}


@torch.inference_mode()
def test_transformers_writes_the_same_with_the_files_that_are_written(
    folders: tuple[str, Path, Path], tmp_path: Path
) -> None:
    kind, whole, fewer = folders
    if kind not in TOKENISERS:
        return
    export(saved_bundle(fewer), tmp_path / "out", "huggingface", sentences=TEXT)
    spoken = dict(zip(("src_lang", "tgt_lang"), LANGUAGES.get(kind, ("", "")), strict=True))
    told = spoken if any(spoken.values()) else {}
    found = list[list[tuple[list[str], str]]]()
    for folder in (whole.parent / "theirs", tmp_path / "out"):
        tokeniser = getattr(transformers, TOKENISERS[kind]).from_pretrained(folder, **told)
        model = transformers.AutoModelForSeq2SeqLM.from_pretrained(folder).eval()
        # Without a cache, which transformers makes too short for a T5 with more decoder than encoder layers.
        how: dict[str, Any] = {"num_beams": 1, "max_new_tokens": 20, "max_length": None, "use_cache": False}
        how["forced_eos_token_id"] = None
        if told:
            how["forced_bos_token_id"] = tokeniser.convert_tokens_to_ids(
                f"__{told['tgt_lang']}__" if kind == "m2m100" else told["tgt_lang"]
            )
        never = ["<pad>", "<unk>", *(["<s>"] if told else [])]
        nameless = range(len(tokeniser), model.config.vocab_size) if kind in OF_T5 else ()
        how["bad_words_ids"] = [[number] for number in (*tokeniser.convert_tokens_to_ids(never), *nameless)]
        answers = []
        for line in TEXT:
            batch = tokeniser([f"{PREFIX if kind in OF_T5 else ''}{line}"], return_tensors="pt")
            [ids] = model.generate(**batch, **how)
            cut = tokeniser.convert_ids_to_tokens(batch["input_ids"][0])
            answers.append((cut, tokeniser.decode(ids, skip_special_tokens=True)))
        found.append(answers)
        assert model.get_input_embeddings().weight.shape[0] == model.lm_head.weight.shape[0] == model.config.vocab_size
    assert found[0] == found[1]
    assert len({text for _, text in found[0]}) > 1


@pytest.mark.slow
@torch.inference_mode()
def test_a_classifier_answers_the_same_with_the_word_pieces_of_its_examples(tmp_path: Path) -> None:
    save_bert_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    text = EXAMPLES[:2]
    whole = vocabulary_of(tmp_path / "ours/source.model")
    used = {number for line in whole.encode(text) for number in line}
    model = saved_bundle(tmp_path / "ours")
    write_with_fewer(model, staying_in(model, (used, ()), (text, ())), tmp_path / "fewer")
    fewer = vocabulary_of(tmp_path / "fewer/source.model")
    gone = {*all_subwords(whole)} - {*all_subwords(fewer)}
    assert gone >= {"white", "[unused0]"} and not gone & {"[MASK]", "##a", "b", "un", "##able"}
    export_encoder(saved_bundle(tmp_path / "fewer"), tmp_path / "out", "huggingface", examples=text)
    export_encoder(saved_bundle(tmp_path / "fewer"), tmp_path / "graph", "onnx", examples=text)
    logits = []
    for folder in (tmp_path / "theirs", tmp_path / "out"):
        model = transformers.AutoModelForSequenceClassification.from_pretrained(folder).eval()
        logits.append(model(**encoded(transformers.AutoTokenizer.from_pretrained(folder), text)).logits)
    assert torch.allclose(logits[0], logits[1], atol=1e-5)


def test_a_shortlist_has_the_candidates_that_are_left_by_their_new_ids(tmp_path: Path) -> None:
    """Of 3 source subwords the second goes, and of 7 target subwords those numbered 2, 4 and 5."""
    whole = Shortlist(3, np.array([0, 2, 3, 6]), np.array([4, 6, 1, 3, 5, 6], np.uint32))
    fewer = fewer_in(whole, [[0, 2], [0, 1, 3, 6]])
    assert fewer.first == 2 and fewer.offsets.tolist() == [0, 1, 3] and fewer.targets.tolist() == [3, 2, 3]
    header = HEADER.pack(0, 0, 0, 4, 0, 0)
    (tmp_path / "lex.bin").write_bytes(written(fewer, header))
    again = read_shortlist(tmp_path / "lex.bin", (2, 4))
    assert [again.candidates([source]).tolist() for source in (0, 1)] == [[0, 1, 3], [0, 1, 2, 3]]


def test_a_model_of_bytes_has_nothing_to_take_from(tmp_path: Path) -> None:
    save_t5(tmp_path / "theirs", "ByT5")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", PREFIX)
    with pytest.raises(UserError, match=r"nothing but bytes .* leave --vocabulary out"):
        refuse_vocabulary(
            saved_bundle(tmp_path / "ours"), PruningRequest("all", None, None, 1, "surgeon", vocabulary=True)
        )
