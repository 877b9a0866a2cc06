"""Export a trained model as a self-contained folder: weights, shape, vocabularies, score and README."""

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from heads.base.files import UserError, write_json, write_text
from heads.base.names import QUANTIZATIONS
from heads.base.outputs import new_folder
from heads.interop.agreement import pairs_of, rounding_of
from heads.interop.bundle import Bundle
from heads.interop.export_page import ALIGNMENT_USE, NAMELESS_USE, page, searched_with, use_of
from heads.interop.families import EXPORT_FORMATS, OURS, export_format
from heads.interop.family import ExportFormat, Translation
from heads.interop.to_ctranslate2 import ROWS, aligning_heads
from heads.model.equal_units import with_equal_units
from heads.model.folder import HEADS, save_folder
from heads.model.head_removal import write_heads
from heads.translation.model_folder import SCORE

FORMATS = (OURS, *EXPORT_FORMATS)
"""Our own folder, and the formats of other programs."""


def export(
    bundle: Bundle,
    out: Path,
    form: str = OURS,
    *,
    sentences: Sequence[str] = (),
    quantization: str = QUANTIZATIONS[0],
    alignment: Path | None = None,
) -> float | None:
    """Export a translator, with everything needed to translate, to the new folder `out`.

    Other formats are compared with our own model on `sentences`, or on random subwords if there are none; returns the
    largest difference of a log-probability in nats. CTranslate2 gets the alignment heads from the table `alignment` or
    from the one in the model's folder, if any. Raises UserError if `out` already exists, or as `refuse_translator`
    does.
    """
    translator, vocabularies = bundle.translates()
    refuse_translator(bundle, form)
    refuse_copy(bundle, form)
    facts, score, about = {**bundle.facts, **names_of(bundle)}, bundle.score, bundle.about
    rows = alignment or (bundle.place / ROWS if (bundle.place / ROWS).exists() else None)
    aligning = aligning_heads(rows, bundle.shape) if rows and form == "ctranslate2" else None
    written_as, difference = export_format(form, bundle.family), None
    with new_folder(out) as stage:
        if written_as is None:
            save_folder(translator, stage, facts, facts["provenance"])
        else:
            pairs, searched = pairs_of(translator, vocabularies[0], sentences), searched_with(score, about)
            options = (bundle.came_with, about or {}, quantization, aligning)
            difference = _written(written_as, Translation(translator, vocabularies, pairs, searched, *options), stage)
            write_heads(stage / HEADS, bundle.shape)
            write_json(stage / "origin.json", facts["provenance"])
        if written_as is None or not written_as.own_names:
            bundle.write_vocabularies(stage, with_facts=written_as is None or about is not None)
        if written_as is None or not written_as.own_files:
            bundle.write_origin(stage)
        if score is not None:
            write_json(stage / SCORE, score)
        use = use_of(form, facts["provenance"], score, difference, about) + (ALIGNMENT_USE if aligning else "")
        use += NAMELESS_USE if form == "ctranslate2" and bundle.shape.nameless_subwords else ""
        write_text(stage / "README.md", page(translator, facts, score, use, about))
    return difference


def refuse_quantization(form: str, quantization: str) -> None:
    """Raise UserError for a number format that the format of the folder cannot have."""
    if form != "ctranslate2" and quantization != QUANTIZATIONS[0]:
        raise UserError(f"--quantization {quantization} needs --format ctranslate2: use it, or remove --quantization.")


def refuse_translator(bundle: Bundle, form: str) -> None:
    """Raise UserError if a translator cannot be written in a format, or not with the libraries that are installed."""
    if written_as := export_format(form, bundle.family):
        written_as.refuse(bundle.shape, bundle.translates()[1], bundle.came_with)


def _written(written_as: ExportFormat, what: Translation, stage: Path) -> float:
    """Write the model in another format and return its difference from ours; raises ArithmeticError if too large."""
    limit = rounding_of(what.model, what.pairs)
    if groups := written_as.one_width:
        what = replace(what, model=with_equal_units(what.model, in_both=len(groups) == 1))
    difference = written_as.write(what, stage)
    if written_as.exact and what.quantization == QUANTIZATIONS[0] and not difference <= limit:
        raise ArithmeticError(f"the exported model's log-probabilities differ from ours by {difference}")
    if difference == math.inf:
        raise UserError(f"{what.quantization} cannot hold the model's weights: use another --quantization or --format.")
    return difference


def refuse_copy(bundle: Bundle, form: str) -> None:
    """Raise UserError if a folder that was itself written by export or import is to become the same again."""
    if form == OURS and not bundle.origin and bundle.source.path.parent == bundle.place.resolve():
        raise UserError(f"{bundle.place} is already an exported model: copy the folder.")


def names_of(bundle: Bundle) -> dict[str, str]:
    """The experiment and run that a model is of, as facts; else what it was called before, or its folder."""
    before = bundle.facts.get("experiment", "model"), bundle.facts.get("run", bundle.place.name)
    return dict(zip(("experiment", "run"), bundle.run or before, strict=True))
