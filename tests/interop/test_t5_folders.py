"""Folders of T5s as older programs wrote them, by hand; languages of MADLAD-400; and relatives that are refused."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from heads.base.files import UserError
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.interop.t5.importing import numbering_of
from heads.interop.t5.reading import read_t5
from heads.model.folder import load_folder
from heads.text.encoding import vocabulary_of
from heads.text.special_ids import EOS
from marian_models import changed, transformers
from t5_models import NORMS, PREFIX, TEXTS, in_double, save_subwords, save_t5

SMALL: dict[str, Any] = {
    "architectures": ["T5WithLMHeadModel"],
    **{"d_ff": 14, "d_kv": 5, "d_model": 12, "num_heads": 3, "num_layers": 2, "dropout_rate": 0.1},
    **{"decoder_start_token_id": 0, "eos_token_id": 1, "pad_token_id": 0, "initializer_factor": 1.0},
    **{"is_encoder_decoder": True, "layer_norm_epsilon": 1e-06, "model_type": "t5", "n_positions": 512},
    **{"output_past": True, "relative_attention_num_buckets": 32},
    "task_specific_params": {"summarization": {"early_stopping": True, "num_beams": 4, "prefix": "summarize: "}},
}
"""What config.json of the first T5s says: nothing of the feed-forward, of ties, or of the farthest distance."""
GATED = {
    **{"architectures": ["T5ForConditionalGeneration"], "feed_forward_proj": "gated-gelu", "num_decoder_layers": 2},
    **{"tie_word_embeddings": False, "dense_act_fn": "gelu_new", "is_gated_act": True, "use_cache": True},
    "transformers_version": "4.23.1",
}
"""What the version 1.1 has besides, as transformers 4 wrote it."""
UNUSED = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
"""A table in files of the first T5s that nothing reads."""


BOTH = ("encoder.embed_tokens.weight", "decoder.embed_tokens.weight")
"""Where transformers 4 wrote the embedding again."""


def weights_of(config: dict[str, Any], rows: int) -> dict[str, Tensor]:
    """Random weights under transformers' names, written out by hand."""
    draw = torch.Generator().manual_seed(3)
    width, inner, units = config["d_model"], config["num_heads"] * config["d_kv"], config["d_ff"]
    sizes: dict[str, tuple[int, ...]] = {"shared.weight": (rows, width)}
    for stack, parts in (("encoder", ["SelfAttention"]), ("decoder", ["SelfAttention", "EncDecAttention"])):
        sizes[f"{stack}.final_layer_norm.weight"] = (width,)
        sizes[f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"] = (32, config["num_heads"])
        for layer in range(2):
            block = f"{stack}.block.{layer}.layer"
            for place, part in enumerate(parts):
                sizes |= {f"{block}.{place}.{part}.{name}.weight": (inner, width) for name in "qkv"}
                sizes[f"{block}.{place}.{part}.o.weight"] = (width, inner)
            last = f"{block}.{len(parts)}.DenseReluDense"
            gated = "feed_forward_proj" in config
            sizes |= {f"{last}.{name}.weight": (units, width) for name in (("wi_0", "wi_1") if gated else ("wi",))}
            sizes[f"{last}.wo.weight"] = (width, units)
            sizes |= {f"{block}.{place}.layer_norm.weight": (width,) for place in range(len(parts) + 1)}
    if config.get("tie_word_embeddings") is False:
        sizes["lm_head.weight"] = (rows, width)
    return {name: 0.5 * torch.randn(size, generator=draw) for name, size in sizes.items()}


def written(folder: Path, *, gated: bool, alike: tuple[str, ...], described: bool) -> None:
    """Write a folder as it lay on the hub.

    alike: further names of the embedding in the file of weights; the encoder's alone is its only one.
    """
    rows = save_subwords(folder, "T5")
    if described:
        transformers.T5Tokenizer.from_pretrained(folder).save_pretrained(folder)
        (folder / "tokenizer_config.json").write_text('{"model_max_length": 512}')
        signs = {f"{name}_token": sign for name, sign in (("eos", "</s>"), ("unk", "<unk>"), ("pad", "<pad>"))}
        more = {"additional_special_tokens": [f"<extra_id_{number}>" for number in range(100)]}
        (folder / "special_tokens_map.json").write_text(json.dumps(signs | more))
    config = {**SMALL, **(GATED if gated else {}), "vocab_size": rows}
    (folder / "config.json").write_text(json.dumps(config))
    weights = weights_of(config, rows)
    weights |= {name: weights["shared.weight"].clone() for name in alike}
    if alike == BOTH[:1]:
        del weights["shared.weight"]
    if not gated:
        weights[UNUSED] = torch.ones(32, 3)
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@torch.inference_mode()
@pytest.mark.parametrize(
    ("gated", "alike", "described"),
    [
        (False, (), False),
        (False, BOTH[:1], False),
        (False, (*BOTH, "lm_head.weight"), True),
        (True, BOTH, True),
        (True, (), False),
    ],
)
def test_a_folder_of_transformers_4_has_the_logits_and_subwords_that_transformers_5_finds_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, gated: bool, alike: tuple[str, ...], described: bool
) -> None:
    theirs = tmp_path / "theirs"
    written(theirs, gated=gated, alike=alike, described=described)
    assert (theirs / "tokenizer.json").is_file() == described and (theirs / "spiece.model").is_file()
    import_any(str(theirs), tmp_path / "ours", PREFIX)
    rows = numbering_of(read_t5(OriginalFiles(theirs))).rows
    tokeniser = transformers.T5Tokenizer.from_pretrained(theirs)
    expected = tokeniser([f"{PREFIX}{text}" for text in TEXTS])["input_ids"]
    source = vocabulary_of(tmp_path / "ours/source.model")
    assert [[rows[number] for number in (*ids, EOS)] for ids in source.encode(TEXTS)] == expected
    for norm in NORMS:
        monkeypatch.setattr(norm, "forward", in_double)
    model = transformers.T5ForConditionalGeneration.from_pretrained(theirs).double().eval()
    ours, ids = load_folder(tmp_path / "ours").double(), torch.tensor([[5, 9, 30, 7, EOS], [8, 8, 31, 40, EOS]])
    begun = torch.cat([torch.ones_like(ids[:, :1]), ids[:, :3]], 1)
    states = ours(ids, torch.ones_like(ids, dtype=torch.bool), begun)
    numbers = torch.tensor(rows)
    logits = model(input_ids=numbers[ids], decoder_input_ids=numbers[begun]).logits
    own = [number for number in range(len(rows)) if number != 1]
    torch.testing.assert_close(ours.projection(states)[..., own], logits[..., numbers[own]], rtol=0, atol=1e-5)
    assert float(logits.std()) > 0.05


