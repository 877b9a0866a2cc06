"""Export a trained model as a self-contained folder: weights, shape, vocabularies, score and README."""

import math
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from heads.base import fairseq, t5
from heads.base.files import UserError, write_json, write_text, write_tsv
from heads.base.names import FEEDFORWARDS, QUANTIZATIONS
from heads.model.equal_units import with_equal_units
from heads.model.folder import HEADS, load_folder, save_folder
from heads.model.head_removal import COLUMNS, head_rows
from heads.model.shape import ModelShape, facts_of
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Vocabulary, facts_beside
from heads.translation.agreement import Pair, difference_of_models, pairs_of, rounding_of
from heads.translation.export_page import ALIGNMENT_USE, NAMELESS_USE, page, searched_with, use_of
from heads.translation.fairseq_folder import read_fairseq
from heads.translation.from_firefox import model_of_firefox, read_firefox
from heads.translation.from_marian import model_of_marian
from heads.translation.from_t5 import model_of_t5
from heads.translation.marian_folder import added_to, read_marian
from heads.translation.model_folder import (
    PRETRAINED,
    SCORE,
    VOCABULARIES,
    about_of,
    load_vocabularies,
    score_of,
    vocabulary_folder,
)
from heads.translation.t5_folder import read_t5
from heads.translation.to_ctranslate2 import (
    ROWS,
    AligningHead,
    agreement_of_ctranslate2,
    aligning_heads,
    refuse_for_ctranslate2,
    write_ctranslate2,
)
from heads.translation.to_fairseq import languages_of, write_fairseq
from heads.translation.to_firefox import origin_of, write_firefox
from heads.translation.to_huggingface import refuse_for_marian, write_huggingface
from heads.translation.to_onnx import agreement_of_onnx, refuse_for_onnx, write_onnx
from heads.translation.to_t5 import write_t5

FORMATS = ("folder", "ctranslate2", "onnx", "huggingface", "marian", "npz")
"""Our own folder, and the formats of other programs."""
OF_MARIAN = ("marian", "npz")
"""Marian's own format: as the model was imported, or in plain float32."""


def export(
    folder: Path,
    out: Path,
    form: str = "folder",
    *,
    sentences: Sequence[str] = (),
    quantization: str = "float32",
    alignment: Path | None = None,
) -> float | None:
    """Export the model of a run's folder, with everything needed to translate with it, to the new folder `out`.

    Other formats are compared with our own model on `sentences`, or on random subwords if there are none; returns the
    largest difference of a log-probability in nats. CTranslate2 gets the alignment heads from the table `alignment` or
    from the one in `folder`, if any. Raises UserError if `folder` is not a run of an experiment, if `out` already
    exists, or as `refuse_translator` does.
    """
    model = load_folder(folder)
    vocabularies = load_vocabularies(folder, model)
    place = vocabulary_folder(folder)
    refuse_translator(model.shape, place, form)
    if place == folder.resolve() and form == "folder":
        raise UserError(exported_already(folder))
    facts = facts_of(folder)
    if place != folder.resolve():
        facts |= {"experiment": place.parent.name, "run": folder.resolve().relative_to(place.parent).as_posix()}
    score, about, difference = score_of(folder), about_of(place), None
    rows = alignment or (folder / ROWS if (folder / ROWS).exists() else None)
    aligning = aligning_heads(rows, model.shape) if rows and form == "ctranslate2" else None
    with new_folder(out) as stage:
        if form == "folder":
            save_folder(model, stage, facts, facts["provenance"])
        else:
            pairs = pairs_of(model, vocabularies[0], sentences)
            options = (quantization, aligning, searched_with(score, about), place / PRETRAINED)
            difference = _write_other(form, model, vocabularies, stage, pairs, *options)
            write_tsv(stage / HEADS, head_rows(model.shape), COLUMNS)
            write_json(stage / "origin.json", facts["provenance"])
        # The folders of transformers and Marian have them under their own names.
        if form not in ("huggingface", *OF_MARIAN):
            copy_vocabularies(place, stage, with_facts=form == "folder" or about is not None)
        if about is not None and form not in OF_MARIAN:
            shutil.copytree(place / PRETRAINED, stage / PRETRAINED)
        if score is not None:
            write_json(stage / SCORE, score)
        use = use_of(form, facts["provenance"], score, difference, about) + (ALIGNMENT_USE if aligning else "")
        use += NAMELESS_USE if form == "ctranslate2" and model.shape.nameless_subwords else ""
        write_text(stage / "README.md", page(model, facts, score, use, about))
    return difference


