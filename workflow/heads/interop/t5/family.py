"""The family of T5, mT5, UMT5, FLAN-T5, ByT5 and MADLAD-400: what its models are read by, and written as again.

An imported one is written in its original format, equal to ours in every log-probability. Its ids, its tokeniser and
the rest of its config.json stay as they came. Pruned heads are zeros: transformers has one number of heads for all
layers.
"""

import shutil
from functools import partial
from pathlib import Path
from typing import Any

from safetensors.torch import save_file
from torch import Tensor

from heads.base.files import write_json
from heads.base.names import FEEDFORWARDS
from heads.interop.agreement import difference_of_models
from heads.interop.family import (
    ExportFormat,
    Family,
    ForeignModel,
    ImportOptions,
    KeptIds,
    Translation,
    refuse_languages,
)
from heads.interop.fewer_in_saved import take_named
from heads.interop.hub import CONFIG, GENERATION, WEIGHTS
from heads.interop.marian.exporting import with_all_heads
from heads.interop.original import OriginalFiles
from heads.interop.saved_folder import read_object
from heads.interop.t5.format import CLASSES, DESCRIBING
from heads.interop.t5.importing import model_of_t5, numbering_of, unused_of, vocabularies_of, weight_names
from heads.interop.t5.reading import PROJECTION, SHARED, described_t5, read_t5
from heads.model.distances import tables_of
from heads.model.shape import ModelShape
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS
from heads.translation.beam_search import never_said


def read(files: OriginalFiles, options: ImportOptions) -> ForeignModel:
    """Read a T5. Raises UserError if it is none, or for languages."""
    refuse_languages(options)
    theirs = read_t5(files)
    return ForeignModel(
        partial(model_of_t5, theirs), partial(vocabularies_of, theirs, options.prefix), unused_of(theirs)
    )


def write(what: Translation, folder: Path) -> float:
    """Write the model as it came, with other weights."""
    assert what.came_with is not None
    write_t5(what.model, what.came_with, what.searched, folder)
    return difference_of_models(what.model, model_of_t5(read_t5(OriginalFiles(folder))), what.pairs)


def take_subwords(came_with: Path, shape: ModelShape, kept: KeptIds) -> None:
    """Leave only these ids of ours in the original files."""
    copied = shape.start is not None
    theirs = described_t5(OriginalFiles(came_with), shape.target_subwords - copied)
    take_named(came_with, numbering_of(theirs), kept[1], copied=copied)


def write_t5(model: Transformer, came_with: OriginalFiles, search: tuple[int, float], folder: Path) -> None:
    """Write weights, search settings (beam size, length penalty) and the model's original files into a folder.

    All layers have as many hidden units. came_with: the original files. Raises UserError if they are damaged.
    """
    for name in DESCRIBING:
        if (came_with.place / name).is_file():
            shutil.copyfile(came_with.place / name, folder / name)
    shape = model.shape
    # Our BOS has no row of its own there if it is a copy.
    own = [number for number in range(shape.target_subwords) if number != BOS or shape.start is None]
    theirs = came_with.once(described_t5, len(own))
    rows = numbering_of(theirs).rows
    generation: dict[str, Any] = {"num_beams": search[0], "length_penalty": search[1]}
    # Tokens that we never generate are excluded there too.
    generation["bad_words_ids"] = [[rows[number]] for number in never_said(shape) if number in own]
    special = {f"{name}_token_id": number for name, number in theirs.special.items() if name != "start"}
    special["decoder_start_token_id"] = theirs.special["start"]
    write_json(folder / GENERATION, {**special, **read_object(folder / GENERATION, {}), **generation})
    config = {name: value for name, value in read_object(folder / CONFIG).items() if name != "torch_dtype"}
    changed = {"architectures": [CLASSES[config["model_type"]]], "vocab_size": len(own), "dtype": "float32"}
    write_json(folder / CONFIG, {**config, **changed, "d_ff": shape.units("enc_ffn")[0]})
    tensors = weights_of(model, scaled=theirs.scaled)
    order = sorted(own, key=rows.__getitem__)
    tensors[SHARED] = model.target_embedding.subwords.weight.detach().cpu()[order]
    if not shape.tied_projection:
        tensors[PROJECTION] = model.projection.weight.detach().cpu()[order]
    whole = {name: value.contiguous().clone() for name, value in tensors.items()}
    save_file(whole, folder / WEIGHTS, metadata={"format": "pt"})


def weights_of(model: Transformer, *, scaled: bool) -> dict[str, Tensor]:
    """Weights under transformers' names but for subword matrices. scaled: whether logits are scaled there."""
    shape, whole = model.shape, with_all_heads(model)
    if scaled:
        whole["decoder_norm.weight"] = whole["decoder_norm.weight"] * shape.width**0.5
    for name, heads in tables_of(shape).items():
        table = whole[name]
        whole[name] = table.new_zeros(len(table), shape.original_heads)
        whole[name][:, list(heads)] = table
    return {theirs: whole[ours] for ours, theirs in weight_names(shape)}


FAMILY = Family(read, {"huggingface": ExportFormat(write, one_width=(FEEDFORWARDS,), own_names=True)}, take_subwords)
