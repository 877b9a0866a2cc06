"""Models whose only tokeniser file is a tokenizer.json, as transformers 5 writes it, have its subwords and texts."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import tokenizers

from fairseq_models import (
    ALL_LANGUAGES,
    CLASSES,
    LANGUAGES,
    TOKENISERS,
    in_their_ids,
    numberings_in,
    rewrite_by_transformers,
    save_model,
    save_subwords,
)
from heads.base.files import UserError
from heads.interop.bundle import saved_bundle
from heads.interop.downloads import fetched
from heads.interop.export import export
from heads.interop.opening import import_any
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import BOS, EOS, UNK
from many_lines import composed, lines
from marian_models import save_marian, transformers
from slow_ones import slow_but
from small_server import serving_hub

KINDS = {"bart": "bytes", "mbart": "unigram", "mbart25": "unigram", "nllb": "bpe"}


@pytest.fixture(scope="module", params=slow_but(("bart", "nllb"), TOKENISERS))
def described(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Any]:
    """The family, a place with its model in `theirs` and as imported in `ours`, and its tokeniser."""
    family, place = request.param, tmp_path_factory.mktemp("described")
    save_subwords(place / "theirs", family, KINDS[family], lines()[::2], 700)
    save_model(place / "theirs", family)
    tokeniser = rewrite_by_transformers(place / "theirs", family)
    assert {path.name for path in (place / "theirs").iterdir()} == {
        *("config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
    }
    import_any(str(place / "theirs"), place / "ours", languages=LANGUAGES[family])
    return family, place, tokeniser


def test_subwords_of_a_thousand_lines_are_those_of_transformers(described: tuple[str, Path, Any]) -> None:
    family, place, tokeniser = described
    both = numberings_in(place / "theirs", family)
    for side, ours in zip(("source", "target"), both, strict=True):
        told = {"text": [*lines()]} if side == "source" else {"text_target": [*lines()]}
        expected = tokeniser(**told)["input_ids"]
        vocabulary = vocabulary_of(place / f"ours/{side}.model")
        # Where our frame is not theirs: a translation's language is what a search begins with.
        ends = [EOS, BOS] if (family, side) == ("mbart25", "target") else [EOS]
        found = [in_their_ids(ours.rows, [*ids, *ends]) for ids in vocabulary.encode(lines())]
        assert found == expected
        assert len(vocabulary) == len(ours.rows) and [*map(vocabulary.subword, range(len(ours.rows)))] == [*ours.names]
    unknown = tokeniser.unk_token_id
    assert family == "bart" or sum(unknown in ids for ids in expected) > 50
    assert sum(unknown not in ids for ids in expected) > 400


def test_texts_come_back_as_transformers_gives_them_back(described: tuple[str, Path, Any]) -> None:
    family, place, tokeniser = described
    _, ours = numberings_in(place / "theirs", family)
    vocabulary = vocabulary_of(place / "ours/target.model")
    found = vocabulary.encode(lines())
    theirs = [tokeniser.decode(in_their_ids(ours.rows, ids), skip_special_tokens=True) for ids in found]
    assert vocabulary.decode(found) == theirs
    assert sum(text == line for text, line in zip(theirs, lines(), strict=True)) > 300
    assert vocabulary.decode([[BOS, *found[0], EOS]]) == theirs[:1], "what is no text stays none"


def test_a_span_has_the_characters_of_its_subword(described: tuple[str, Path, Any]) -> None:
    family, place, _ = described
    vocabulary = vocabulary_of(place / "ours/source.model")
    before, after = (len(end) for end in (vocabulary.prefix, vocabulary.suffix))
    assert (before, after) == {"mbart25": (0, 1)}.get(family, (1, 0))
    for line in composed():
        ids, spans = vocabulary.spans(line)
        assert [ids] == vocabulary.encode([line]) and len(spans) == len(ids)
        assert {*spans[:before], *spans[len(spans) - after :]} == {(0, 0)}
        spans, ids = spans[before : len(spans) - after], ids[before : len(ids) - after]
        if family != "bart" or line.isascii():  # several bytes of one letter have the same span
            assert "".join("".join(line[start:end] for start, end in spans).split()) == "".join(line.split())
        for (start, end), text, number in zip(spans, vocabulary.subwords(ids), ids, strict=True):
            if number != UNK and "\ufffd" not in text:
                assert line[start:end].strip() == text.strip("\u2581"), (line, text)


def test_blanks_are_shown_alike_whatever_cuts_the_text(described: tuple[str, Path, Any]) -> None:
    _, place, _ = described
    vocabulary = vocabulary_of(place / "ours/source.model")
    (ids,) = vocabulary.encode(["a cat"])
    ids = ids[len(vocabulary.prefix) : len(ids) - len(vocabulary.suffix)]
    assert "".join(vocabulary.subwords(ids)).removeprefix("\u2581") == "a\u2581cat"


def test_tokenizer_json_is_read_with_whatever_transformers_4_put_into_it(tmp_path: Path) -> None:
    """A normaliser of mBART that transformers 5 leaves out, and subwords of bytes in the place of unknown ones."""
    save_subwords(tmp_path / "theirs", "mbart25", "unigram")
    save_model(tmp_path / "theirs", "mbart25")
    rewrite_by_transformers(tmp_path / "theirs", "mbart25")
    path = tmp_path / "theirs/tokenizer.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    told["normalizer"] = {"type": "NFKC"}
    bytes_of = [[f"<0x{number:02X}>", -9.0] for number in range(256)]
    told["model"] |= {"byte_fallback": True, "vocab": [*told["model"]["vocab"], *bytes_of]}
    told["decoder"] = {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, told["decoder"]]}
    path.write_text(json.dumps(told), encoding="utf-8")
    theirs = tokenizers.Tokenizer.from_file(str(path))
    save_again(tmp_path / "theirs", "mbart25", theirs.get_vocab_size())
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", languages=LANGUAGES["mbart25"])
    vocabulary = vocabulary_of(tmp_path / "ours/target.model")
    rows = numberings_in(tmp_path / "theirs", "mbart25")[1].rows
    found = vocabulary.encode(lines())
    assert [in_their_ids(rows, ids) for ids in found] == [theirs.encode(line).ids[:-2] for line in lines()]
    assert vocabulary.decode(found) == [theirs.decode(theirs.encode(line).ids) for line in lines()]
    assert vocabulary.decode(vocabulary.encode(["ﬁ ☃"])) == ["fi ☃"]


def save_again(folder: Path, family: str, rows: int) -> None:
    """Write the model again, with so many rows."""
    kind = {"mbart25": transformers.MBartForConditionalGeneration}[family]
    model = kind.from_pretrained(folder)
    model.resize_token_embeddings(rows, mean_resizing=False)
    model.save_pretrained(folder)


def test_of_two_descriptions_that_differ_the_one_that_transformers_reads_counts(tmp_path: Path) -> None:
    save_subwords(tmp_path / "theirs", "mbart", "unigram")
    save_model(tmp_path / "theirs", "mbart")
    shutil.copytree(tmp_path / "theirs", tmp_path / "both")
    rewrite_by_transformers(tmp_path / "both", "mbart")
    shutil.copyfile(tmp_path / "theirs/sentencepiece.bpe.model", tmp_path / "both/sentencepiece.bpe.model")
    import_any(str(tmp_path / "both"), tmp_path / "agreed", languages=LANGUAGES["mbart"])
    assert "names" not in json.loads((tmp_path / "agreed/source.json").read_text(encoding="utf-8"))
    path = tmp_path / "both/tokenizer.json"
    told = json.loads(path.read_text(encoding="utf-8"))
    subwords = told["model"]["vocab"]
    subwords[5], subwords[6] = subwords[6], subwords[5]
    path.write_text(json.dumps(told), encoding="utf-8")
    tokeniser = transformers.AutoTokenizer.from_pretrained(tmp_path / "both")
    import_any(str(tmp_path / "both"), tmp_path / "ours", languages=LANGUAGES["mbart"])
    ours, rows = vocabulary_of(tmp_path / "ours/source.model"), numberings_in(tmp_path / "both", "mbart")[0].rows
    found = [in_their_ids(rows, [*ids, EOS]) for ids in ours.encode(lines()[:99])]
    assert found == tokeniser([*lines()[:99]])["input_ids"]
    agreed = vocabulary_of(tmp_path / "agreed/source.model")
    assert found != [in_their_ids(rows, [*ids, EOS]) for ids in agreed.encode(lines()[:99])]


def save_described(folder: Path, around: str) -> Any:
    """Write a tokeniser that was trained with `tokenizers` beside a Marian's weights, and nothing else; return it."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="<unk>", fuse_unk=True))
    made.normalizer = tokenizers.normalizers.NFKC()
    made.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    made.decoder = tokenizers.decoders.Metaspace()
    special = ["</s>", "<unk>", "<s>", ">>deu<<", ">>nld<<", "<pad>"]
    trainer = tokenizers.trainers.BpeTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    made.train_from_iterator(lines()[::2], trainer)
    signs = [(name, made.token_to_id(name)) for name in ("</s>", "<s>")]
    made.post_processor = tokenizers.processors.TemplateProcessing(single=around, special_tokens=signs)
    told = {"eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"}
    tokeniser = transformers.PreTrainedTokenizerFast(tokenizer_object=made, **told)
    folder.mkdir()
    # The model is made for a vocab.json, which is taken away again.
    (folder / "vocab.json").write_text(json.dumps(made.get_vocab()), encoding="utf-8")
    pad = made.token_to_id("<pad>")
    save_marian(folder, pad_token_id=pad, decoder_start_token_id=pad)
    (folder / "vocab.json").unlink()
    tokeniser.save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


