"""The classifier: which sentence a subword belongs to, embeddings as in BERT, one answer, pruning."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from heads.base.files import UserError, write_tsv
from heads.model.encoder import sinusoids
from heads.model.encoder_only import Classifier, token_types
from heads.model.folder import load_classifier, load_folder, load_model, model_of, save_folder
from heads.model.head_removal import check_equal, head_rows, open_heads_of, prune, read_open_heads
from heads.model.shape import ModelShape
from heads.text.special_ids import BOS, EOS, PAD

pytestmark = pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")

HEADS = (0, 1, 2)
OF_BERT: dict[str, Any] = {
    "pre_norm": False,
    "attention_biases": True,
    "activation": "gelu",
    "positions": "learned",
    "max_positions": 12,
    "scaled_embedding": False,
    "norm_epsilon": 1e-12,
    "embedding_norm": True,
}
PAIR = [BOS, 5, 6, 7, EOS, 8, 9, EOS]
ONE = [BOS, 9, 5, EOS, PAD, PAD, PAD, PAD]
OPEN = {"enc_self": [[True, False, True], [False] * 3], "dec_self": [], "dec_enc": []}

Build = Callable[..., Classifier]


@pytest.fixture
def classifier(tiny_shape: Callable[..., ModelShape]) -> Build:
    """Builds a float64 classifier with 4 labels in evaluation mode, with no value left at zero or one."""

    def build(**changes: Any) -> Classifier:
        live = {"enc_self": (HEADS,) * 2, "dec_self": (), "dec_enc": ()}
        own = {"labels": 4, "target_subwords": 4, "token_types": 2, "live_heads": live}
        torch.manual_seed(1)
        model = model_of(tiny_shape(**{**own, **changes})).double().eval()
        assert isinstance(model, Classifier)
        generator = torch.Generator().manual_seed(2)
        for value in model.parameters():
            value.data += 0.3 * torch.randn(value.shape, generator=generator, dtype=torch.float64)
        return model

    return build


def logits(model: Classifier, *examples: list[int]) -> torch.Tensor:
    ids = torch.tensor(examples)
    told: torch.Tensor = model.projection(model(ids, ids != PAD))[:, 0]
    return told


def test_the_second_sentence_begins_behind_the_first_separator() -> None:
    assert token_types(torch.tensor([PAIR, ONE])).tolist() == [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0, 0, 1, 1, 1, 1]]


def test_embeddings_are_those_of_subword_position_and_sentence_together_and_then_normed(classifier: Build) -> None:
    model = classifier(**OF_BERT)
    parts = model.source_embedding
    weights = dict(parts.named_parameters())
    first, second = weights["types.weight"]
    for place, (subword, kind) in enumerate(zip(PAIR, [first] * 5 + [second] * 3, strict=True)):
        whole = weights["subwords.weight"][subword] + weights["positions.weight"][place] + kind
        normed = F.layer_norm(whole, (10,), weights["norm.weight"], weights["norm.bias"], 1e-12)
        torch.testing.assert_close(parts(torch.tensor([PAIR]))[0, place], normed)


def test_a_classifier_that_is_trained_here_adds_sinusoids_to_scaled_sums_of_subword_and_sentence(
    classifier: Build,
) -> None:
    parts = classifier().source_embedding
    weights = dict(parts.named_parameters())
    expected = (weights["subwords.weight"][8] + weights["types.weight"][1]) * 10**0.5 + sinusoids(1, 10, 5)[0]
    torch.testing.assert_close(parts(torch.tensor([PAIR]))[0, 5], expected)
    assert set(weights) == {"subwords.weight", "types.weight"}


def test_the_label_is_told_by_the_first_state_through_tanh(classifier: Build) -> None:
    model = classifier(**OF_BERT)
    ids = torch.tensor([PAIR])
    first = model.encode(ids, ids != PAD)[0, 0]
    weight = dict(model.named_parameters())
    pooled = torch.tanh(weight["pooler.weight"] @ first + weight["pooler.bias"])
    torch.testing.assert_close(logits(model, PAIR)[0], weight["projection.weight"] @ pooled + weight["projection.bias"])


@pytest.mark.parametrize("changes", [{}, OF_BERT])
def test_padding_and_what_else_is_in_the_batch_change_no_label(classifier: Build, changes: dict[str, Any]) -> None:
    model = classifier(**changes)
    torch.testing.assert_close(logits(model, PAIR, ONE)[1], logits(model, ONE[:4])[0])


def test_the_order_of_the_two_sentences_matters(classifier: Build) -> None:
    model = classifier()
    turned = [BOS, 8, 9, EOS, 5, 6, 7, EOS]
    assert (logits(model, PAIR) - logits(model, turned)).abs().max() > 1e-3


@pytest.mark.parametrize("changes", [{}, OF_BERT])
def test_heads_are_removed_as_they_are_masked(classifier: Build, changes: dict[str, Any]) -> None:
    model = classifier(**changes)
    smaller = prune(model, OPEN)
    assert smaller.shape.heads() == (("enc_self", 0, 0), ("enc_self", 0, 2))
    check_equal(model, smaller, OPEN)
    rows = [{key: str(value) for key, value in row.items()} for row in head_rows(smaller.double().shape)]
    assert open_heads_of(rows, model.shape) == OPEN
    gates = {"enc_self": [torch.tensor([1.0, 0.0, 1.0]).double(), torch.zeros(3).double()]}
    ids = torch.tensor([PAIR, ONE])
    torch.testing.assert_close(smaller.double()(ids, ids != PAD), model.double()(ids, ids != PAD, None, gates))


@pytest.mark.parametrize("changes", [{}, OF_BERT])
def test_a_classifier_comes_back_from_its_folder_and_is_taken_for_no_translator(
    classifier: Build, tmp_path: Path, changes: dict[str, Any]
) -> None:
    model = classifier(**changes).float()
    save_folder(model, tmp_path / "run", {}, {})
    back = load_classifier(tmp_path / "run")
    assert back.shape == model.shape
    torch.testing.assert_close(logits(back, PAIR), logits(model, PAIR), rtol=0, atol=0)
    with pytest.raises(UserError, match="run holds a model that classifies and does not translate"):
        load_folder(tmp_path / "run")


def test_a_translator_tells_no_labels(tiny_model: Callable[..., Any], tmp_path: Path) -> None:
    save_folder(tiny_model(), tmp_path, {}, {})
    assert type(load_model(tmp_path)) is type(load_folder(tmp_path))
    with pytest.raises(UserError, match="holds a model that translates and predicts no labels"):
        load_classifier(tmp_path)


def test_the_table_of_a_run_with_gates_need_not_name_a_decoder_that_is_not_there(
    classifier: Build, tmp_path: Path
) -> None:
    table = tmp_path / "gates/all/lam-1/seed-1/heads.tsv"
    rows = head_rows(prune(classifier(), OPEN).shape)
    write_tsv(table, rows, tuple(rows[0]))
    assert read_open_heads(table, classifier().shape) == OPEN


@pytest.mark.parametrize(
    "change",
    [
        {"labels": 3},
        {"live_heads": {"enc_self": (HEADS,), "dec_self": (HEADS,), "dec_enc": ()}},
        {"positions": "learned"},
        {"max_positions": 7},
    ],
)
def test_a_shape_that_contradicts_itself_is_refused(classifier: Build, change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"labels|learnt"):
        replace(classifier().shape, **change)
