"""The family of M2M100, NLLB, BART and mBART: what its models are read by, and written as again.

An imported one is written in its original format, equal to ours in every log-probability. Its ids, its tokeniser and
the rest of its config.json stay as they came. Pruned heads are zeros.
"""

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from heads.base.files import read_json, write_json
from heads.interop.agreement import difference_of_models
from heads.interop.fairseq.format import CLASSES, DESCRIBING
from heads.interop.fairseq.importing import framing_tokens, unused_of, vocabularies_of
from heads.interop.fairseq.reading import described_folder, read_fairseq
from heads.interop.family import ExportFormat, Family, ForeignModel, ImportOptions, KeptIds, Translation, refuse_prefix
from heads.interop.fewer_in_saved import take_named
from heads.interop.hub import CONFIG, GENERATION, WEIGHTS
from heads.interop.marian.exporting import subword_matrices, with_all_heads
from heads.interop.marian.family import ONE_WIDTH_A_STACK
from heads.interop.marian.importing import LOGITS_BIAS, OFFSET, model_of_marian, numberings_of, weight_names
from heads.interop.marian.reading import PROJECTION, SHARED, SOURCE, TARGET
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import read_object
from heads.model.encoder import Encoder
from heads.model.shape import LEARNED, ModelShape
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS
from heads.translation.beam_search import never_said
from heads.translation.model_folder import ABOUT


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read such a model, for texts in two languages. Raises UserError if it is none, or for a prefix."""
    refuse_prefix(options, "gets its languages from --source-language and --target-language")
    theirs = read_fairseq(files, options.languages)

    def model() -> Encoder:
        tokens = framing_tokens(theirs, *options.languages)
        return model_of_marian(theirs, tokens.target[0] if tokens.forced else 0)

    return ForeignModel(model, lambda: vocabularies_of(theirs, *options.languages), unused_of(theirs))


def write(what: Translation, folder: Path) -> float:
    """Write the model as it came, with other weights."""
    assert what.came_with is not None
    languages = languages_in(what.about)
    write_fairseq(what.model, what.came_with, languages, what.searched, folder)
    again = model_of_marian(read_fairseq(OriginalFiles(folder), languages), what.model.shape.first_subword)
    return difference_of_models(what.model, again, what.pairs)


def take_subwords(came_with: Path, shape: ModelShape, kept: KeptIds) -> None:
    """Leave only these ids of ours in the original files."""
    copied, languages = bool(shape.start_subword), languages_in(read_json(came_with / ABOUT))
    theirs = described_folder(OriginalFiles(came_with), languages, shape.target_subwords - copied)
    take_named(came_with, numberings_of(theirs)[1], kept[1], copied=copied)


def write_fairseq(
    model: Transformer, came_with: OriginalFiles, languages: tuple[str, str], search: tuple[int, float], folder: Path
) -> None:
    """Write weights, search settings (beam size, length penalty) and the model's original files into a folder.

    All layers of a stack have as many hidden units. came_with: the original files. languages: of source and target,
    that it was imported for. Raises UserError if files are damaged.
    """
    for name in DESCRIBING:
        if (came_with.place / name).is_file():
            shutil.copyfile(came_with.place / name, folder / name)
    # Our BOS has no row of its own there if it is a copy of EOS.
    rows = model.shape.target_subwords - bool(model.shape.start_subword)
    theirs = came_with.once(described_folder, languages, rows)
    source, target = (numbering.rows for numbering in numberings_of(theirs))
    found = read_object(folder / GENERATION, {})
    special = {f"{name}_token_id": theirs.config[f"{name}_token_id"] for name in ("pad", "bos", "eos")}
    special["decoder_start_token_id"] = target[BOS]
    ours: dict[str, Any] = {"num_beams": search[0], "length_penalty": search[1]}
    # Tokens that we never generate are excluded there too.
    never = [one for one in never_said(model.shape) if one != BOS or not model.shape.start_subword]
    ours["bad_words_ids"] = [[target[one]] for one in never]
    if model.shape.first_subword:
        ours["forced_bos_token_id"] = target[model.shape.first_subword]
    write_json(folder / GENERATION, {**special, **found, **ours})
    tensors = {name: value.contiguous().clone() for name, value in weights_of(model, source, target).items()}
    tied = SOURCE not in tensors
    changed = {"architectures": [CLASSES[theirs.config["model_type"]]], "tie_word_embeddings": tied, "dtype": "float32"}
    changed["vocab_size"] = rows
    for stack in ("encoder", "decoder"):
        changed[f"{stack}_ffn_dim"] = model.shape.units(f"{stack[:3]}_ffn")[0]
    config = {name: value for name, value in read_object(folder / CONFIG).items() if name != "torch_dtype"}
    write_json(folder / CONFIG, {**config, **changed})
    save_file(tensors, folder / WEIGHTS, metadata={"format": "pt"})


def languages_in(about: Mapping[str, Any]) -> tuple[str, str]:
    """The languages of source and target that a model was imported for."""
    return about["source_language"], about["target_language"]


def weights_of(model: Transformer, source: Sequence[int], target: Sequence[int]) -> dict[str, Tensor]:
    """Weights under transformers' names, equal matrices once. source, target: transformers' id for each of ours."""
    shape, whole, matrices = model.shape, with_all_heads(model), subword_matrices(model)
    found = {theirs: whole[ours] for ours, theirs in weight_names(shape)}
    if shape.positions == LEARNED:
        for side in ("encoder", "decoder"):
            name = f"model.{side}.embed_positions.weight"
            found[name] = torch.cat([found[name].new_zeros(OFFSET, shape.width), found[name]])

    def in_their_order(value: Tensor, rows: Sequence[int] = target) -> Tensor:
        own = [ours for ours, row in enumerate(rows) if ours != BOS or not shape.start_subword]
        return value[sorted(own, key=rows.__getitem__)]

    found[SHARED] = in_their_order(matrices[TARGET])
    read = in_their_order(matrices[SOURCE], source)
    written = in_their_order(matrices[PROJECTION])
    if not all(torch.equal(one, found[SHARED]) for one in (read, written)):
        found |= {SOURCE: read, TARGET: found[SHARED], PROJECTION: written}
    if not shape.fixed_bias:
        found[LOGITS_BIAS] = in_their_order(whole["projection.bias"])[None]
    return found


FAMILY = Family(
    read,
    {"huggingface": ExportFormat(write, one_width=ONE_WIDTH_A_STACK, own_names=True)},
    take_subwords,
)