def test_a_marian_with_a_tokeniser_of_its_own_is_read_if_its_texts_end_as_marians_do(tmp_path: Path) -> None:
    tokeniser = save_described(tmp_path / "theirs", "$A </s>")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", ">>nld<<")
    rows = numberings_in(tmp_path / "theirs", "marian")[0].rows
    for side, begins in (("source", [">>nld<<"]), ("target", [])):
        vocabulary = vocabulary_of(tmp_path / f"ours/{side}.model")
        expected = [[*tokeniser.convert_tokens_to_ids(begins), *ids] for ids in tokeniser([*lines()])["input_ids"]]
        assert [in_their_ids(rows, [*ids, EOS]) for ids in vocabulary.encode(lines())] == expected
    with pytest.raises(UserError, match=r"Marian cuts texts with SentencePiece, but this model's tokenizer\.json does"):
        export(saved_bundle(tmp_path / "ours"), tmp_path / "back", "huggingface")
    with pytest.raises(UserError, match="give one as the prefix, such as >>deu<<"):
        import_any(str(tmp_path / "theirs"), tmp_path / "none")
    for number, around in enumerate(("<s> $A </s>", "$A")):
        save_described(tmp_path / f"other {number}", around)
        with pytest.raises(UserError, match=r"tokenizer\.json puts \[.*\] around texts, not only </s> behind them"):
            import_any(str(tmp_path / f"other {number}"), tmp_path / "none", ">>nld<<")
    assert not (tmp_path / "none").exists() and not (tmp_path / "back").exists()


