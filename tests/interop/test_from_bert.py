"""An imported BERT has the subwords and logits of transformers' own, and can be exported back, pruned or not."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tokenizers
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bert_models import EXAMPLES, LABELS, SUBWORDS, encoded, rename, save_bert, save_tokeniser, transformers
from heads.__main__ import main
from heads.base.files import UserError, read_json, read_tsv, write_lines
from heads.interop.bert.format import WORD_PIECES
from heads.interop.bert.importing import labels_of, model_of_bert
from heads.interop.bert.reading import read_bert
from heads.interop.bundle import saved_bundle
from heads.interop.downloads import fetched
from heads.interop.export_encoder import export_encoder
from heads.interop.hub import CONFIG, PICKLED, WEIGHTS
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.model.encoder_only import Classifier
from heads.model.folder import load_classifier, save_folder
from heads.model.head_removal import prune
from heads.model.shape import facts_of
from heads.text.batches import pad
from heads.text.encoding import vocabulary_of, vocabulary_or_labels
from heads.text.labels import Labels
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.wordpieces import WordPieces
from marian_models import changed
from small_server import serving_hub

FORMS: dict[str, dict[str, Any]] = {
    "today's": {},
    "a list of words": {"form": "vocab.txt"},
    "with capitals": {"form": "vocab.txt", "lowercase": False},
    "gamma and beta": {"rename": [("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")]},
    "another epsilon, relu": {"layer_norm_eps": 0.3, "hidden_act": "relu"},
    "three token types": {"type_vocab_size": 3, "max_position_embeddings": 64},
}


def made(folder: Path, changes: dict[str, Any]) -> tuple[Any, Any]:
    """A folder of transformers, and its tokeniser and model."""
    changes = dict(changes)
    names = changes.pop("rename", [])
    form = {key: changes.pop(key) for key in ("form", "lowercase") if key in changes}
    tokeniser, model = save_tokeniser(folder, **form), save_bert(folder, **changes)
    rename(folder, *names)
    return tokeniser, model


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT in the folder `theirs`, imported into `ours`; a test leaves both as they are."""
    place = tmp_path_factory.mktemp("taken")
    made(place / "theirs", {})
    import_any(str(place / "theirs"), place / "ours")
    return place


def logits_of(model: Classifier, vocabulary: Any, lines: tuple[str, ...] = EXAMPLES) -> Tensor:
    source, mask = pad([np.array(row) for row in vocabulary.encode(lines)])
    with torch.no_grad():
        found: Tensor = model.projection(model(source, mask))[:, 0]
    return found


@torch.no_grad()
def theirs(model: Any, tokeniser: Any, lines: tuple[str, ...] = EXAMPLES) -> Tensor:
    found: Tensor = model(**encoded(tokeniser, lines)).logits
    return found


@pytest.mark.parametrize("form", FORMS)
def test_subwords_and_logits_are_those_of_transformers(tmp_path: Path, form: str) -> None:
    tokeniser, model = made(tmp_path / "theirs", FORMS[form])
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    vocabulary = vocabulary_of(tmp_path / "ours/source.model")
    ids = [[tokeniser.convert_ids_to_tokens(n) for n in tokeniser(*line.split("\t")).input_ids] for line in EXAMPLES]
    assert [[vocabulary.subword(n) for n in row] for row in vocabulary.encode(EXAMPLES)] == ids
    assert len({subword for row in ids for subword in row} & {"[UNK]", "##s", "##ing"}) == 3
    ours = logits_of(load_classifier(tmp_path / "ours"), vocabulary)
    expected = theirs(model, tokeniser)
    torch.testing.assert_close(ours, expected, rtol=0, atol=1e-5)
    assert (expected[0] - expected[1]).abs().max() > 0.1


def test_special_subwords_stand_where_ours_do_and_every_other_keeps_its_text(taken: Path) -> None:
    vocabulary = WordPieces(taken / "ours/source.model")
    assert [vocabulary.subword(n) for n in (PAD, BOS, EOS, UNK)] == ["[PAD]", "[CLS]", "[SEP]", "[UNK]"]
    assert {vocabulary.subword(n) for n in range(len(vocabulary))} == {*SUBWORDS}
    rows = vocabulary.encode(["the cat\tthe dog", "dogs"])
    assert [[vocabulary.subword(n) for n in row] for row in rows] == [
        ["[CLS]", "the", "cat", "[SEP]", "the", "dog", "[SEP]"],
        ["[CLS]", "dog", "##s", "[SEP]"],
    ]
    assert vocabulary.subwords(rows[1][1:3]) == ["\u2581dog", "s"]
    ids, lengths = vocabulary.arrays(["the cat\tthe dog", "dogs"])
    assert ids.tolist() == [*rows[0], *rows[1]] and lengths.tolist() == [7, 4]


