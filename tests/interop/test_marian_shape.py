"""A Marian model's options say which tensors it has, or that its kind is not supported."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heads.base.files import UserError
from heads.interop.firefox.items import MarianFile, packed
from heads.interop.firefox.shape import check_tensors, shape_of, shapes_of
from marian_files import OPTIONS, small_file

HERE = Path("model.bin")
SMALL = {**OPTIONS, "enc-depth": 1, "dec-depth": 1, "dim-emb": 6, "transformer-dim-ffn": 10, "dim-vocabs": [7, 9]}


def attention(name: str, norm: str) -> dict[str, tuple[int, int]]:
    return {
        **{f"{name}_{part}": (6, 6) for part in ("Wq", "Wk", "Wv", "Wo")},
        **{f"{name}_{part}": (1, 6) for part in ("bq", "bk", "bv", "bo")},
        **{f"{name}_Wo_ln_scale{norm}": (1, 6), f"{name}_Wo_ln_bias{norm}": (1, 6)},
    }


def feed_forward(name: str, norm: str) -> dict[str, tuple[int, int]]:
    return {
        **{f"{name}_W1": (6, 10), f"{name}_b1": (1, 10), f"{name}_W2": (10, 6), f"{name}_b2": (1, 6)},
        **{f"{name}_ffn_ln_scale{norm}": (1, 6), f"{name}_ffn_ln_bias{norm}": (1, 6)},
    }


def test_a_student_with_ssru_has_these_tensors() -> None:
    model = shape_of(HERE, {**SMALL, "dim-vocabs": [9, 9]})
    assert model.recurrent and not model.pre_norm and not model.final_norm and model.vocabularies == (9, 9)
    assert shapes_of(model) == {
        "Wemb": (9, 6),
        "decoder_ff_logit_out_b": (1, 9),
        **attention("encoder_l1_self", ""),
        **feed_forward("encoder_l1_ffn", ""),
        **{"decoder_l1_rnn_W": (6, 6), "decoder_l1_rnn_Wf": (6, 6), "decoder_l1_rnn_bf": (1, 6)},
        **{"decoder_l1_rnn_ffn_ln_scale": (1, 6), "decoder_l1_rnn_ffn_ln_bias": (1, 6)},
        **attention("decoder_l1_context", ""),
        **feed_forward("decoder_l1_ffn", ""),
    }
    pre_norm = {"transformer-preprocess": "n", "transformer-postprocess": "da", "layer-normalization": True}
    names = shapes_of(shape_of(HERE, {**SMALL, **pre_norm, "dim-vocabs": [9, 9]}))
    assert {name: shape for name, shape in names.items() if "rnn" in name} == {
        **{"decoder_l1_rnn_W": (6, 6), "decoder_l1_rnn_Wf": (6, 6), "decoder_l1_rnn_bf": (1, 6)},
        **{"decoder_l1_rnn_gamma": (1, 6), "decoder_l1_rnn_gammaf": (1, 6)},
        **{"decoder_l1_rnn_ln_scale_pre": (1, 6), "decoder_l1_rnn_ln_bias_pre": (1, 6)},
    }


def test_a_teacher_with_norms_first_and_nothing_tied_has_these() -> None:
    told = {
        **{**SMALL, "transformer-decoder-autoreg": "self-attention", "dec-cell": "gru", "tied-embeddings-all": False},
        **{"transformer-preprocess": "n", "transformer-postprocess": "da", "transformer-postprocess-top": "n"},
    }
    model = shape_of(HERE, told)
    assert model.pre_norm and model.final_norm and not model.recurrent and not model.one_embedding
    assert shapes_of(model) == {
        **{"encoder_Wemb": (7, 6), "decoder_Wemb": (9, 6)},
        **{"decoder_ff_logit_out_W": (6, 9), "decoder_ff_logit_out_b": (1, 9)},
        **{"encoder_top_ln_scale": (1, 6), "encoder_top_ln_bias": (1, 6)},
        **{"decoder_top_ln_scale": (1, 6), "decoder_top_ln_bias": (1, 6)},
        **attention("encoder_l1_self", "_pre"),
        **feed_forward("encoder_l1_ffn", "_pre"),
        **attention("decoder_l1_self", "_pre"),
        **attention("decoder_l1_context", "_pre"),
        **feed_forward("decoder_l1_ffn", "_pre"),
    }
    tied = shapes_of(shape_of(HERE, {**told, "tied-embeddings": True, "output-omit-bias": True}))
    assert not [name for name in tied if "logit" in name] and {"encoder_Wemb", "decoder_Wemb"} <= {*tied}
    sources = shapes_of(shape_of(HERE, {**told, "tied-embeddings-src": True, "dim-vocabs": [9, 9]}))
    assert {"Wemb", "decoder_ff_logit_out_W"} <= {*sources} and "decoder_Wemb" not in sources


def test_what_an_old_file_leaves_out_is_as_marian_takes_it() -> None:
    """Defaults of Marian's command line: src/common/config_parser.cpp."""
    model = shape_of(HERE, {"type": "transformer", "enc-depth": 6, "dec-depth": 6, "dim-vocabs": [3, 5]})
    assert (model.heads, model.width, model.feed_forward, model.activation) == (8, 512, 2048, "swish")
    assert not (model.pre_norm or model.recurrent or model.one_embedding or model.tied_output) and model.output_bias