@pytest.mark.parametrize("normalized", [True, False])
@pytest.mark.parametrize("alone", [True, False])
def test_the_language_of_a_madlad_is_cut_as_transformers_5_does_where_the_tokeniser_adds_it(
    tmp_path: Path, *, alone: bool, normalized: bool
) -> None:
    """No blank stands before it, whether a blank is behind it or not, beside SentencePiece's model or without it."""
    theirs = tmp_path / "theirs"
    save_t5(theirs, "MADLAD-400")
    tokeniser = transformers.T5Tokenizer.from_pretrained(theirs)
    tokeniser.add_tokens([transformers.AddedToken(name, normalized=normalized) for name in ("<2de>", "<2en>")])
    tokeniser.save_pretrained(theirs)
    added = json.loads((theirs / "tokenizer.json").read_text())["added_tokens"]
    assert {one["normalized"] for one in added if one["content"] == "<2de>"} == {normalized}
    if alone:
        (theirs / "spiece.model").unlink()
    tokeniser = transformers.T5Tokenizer.from_pretrained(theirs)
    rows = numbering_of(read_t5(OriginalFiles(theirs))).rows
    for place, prefix in (("plain", ""), ("german", "<2de> ")):
        import_any(str(theirs), tmp_path / place, prefix)
        source = vocabulary_of(tmp_path / place / "source.model")
        texts = [f"{before}{text}" for text in TEXTS for before in ("", "<2en>", "<2en> ")]
        expected = tokeniser([f"{prefix}{text}" for text in texts])["input_ids"]
        assert [[rows[number] for number in (*ids, EOS)] for ids in source.encode(texts)] == expected
        assert source.subwords(source.prefix) == (["<2de>"] if prefix else [])


def adapter_inside(folder: Path) -> None:
    """Weights with LoRA's beside those of the model, as peft keeps them before they are merged."""
    weights = transformers.T5ForConditionalGeneration.from_pretrained(folder).state_dict()
    name = "encoder.block.0.layer.0.SelfAttention.q"
    weights = {one: value.clone() for one, value in weights.items()} | {f"{name}.lora_A.default.weight": torch.ones(2)}
    save_file(weights, folder / "model.safetensors")


REFUSED: tuple[tuple[Callable[[Path], object], str], ...] = (
    *(
        (lambda f, name=name: changed(f / "config.json", architectures=[name]), f"describes a {name}, which does not")
        for name in ("T5EncoderModel", "UMT5EncoderModel", "T5ForSequenceClassification")
    ),
    *(
        (lambda f, kind=kind: changed(f / "config.json", model_type=kind), f"describes {kind}, which is not supported")
        for kind in ("longt5", "switch_transformers", "nllb-moe", "t5gemma", "pix2struct", "pegasus")
    ),
    (lambda f: (f / "adapter_config.json").write_text("{}"), "adapter_config.json is of an adapter, not of a whole"),
    (adapter_inside, "lora_A.default.weight, which is of an adapter: load its base model"),
    (
        lambda f: (f / "model.safetensors").rename(f / "pytorch_model.bin"),
        "has pickled weights, which may run code and are not opened: write model.safetensors with transformers, "
        "T5ForConditionalGeneration.from_pretrained(FOLDER).save_pretrained(FOLDER)",
    ),
)


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid folder; only to be copied."""
    folder = tmp_path_factory.mktemp("good") / "t5"
    written(folder, gated=True, alike=(), described=False)
    return folder


@pytest.mark.parametrize(("spoil", "sentence"), REFUSED)
def test_relatives_of_t5_and_parts_of_one_are_refused_in_one_sentence(
    spoil: Callable[[Path], object], sentence: str, good: Path, tmp_path: Path
) -> None:
    shutil.copytree(good, tmp_path / "theirs")
    spoil(tmp_path / "theirs")
    with pytest.raises(UserError, match=re.escape(sentence)) as told:
        import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    assert "\n" not in str(told.value) and str(told.value).endswith(".")
    assert not (tmp_path / "ours").exists()