def test_a_span_is_of_the_characters_of_its_subword(taken: Path) -> None:
    sentence = "The  dogs, sleeping"
    ids, spans = vocabulary_of(taken / "ours/source.model").spans(sentence)
    assert [sentence[start:end].lower() for start, end in spans] == ["the", "dog", "s", ",", "sleep", "ing"]
    assert len(ids) == 6


def test_the_labels_are_those_of_its_config_in_its_order_or_those_given(taken: Path, tmp_path: Path) -> None:
    assert Labels(taken / "ours/target.model").words == ["neutral", "entailment", "contradiction"]
    labels = vocabulary_or_labels(taken / "ours/target.model").arrays(["contradiction", "entailment"])[0]
    assert labels.tolist() == [2, 1]
    import_any(str(taken / "theirs"), tmp_path / "named", labels=["yes", "maybe", "no"])
    assert Labels(tmp_path / "named/target.model").words == ["yes", "maybe", "no"]


BOTH = "a pooler and a classifier: random ones are added, which predict nothing until"
ONE = "a classifier: a random one is added, which predicts nothing until"


@pytest.mark.parametrize(
    ("kind", "pooler", "lacking"),
    [
        ("BertModel", True, ONE),
        ("BertForPreTraining", True, ONE),
        ("BertModel", False, BOTH),
        ("BertForMaskedLM", True, BOTH),
    ],
)
def test_a_model_without_a_classifier_or_a_pooler_gets_those_that_are_to_be_trained(
    tmp_path: Path, *, kind: str, pooler: bool, lacking: str
) -> None:
    tokeniser, folder = save_tokeniser(tmp_path / "theirs"), tmp_path / "theirs"
    model = save_bert(folder, kind, pooler=pooler)
    with pytest.raises(UserError, match="has no classifier, so its labels are unknown: name the ones to learn"):
        labels_of(read_bert(OriginalFiles(folder)))
    said = import_any(str(folder), tmp_path / "ours", labels=["a", "b", "c", "d"]).note
    assert said.startswith(f"The model came without {lacking}")
    assert said in (tmp_path / "ours/README.md").read_text(encoding="utf-8")
    ours = load_classifier(tmp_path / "ours")
    with torch.no_grad():
        outputs = (model if kind == "BertModel" else model.bert)(**encoded(tokeniser, EXAMPLES))
        read = torch.tanh(outputs.last_hidden_state[:, 0] @ ours.pooler.weight.T + ours.pooler.bias)
        pooled = read if lacking == BOTH else outputs.pooler_output
        expected = pooled @ ours.projection.weight.T + ours.projection.bias
    found = logits_of(ours, vocabulary_of(tmp_path / "ours/source.model"))
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-5)
    assert (expected[0] - expected[1]).abs().max() > 1e-4
    assert ours.projection.weight.shape == (4, 12) and ours.projection.weight.std() > 0.005