def test_languages_of_an_m2m100_are_found_in_its_tokenizer_json(tmp_path: Path) -> None:
    save_subwords(tmp_path / "theirs", "m2m100")
    save_model(tmp_path / "theirs", "m2m100")
    save_subwords(tmp_path / "bytes", "bart")
    made = tokenizers.ByteLevelBPETokenizer(*(str(tmp_path / f"bytes/{name}") for name in ("vocab.json", "merges.txt")))
    made.add_special_tokens([*ALL_LANGUAGES["m2m100"], "<mask>"])
    for name in ("vocab.json", "sentencepiece.bpe.model", "special_tokens_map.json"):
        (tmp_path / "theirs" / name).unlink()
    made.save(str(tmp_path / "theirs/tokenizer.json"))
    model = CLASSES["m2m100"].from_pretrained(tmp_path / "theirs")
    model.resize_token_embeddings(made.get_vocab_size(), mean_resizing=False)
    model.save_pretrained(tmp_path / "theirs")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", languages=("en", "de"))
    rows = numberings_in(tmp_path / "theirs", "m2m100")[0].rows
    found = vocabulary_of(tmp_path / "ours/source.model").encode(lines()[:300])
    first = made.token_to_id("__en__")
    assert [in_their_ids(rows, ids) for ids in found] == [[first, *made.encode(line).ids] for line in lines()[:300]]


@pytest.mark.parametrize("family", ["mbart25", "marian"])
def test_a_name_on_the_hub_is_fetched_with_its_tokenizer_json(
    family: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = tmp_path / "site/Some-Lab/model/resolve/main"
    files.parent.mkdir(parents=True)
    if family == "marian":
        save_described(files, "$A </s>")
    else:
        save_subwords(files, family, KINDS[family])
        save_model(files, family)
        rewrite_by_transformers(files, family)
    with serving_hub(tmp_path / "site") as hub:
        folder = fetched("Some-Lab/model", hub=hub)
    prefix = ">>deu<<" if family == "marian" else ""
    for number, place in enumerate((folder, files)):
        import_any(str(place), tmp_path / f"ours {number}", prefix, languages=LANGUAGES[family])
    one, other = (vocabulary_of(tmp_path / f"ours {number}/source.model") for number in (0, 1))
    assert one.encode(lines()[:50]) == other.encode(lines()[:50])


SPOILT: tuple[tuple[str, Callable[[str], str], str], ...] = (
    ("nllb", lambda text: text[:-9], r"tokenizer\.json"),
    ("mbart", lambda text: text.replace('"Unigram"', '"Onegram"'), r"tokenizer\.json does not describe subwords"),
    ("mbart", lambda text: text.replace('"<unk>"', '"<none>"'), r"has no <unk>"),
    ("nllb", lambda text: "[]", r"tokenizer\.json"),
)


@pytest.mark.parametrize(("family", "spoil", "sentence"), SPOILT)
def test_a_description_that_cannot_be_read_is_one_sentence(
    family: str, spoil: Callable[[str], str], sentence: str, tmp_path: Path
) -> None:
    save_subwords(tmp_path / "theirs", family, KINDS[family])
    save_model(tmp_path / "theirs", family)
    rewrite_by_transformers(tmp_path / "theirs", family)
    path = tmp_path / "theirs/tokenizer.json"
    path.write_text(spoil(path.read_text(encoding="utf-8")), encoding="utf-8")
    with pytest.raises(UserError, match=sentence) as told:
        import_any(str(tmp_path / "theirs"), tmp_path / "ours", languages=LANGUAGES[family])
    assert "\n" not in str(told.value)
    assert not (tmp_path / "ours").exists()
