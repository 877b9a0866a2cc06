"""Export an encoder as a BERT of transformers with its tokeniser, equal in every logit or vector.

BERT has the same number of heads in every layer: pruned heads are zeros in its matrices, which add nothing.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from heads.base.files import UserError, write_json
from heads.interop.agreement import largest_of
from heads.interop.bert.format import MODULES, POOLING, WORD_PIECES
from heads.interop.bert.importing import SPECIAL, model_of_bert, sentence_encoder_of_bert, weight_names
from heads.interop.bert.reading import MODE, OLDER, PARTS, PREFIX, SAVED_BY, read_bert
from heads.interop.hub import CONFIG, TOKENIZER, WEIGHTS
from heads.interop.marian.exporting import with_all_heads
from heads.interop.original import OriginalFiles
from heads.model.encoder_only import ExampleEncoder
from heads.model.shape import LEARNED, ModelShape
from heads.text.special_ids import BOS, EOS, PAD, UNK
from heads.text.wordpieces import WordPieces

LONGEST, EXAMPLES = 40, 16


def write_bert(model: ExampleEncoder, vocabulary: WordPieces, labels: Sequence[str], folder: Path) -> None:
    """Write config, weights and tokeniser into a folder; `labels` in the order of the logits.

    All layers of the model have as many hidden units.

    A classifier becomes a BertForSequenceClassification, a sentence encoder a BertModel without a pooler, which
    sentence-transformers reads too.
    Raises UserError for a model that BERT cannot express.
    """
    shape = model.shape
    refuse_for_bert(shape)
    write_json(folder / CONFIG, config_of(shape, labels))
    write_tokenizer(shape, vocabulary, folder)
    whole = with_all_heads(model)
    bare = "" if shape.classifies else PREFIX
    tensors = {theirs.removeprefix(bare): whole[ours].contiguous() for ours, theirs in weight_names(shape)}
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})
    if shape.embeds:
        places = dict(zip(PARTS, ("", Path(POOLING).parent.name, "2_Normalize"), strict=True))
        write_json(folder / MODULES, [
            {"idx": number, "name": str(number), "path": place, "type": f"sentence_transformers.models.{kind}"}
            for number, (kind, place) in enumerate(places.items())
        ])  # fmt: skip
        ways = {MODE + ending: way == shape.pooling for ending, way in OLDER.items()}
        write_json(folder / POOLING, {"word_embedding_dimension": shape.width, **ways})


def write_tokenizer(shape: ModelShape, vocabulary: WordPieces, folder: Path) -> None:
    """Write the tokeniser, with our ids, into a folder."""
    write_json(folder / WORD_PIECES, described(vocabulary))
    special = dict(zip(("pad_token", "cls_token", "sep_token", "unk_token"), SPECIAL, strict=True))
    write_json(
        folder / TOKENIZER,
        {"tokenizer_class": "BertTokenizer", "model_max_length": shape.max_positions, **special},
    )


def refuse_for_bert(shape: ModelShape) -> None:
    """Raise UserError if a BERT cannot have this shape."""
    lacks = [
        said
        for said, lacking in (
            ("norms after its sub-layers", shape.pre_norm),
            ("learnt positions", shape.positions != LEARNED),
            ("a norm after its embeddings", not shape.embedding_norm),
            ("two token types", shape.token_types < 2),
            ("gelu or relu", shape.activation not in ("gelu", "relu")),
            ("embeddings that are not scaled", shape.scaled_embedding),
            ("heads that make up its width", shape.original_heads * shape.head_width != shape.width),
        )
        if lacking
    ]
    if lacks:
        raise UserError(f"the model lacks what a BERT has, {' and '.join(lacks)}: export it with --format folder.")


def config_of(shape: ModelShape, labels: Sequence[str]) -> dict[str, Any]:
    """The contents of config.json."""
    classes = {
        "id2label": {str(number): label for number, label in enumerate(labels)},
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    return {
        "architectures": [SAVED_BY if shape.classifies else "BertModel"],
        "model_type": "bert",
        "vocab_size": shape.source_subwords,
        "hidden_size": shape.width,
        "num_hidden_layers": shape.layers("enc_self"),
        "num_attention_heads": shape.original_heads,
        "intermediate_size": shape.units("enc_ffn")[0],
        "hidden_act": shape.activation,
        "hidden_dropout_prob": shape.dropout,
        "attention_probs_dropout_prob": shape.attention_dropout,
        "max_position_embeddings": shape.max_positions,
        "type_vocab_size": shape.token_types,
        "layer_norm_eps": shape.norm_epsilon,
        "pad_token_id": PAD,
        **(classes if shape.classifies else {}),
    }


def described(vocabulary: WordPieces) -> dict[str, Any]:
    """The tokeniser in the format of `tokenizers`; it puts [CLS] and [SEP] around texts."""
    start, separator = SPECIAL[BOS], SPECIAL[EOS]

    def special(name: str, kind: int) -> dict[str, Any]:
        return {"SpecialToken": {"id": name, "type_id": kind}}

    first = [special(start, 0), {"Sequence": {"id": "A", "type_id": 0}}, special(separator, 0)]
    second = [{"Sequence": {"id": "B", "type_id": 1}}, special(separator, 1)]
    ids = {name: {"id": name, "ids": [number], "tokens": [name]} for name, number in ((start, BOS), (separator, EOS))}
    framing = {"type": "TemplateProcessing", "single": first, "pair": [*first, *second], "special_tokens": ids}
    content: dict[str, Any] = json.loads(vocabulary.stored.content)
    return {**content, "post_processor": framing}


@torch.inference_mode()
def agreement_of_bert(model: ExampleEncoder, folder: Path, examples: Sequence[Sequence[int]]) -> float:
    """Largest difference from the model of a folder, in label log-probabilities or vector components."""
    saved = read_bert(OriginalFiles(folder))
    theirs = model_of_bert(saved) if model.shape.classifies else sentence_encoder_of_bert(saved)
    return largest_of([answer(model, ids) - answer(theirs, ids) for ids in examples])


def random_examples(shape: ModelShape) -> list[list[int]]:
    """Examples of two sentences of random subwords, of various lengths, with special tokens."""
    draw = torch.Generator().manual_seed(0)
    longest = min(LONGEST, (shape.max_positions - 3) // 2)

    def sentence() -> list[int]:
        length = int(torch.randint(1, longest + 1, (), generator=draw))
        return torch.randint(UNK + 1, shape.source_subwords, (length,), generator=draw).tolist()

    return [[BOS, *sentence(), EOS, *sentence(), EOS] for _ in range(EXAMPLES)]


@torch.inference_mode()
def answer(model: ExampleEncoder, ids: Sequence[int]) -> Tensor:
    """The log-probabilities of an example's labels, or its vector."""
    source = torch.tensor([[*ids]])
    found: Tensor = model.projection(model(source, source > PAD))[0, 0]
    return found.log_softmax(-1) if model.shape.classifies else found