def test_what_is_drawn_anew_is_as_bert_draws_it_and_hangs_on_the_seed_alone(tmp_path: Path) -> None:
    save_tokeniser(tmp_path)
    save_bert(tmp_path, "BertModel", pooler=False, hidden_size=64)
    folder = read_bert(OriginalFiles(tmp_path))
    first, again, other = (model_of_bert(folder, ["a", "b"], seed).state_dict() for seed in (1, 1, 2))
    drawn = {name for name in first if not torch.equal(first[name], other[name])}
    assert drawn == {"pooler.weight", "projection.weight"}
    assert all(torch.equal(first[name], again[name]) for name in drawn)
    # 64 x 64 draws: their mean and spread are known to within 4 standard errors.
    weights = first["pooler.weight"]
    assert abs(float(weights.mean())) < 4 * 0.02 / 64 and abs(float(weights.std()) - 0.02) < 4 * 0.02 / 64 / 2**0.5
    assert not first["pooler.bias"].any() and not first["projection.bias"].any()
    assert not torch.equal(weights[:2], first["projection.weight"])


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("left", ["all", "few"])
def test_a_model_goes_back_to_transformers_with_zeros_for_heads_that_were_cut_out(tmp_path: Path, left: str) -> None:
    cut = left == "few"
    tokeniser, original = made(tmp_path / "theirs", {})
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    folder, model = tmp_path / "ours", load_classifier(tmp_path / "ours")
    if cut:
        model = prune(model, {"enc_self": [[True, False], [False, True], [False, False]]})
        assert isinstance(model, Classifier)
        save_folder(model, folder, facts_of(folder), facts_of(folder)["provenance"])
    difference = export_encoder(saved_bundle(folder), tmp_path / "back", "huggingface", examples=EXAMPLES)
    assert difference is not None and difference < 1e-5
    back = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "back").eval()
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    ours = logits_of(load_classifier(folder), vocabulary_of(folder / "source.model"))
    torch.testing.assert_close(theirs(back, read), ours, rtol=0, atol=1e-5)
    itself = tokenizers.Tokenizer.from_file(str(tmp_path / "back/tokenizer.json")).encode("the cats", "a dog")
    assert itself.ids == read("the cats", "a dog").input_ids and itself.type_ids == [0] * 5 + [1] * 3
    assert torch.allclose(ours, theirs(original, tokeniser), atol=1e-4) is not cut
    assert back.config.id2label == {number: label.lower() for number, label in LABELS.items()}
    first, second = back.bert.encoder.layer[1].attention.self.query.weight.split(6)
    assert bool((first == 0).all()) is cut and bool((second != 0).all())
    assert bool((back.bert.encoder.layer[2].attention.self.query.weight == 0).all()) is cut
    import_any(str(tmp_path / "back"), tmp_path / "round")
    again = logits_of(load_classifier(tmp_path / "round"), vocabulary_of(tmp_path / "round/source.model"))
    torch.testing.assert_close(again, ours, rtol=0, atol=1e-5)


def more_words(folder: Path) -> None:
    tokeniser = read_json(folder / WORD_PIECES)["model"]
    tokeniser["vocab"]["one more"] = len(SUBWORDS)
    changed(folder / WORD_PIECES, model=tokeniser)


PRUNED = {"0": [0], "2": [0, 1]}
"""Heads that are cut out of the matrices of a BERT, as older transformers wrote it down: `pruned_heads`."""


def without_heads(folder: Path, kind: str) -> None:
    """Cut the heads in PRUNED, 6 wide, out of the matrices of a folder."""
    before = "bert." if kind != "BertModel" else ""
    weights = load_file(folder / WEIGHTS)
    for layer, heads in PRUNED.items():
        left = [column for head in range(2) if head not in heads for column in range(6 * head, 6 * head + 6)]
        name = f"{before}encoder.layer.{layer}.attention"
        for part in ("query", "key", "value"):
            for end in ("weight", "bias"):
                weights[f"{name}.self.{part}.{end}"] = weights[f"{name}.self.{part}.{end}"][left].clone()
        weights[f"{name}.output.dense.weight"] = weights[f"{name}.output.dense.weight"][:, left].clone()
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})
    changed(folder / CONFIG, pruned_heads=PRUNED)