@pytest.mark.parametrize(
    ("key", "value", "told"),
    [
        ("type", "s2s", "only transformer is supported"),
        ("type", "amun", "only transformer is supported"),
        ("type", ["transformer"], "only transformer is supported"),
        ("dec-cell", "gru", "the only supported recurrent layer is ssru"),
        ("transformer-decoder-autoreg", "average-attention", "only self-attention or rnn is supported"),
        ("transformer-ffn-activation", "prelu", "only relu or swish or gelu is supported"),
        ("transformer-ffn-depth", 3, "only 2 is supported"),
        ("transformer-no-projection", True, "only models without it are supported"),
        ("transformer-train-position-embeddings", True, "only models without it are supported"),
        ("transformer-tied-layers", [1, 1], "only models without it are supported"),
        ("transformer-decoder-dim-ffn", 12, "only models without it are supported"),
        ("lemma-dim-emb", 8, "only models without it are supported"),
        ("right-left", True, "only models without it are supported"),
        ("enc-depth", 0, "it must be a whole number above 0"),
        ("dim-emb", "6", "it must be a whole number above 0"),
        ("transformer-heads", True, "it must be a whole number above 0"),
        ("transformer-heads", 4, "divisible by transformer-heads"),
        ("tied-embeddings-all", "yes", "it must be true or false"),
        ("transformer-postprocess", "dhn", "norms must be '' ... dan, or n ... da"),
        ("transformer-preprocess", "n", "norms must be '' ... dan, or n ... da"),
        ("transformer-preprocess", None, "norms must be"),
        ("transformer-postprocess-emb", "nd", "only dropout is supported"),
        ("transformer-postprocess-top", "an", "only a norm, or nothing"),
        ("dim-vocabs", [7], "two sizes"),
        ("dim-vocabs", [7, 0], "two sizes"),
        ("dim-vocabs", None, "two sizes"),
        ("dim-vocabs", [7, 9], "needs one size"),
    ],
)
def test_a_kind_of_model_that_is_not_read_is_told_by_its_option(key: str, value: Any, told: str) -> None:
    with pytest.raises(UserError, match=r"^model\.bin was trained with .*\.$") as raised:
        shape_of(HERE, {**OPTIONS, key: value})
    assert told in str(raised.value)


def test_a_file_has_each_tensor_of_its_model_and_no_other() -> None:
    file = small_file()
    model = shape_of(HERE, file.options())
    check_tensors(HERE, file, model)
    name = "encoder_l2_self_Wk"
    scale = packed(f"{name}_QuantMultA", np.ones((1, 1), np.float32), 0x404)
    check_tensors(HERE, MarianFile({**file.items, scale.name: scale}), model)
    wide = packed(name, np.ones((6, 3), np.float32), 0x404)
    for items, told in (
        ({key: item for key, item in file.items.items() if key != name}, f"lacks {name}"),
        ({**file.items, name: wide}, rf"{name} is \(6, 3\), but \(6, 6\) by its options"),
        ({**file.items, "Wpos": wide}, "has Wpos, which its options do not name"),
    ):
        with pytest.raises(UserError, match=told):
            check_tensors(HERE, MarianFile(items), model)
    with pytest.raises(UserError, match="fewer tensors than layers"):
        check_tensors(HERE, file, shape_of(HERE, {**file.options(), "enc-depth": 10**5}))