def refuse_quantization(form: str, quantization: str) -> None:
    """Raise UserError for a number format that the format of the folder cannot have."""
    if form != "ctranslate2" and quantization != QUANTIZATIONS[0]:
        raise UserError(f"--quantization {quantization} needs --format ctranslate2: use it, or remove --quantization.")


def refuse_translator(shape: ModelShape, place: Path, form: str) -> None:
    """Raise UserError if a translator cannot be written in a format, or not with the libraries that are installed.

    place: the folder of its vocabularies, with the original files of an imported model.
    """
    if form == "ctranslate2":
        refuse_for_ctranslate2(shape)
    elif form in OF_MARIAN:
        origin_of(shape, place / PRETRAINED)
    elif form == "huggingface" and not (fairseq.fits(place / PRETRAINED) or t5.fits(place / PRETRAINED)):
        refuse_for_marian(shape, [vocabulary_of(place / name) for name in VOCABULARIES])
    elif form == "onnx":
        refuse_for_onnx(shape)


def _write_other(
    form: str,
    model: Transformer,
    vocabularies: Sequence[Vocabulary],
    stage: Path,
    pairs: Sequence[Pair],
    quantization: str,
    aligning: Sequence[AligningHead] | None,
    searched: tuple[int, float],
    came_with: Path,
) -> float:
    """Write the model in another format and return its difference from ours; raises ArithmeticError if too large.

    came_with: folder of an imported model's original files; those of a Marian or fairseq model are exported with it.
    Numbers of fewer bits, which Marian's own format may have, are not expected to agree.
    """
    limit = rounding_of(model, pairs)
    if groups := of_one_width(form, came_with):
        model = with_equal_units(model, in_both=len(groups) == 1)
    if form == "ctranslate2":
        write_ctranslate2(model, vocabularies, stage, quantization, aligning)
        difference = agreement_of_ctranslate2(model, vocabularies, stage, pairs)
    elif form in OF_MARIAN:
        write_firefox(model, came_with, stage, plain=form == "npz")
        difference = difference_of_models(model, model_of_firefox(read_firefox(stage)), pairs)
    elif form == "huggingface" and fairseq.fits(came_with):
        write_fairseq(model, came_with, searched, stage)
        again = read_fairseq(stage, languages_of(came_with))
        difference = difference_of_models(model, model_of_marian(again, model.shape.first_subword), pairs)
    elif form == "huggingface" and t5.fits(came_with):
        write_t5(model, came_with, searched, stage)
        difference = difference_of_models(model, model_of_t5(read_t5(stage)), pairs)
    elif form == "huggingface":
        write_huggingface(model, vocabularies, searched, stage, added_to(came_with))
        difference = difference_of_models(model, model_of_marian(read_marian(stage)), pairs)
    else:
        write_onnx(model, stage)
        difference = agreement_of_onnx(model, stage, pairs)
    exact = quantization == "float32" and form != "marian"
    if exact and not difference <= limit:
        raise ArithmeticError(f"the exported model's log-probabilities differ from ours by {difference}")
    if difference == math.inf:
        raise UserError(f"{quantization} cannot hold the model's weights: use another --quantization or --format.")
    return difference


def of_one_width(form: str, came_with: Path) -> tuple[tuple[str, ...], ...]:
    """Groups of feed-forward stacks whose layers all have as many hidden units in a format; empty if each has its own.

    came_with: folder of an imported model's original files; a T5 has one number for encoder and decoder.
    """
    if form in OF_MARIAN or (form == "huggingface" and t5.fits(came_with)):
        return (FEEDFORWARDS,)
    return tuple((stack,) for stack in FEEDFORWARDS) if form == "huggingface" else ()


def copy_vocabularies(place: Path, stage: Path, *, with_facts: bool) -> None:
    """Copy both vocabularies and, if `with_facts`, the JSON files beside them."""
    for name in VOCABULARIES:
        for path in (place / name, *([facts_beside(place / name)] if with_facts else [])):
            shutil.copyfile(path, stage / path.name)


def exported_already(folder: Path) -> str:
    """Error message for a folder that was itself written by export or import."""
    return f"{folder} is already an exported model: copy the folder."


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Yield a temporary folder beside `path`, renamed to `path` on success and removed on failure.

    Raises UserError if `path` already exists or cannot be created.
    """
    try:
        if path.exists():
            raise UserError(f"{path} is already there: delete it or export to another folder.")
        stage = path.with_name(f".{path.name}.{os.getpid()}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
    except OSError as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): export to another folder.") from error
    try:
        yield stage
        stage.rename(path)
    finally:
        shutil.rmtree(stage, ignore_errors=True)