def test_a_bert_without_some_of_its_heads_is_read_as_it_is(tmp_path: Path) -> None:
    tokeniser, model = made(tmp_path / "theirs", {})
    without_heads(tmp_path / "theirs", "BertForSequenceClassification")
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    ours = load_classifier(tmp_path / "ours")
    assert ours.shape.live_heads["enc_self"] == ((1,), (0, 1), ())
    with torch.no_grad():
        for layer, heads in PRUNED.items():
            for head in heads:  # what a head gives is nothing if its output columns are zero
                model.bert.encoder.layer[int(layer)].attention.output.dense.weight[:, 6 * head : 6 * head + 6] = 0
    found = logits_of(ours, vocabulary_of(tmp_path / "ours/source.model"))
    torch.testing.assert_close(found, theirs(model, tokeniser), rtol=0, atol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
def test_a_bert_without_some_of_its_heads_is_inspected_and_pruned_further(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs", "BertModel")
    without_heads(tmp_path / "theirs", "BertModel")
    nouns = ("cat", "dog", "house")
    lines = [f"the {one} {did} a {two} {more}." for one in nouns for two in nouns for did in ("saw", "sleep", "unable")
             for more in ("", "white ", "a dog ")]  # fmt: skip
    write_lines(tmp_path / "text", lines)
    given = [str(tmp_path / "theirs"), str(tmp_path / "text"), "--device", "cpu"]
    assert main(["inspect", *given, "-o", str(tmp_path / "page.html"), "--masked", "9"]) == 0
    rows = read_tsv(tmp_path / "page.tsv")
    assert [(row["layer"], row["head"]) for row in rows if row["score_change"]] == [("1", "2"), ("2", "1"), ("2", "2")]
    small = ["-o", str(tmp_path / "small"), "--format", "huggingface", "--by", "gates", "--updates", "6"]
    assert main(["prune", *given, *small, "--keep", "3"]) == 1
    assert "give 1 to 2" in capsys.readouterr().err
    assert main(["prune", *given, *small, "--keep", "2"]) == 0
    assert "2 of 3 heads are left" in capsys.readouterr().err
    table = read_tsv(tmp_path / "small/heads.tsv")
    assert len([row for row in table if row["open"] == "1"]) == 2
    assert {("0", "0"), ("2", "0"), ("2", "1")} <= {(row["layer"], row["head"]) for row in table if row["open"] == "0"}


BAD: tuple[tuple[dict[str, Any] | Callable[[Path], object], str], ...] = (
    ({"model_type": "roberta"}, r"describes roberta, which is not supported: give a model of type .* or bert\."),
    ({"is_decoder": True}, r"is_decoder is True, not False"),
    ({"hidden_act": "gelu_new"}, r"hidden_act is 'gelu_new', not 'gelu' or 'relu'"),
    ({"num_hidden_layers": 0}, r"num_hidden_layers is 0: it must be a positive"),
    ({"hidden_dropout_prob": "a"}, r"hidden_dropout_prob is 'a': it must be at least 0 and below 1"),
    ({"layer_norm_eps": None}, r"layer_norm_eps is None: it must be at least 0"),
    ({"id2label": {"a": "b"}}, r"does not say what its labels mean"),
    ({"num_hidden_layers": 4}, r"no weights called bert\.encoder\.layer\.3\."),
    ({"pruned_heads": {"0": [2]}}, r"pruned_heads is .*, which does not name heads by layer: copy it again"),
    ({"pruned_heads": {"3": [1]}}, r"pruned_heads is .*, which does not name heads by layer: copy it again"),
    ({"pruned_heads": [1]}, r"pruned_heads is \[1\], which does not name heads by layer: copy it again"),
    ({"pruned_heads": {"0": [1]}}, r"weights of encoder\.0\.self_attention\.\w+\.\w+ are 12.* and not 6.*, as"),
    ({"num_attention_heads": 5}, r"hidden_size 12 does not divide into 5 heads"),
    ({"intermediate_size": 15}, r"weights of .* are 14 x 12 and not 15 x 12, as"),
    ({"id2label": {"0": "LABEL_0", "1": "LABEL_1", "2": "x"}}, r"does not say what"),
    ({"id2label": {"0": "a", "1": "b"}}, r"has 3 labels, and not 2: name them"),
    ({"id2label": {"0": "a", "1": "A", "2": "b"}}, r"has the labels a, a, b, not two"),
    ({"id2label": {"0": "a", "1": " ", "2": "d"}}, r"has the labels a, , d, not two or more different ones"),
    ({"id2label": {"0": "LABEL_0"}}, r"does not say what its labels mean: name them with --labels \(in an experiment"),
    (
        {"problem_type": "multi_label_classification"},
        r"config\.json describes a classifier with problem_type 'multi_label_classification': only those that choose",
    ),
    ({"problem_type": "regression"}, r"describes a classifier with problem_type 'regression': only those"),
    ({"architectures": ["BertForTokenClassification"]}, r"with the architecture BertForTokenClassification: only"),
    ({"architectures": ["BertForMultipleChoice"]}, r"with the architecture BertForMultipleChoice: only those"),
    (lambda f: (f / CONFIG).unlink(), r"has no config\.json: copy it from where the model is from"),
    (lambda f: (f / WEIGHTS).unlink(), r"has no model\.safetensors"),
    (lambda f: (f / WORD_PIECES).unlink(), r"has neither tokenizer\.json nor vocab\.txt: copy one"),
    (lambda f: (f / WEIGHTS).rename(f / PICKLED), r"has pickled weights, .* BertForSequenceClassification\.from_"),
    (more_words, r"vocabulary that does not fit its weights, 32 subwords for 31 rows of bert\.emb.*: take all files"),
    (lambda f: changed(f / WORD_PIECES, added_tokens=[{"id": 5}]), r"json does not say which subwords it adds"),
    (lambda f: changed(f / WORD_PIECES, model={"type": "BPE", "vocab": {}}), r"json has a BPE tokeniser, not the"),
    (lambda f: rename(f, ("pooler", "pouler")), r"has a classifier that reads no pooler, like .*: give the folder"),
    (lambda f: rename(f, ("pooler.dense.bias", "x")), r"no weights called bert\.pooler\.dense\.bias: copy model"),
    (lambda f: rename(f, ("classifier.bias", "x")), r"has no weights called classifier\.bias: copy model"),
)
"""Changes to config.json, or to the folder, and what is said."""


@pytest.mark.parametrize(("spoil", "words"), BAD)
def test_a_folder_with_a_fault_is_refused_in_one_sentence_and_nothing_is_left(
    taken: Path, tmp_path: Path, spoil: dict[str, Any] | Callable[[Path], object], words: str
) -> None:
    folder = shutil.copytree(taken / "theirs", tmp_path / "theirs")
    if isinstance(spoil, dict):
        changed(folder / CONFIG, **spoil)
    else:
        spoil(folder)
    with pytest.raises(UserError, match=words) as caught:
        import_any(str(folder), tmp_path / "ours")
    assert "\n" not in str(caught.value)
    assert [path.name for path in tmp_path.iterdir()] == ["theirs"]


def test_a_classifier_with_a_single_label_is_one_of_a_regression_by_name(tmp_path: Path) -> None:
    save_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs", id2label={0: "score"})
    for labels in ([], ["score"], ["yes", "no"]):
        with pytest.raises(UserError, match="a classifier with one label, as for a regression: only those that choose"):
            import_any(str(tmp_path / "theirs"), tmp_path / "ours", labels=labels)
    save_bert(tmp_path / "theirs", "BertModel", problem_type="regression")
    assert import_any(str(tmp_path / "theirs"), tmp_path / "ours").note == "", (
        "a model without a classifier answers no problem"
    )


def test_labels_may_be_any_text_of_a_line(tmp_path: Path) -> None:
    tokeniser, model = made(tmp_path / "theirs", {"id2label": {0: "not  entailment", 1: "5 Stars", 2: "Négatif/😀"}})
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    labels = Labels(tmp_path / "ours/target.model")
    assert labels.words == ["not entailment", "5 stars", "négatif/😀"]
    assert labels.named(["NOT entailment", " 5 stars", "NÉGATIF/😀 "], "x") == labels.words
    export_encoder(saved_bundle(tmp_path / "ours"), tmp_path / "back", "huggingface", examples=EXAMPLES)
    assert read_json(tmp_path / "back/config.json")["id2label"]["1"] == "5 stars"
    found = logits_of(load_classifier(tmp_path / "ours"), vocabulary_of(tmp_path / "ours/source.model"))
    torch.testing.assert_close(found, theirs(model, tokeniser), rtol=0, atol=1e-5)
    with pytest.raises(UserError, match="has the labels Yes, yes, no, not two or more different ones"):
        import_any(str(tmp_path / "theirs"), tmp_path / "none", labels=["Yes", "yes ", "no"])


def test_a_folder_that_is_not_there_says_what_to_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=r"fetch config\.json, .*vocab\.txt or .*huggingface\.co/some/bert/tree/main"):
        read_bert(OriginalFiles(Path("some/bert")))
    with pytest.raises(UserError, match="is no folder: give one as save_pretrained writes it of a BertFor"):
        read_bert(OriginalFiles(tmp_path / "bert"))


@pytest.mark.parametrize("form", ["tokenizer.json", "vocab.txt"])
def test_a_name_on_the_hub_is_fetched_file_by_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = tmp_path / "site/Some-Lab/bert/resolve/main"
    tokeniser, model = made(files, {"form": form})
    with serving_hub(tmp_path / "site") as hub:
        import_any(str(fetched("Some-Lab/bert", hub=hub)), tmp_path / "ours")
        (files / "model.safetensors").unlink()
        shutil.rmtree(tmp_path / "cache")
        with pytest.raises(UserError, match=r"^Some-Lab/bert has no model\.safetensors on the hub"):
            fetched("Some-Lab/bert", hub=hub)
    ours = logits_of(load_classifier(tmp_path / "ours"), vocabulary_of(tmp_path / "ours/source.model"))
    torch.testing.assert_close(ours, theirs(model, tokeniser), rtol=0, atol=1e-5)


def test_a_damaged_vocabulary_is_refused(taken: Path, tmp_path: Path) -> None:
    path = shutil.copytree(taken / "ours", tmp_path / "ours") / "source.model"
    path.write_bytes(path.read_bytes().replace(b"cat", b"cot"))
    with pytest.raises(UserError, match=r"source\.model or source\.json beside it is missing or damaged"):
        vocabulary_of(path)


def test_both_commands_take_a_bert(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made(tmp_path / "theirs", {"id2label": {0: "LABEL_0", 1: "LABEL_1"}})
    given = ["import", str(tmp_path / "theirs"), "-o", str(tmp_path / "ours")]
    main([*given, "--labels", "no", "yes"])
    assert "The model came without" not in capsys.readouterr().err
    main(["export", str(tmp_path / "ours"), "-o", str(tmp_path / "back"), "--format", "huggingface"])
    assert "differs from ours by at most" in capsys.readouterr().err
    assert read_json(tmp_path / "back/config.json")["id2label"] == {"0": "no", "1": "yes"}
    assert main(["export", str(tmp_path / "ours"), "-o", str(tmp_path / "copy")]) == 1
    assert "is already an exported model: copy the folder." in capsys.readouterr().err
    assert np.isfinite(
        logits_of(load_classifier(tmp_path / "ours"), vocabulary_or_labels(tmp_path / "ours/source.model"))
    ).all()


@pytest.mark.parametrize("form", ["tokenizer.json", "vocab.txt", "added_tokens.json"])
def test_added_words_are_found_and_rows_without_a_subword_stay_unread(tmp_path: Path, form: str) -> None:
    """Words added by a user, in whichever file tells of them, and a matrix padded to a multiple of 64."""
    folder = tmp_path / "theirs"
    tokeniser = save_tokeniser(folder, form="vocab.txt" if form == "added_tokens.json" else form)
    model = save_bert(folder)
    tokeniser.add_tokens(["Klingon", "ab+c", tokenizers.AddedToken("[SIGN]", special=True, lstrip=True)])
    model.resize_token_embeddings(len(tokeniser), pad_to_multiple_of=64, mean_resizing=False)
    model.save_pretrained(folder)
    described = {
        str(number): {"content": str(one), "special": one.special, "lstrip": one.lstrip}
        for number, one in tokeniser.added_tokens_decoder.items()
    }
    if form == "tokenizer.json":
        tokeniser.backend_tokenizer.save(str(folder / form))
    elif form == "vocab.txt":
        changed(folder / "tokenizer_config.json", added_tokens_decoder=described)
    else:
        (folder / form).write_text(json.dumps(tokeniser.get_added_vocab()), encoding="utf-8")
        listed = {"additional_special_tokens": [described["33"]]}
        (folder / "special_tokens_map.json").write_text(json.dumps(listed), encoding="utf-8")
    lines = (*EXAMPLES, "the Klingon  [SIGN] catKlingon\tdog ab+c, klingon", "[SIGN] ab+c")
    import_any(str(folder), tmp_path / "ours")
    vocabulary, ours = vocabulary_of(tmp_path / "ours/source.model"), load_classifier(tmp_path / "ours")
    ids = [[tokeniser.convert_ids_to_tokens(n) for n in tokeniser(*line.split("\t")).input_ids] for line in lines]
    assert [[vocabulary.subword(n) for n in row] for row in vocabulary.encode(lines)] == ids
    assert {"klingon", "ab+c", "[SIGN]"} <= {*ids[-2]} and ours.shape.source_subwords == len(vocabulary) == 64
    torch.testing.assert_close(logits_of(ours, vocabulary, lines), theirs(model, tokeniser, lines), rtol=0, atol=1e-5)
    export_encoder(saved_bundle(tmp_path / "ours"), tmp_path / "back", "huggingface", examples=lines)
    back = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "back").eval()
    read = transformers.AutoTokenizer.from_pretrained(tmp_path / "back")
    assert len(read) == 34 and back.config.vocab_size == 64
    torch.testing.assert_close(theirs(back, read, lines), theirs(model, tokeniser, lines), rtol=0, atol=1e-5)
    import_any(str(tmp_path / "back"), tmp_path / "again")
    again = vocabulary_of(tmp_path / "again/source.model")
    assert again.encode(lines) == vocabulary.encode(lines)
