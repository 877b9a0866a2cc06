"""The search settings beside a model in Marian's own format, which Firefox and OPUS-MT give theirs."""

import math
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.interop.authors_search import SEARCH, shown
from heads.interop.firefox.parts import decoding_of
from heads.translation.model_folder import EARLY_STOPPING

OF_MARIAN = ("word-penalty", "allow-unk", "allow-special", "output-sampling", "force-decode")
"""Settings of Marian's decoder that change what it finds, and that our search does not have."""


def searched_by_marian(model: Path) -> dict[str, Any]:
    """The search of the settings beside a Marian model, or else Firefox's. Raises UserError for unusable values.

    With a beam, Marian's search ends as soon as as many hypotheses are finished as the beam is wide.
    """
    path, options = decoding_of(model)
    beam = options.get("beam-size", SEARCH["num_beams"])
    exponent = options.get("normalize", 0 if "beam-size" in options else SEARCH["length_penalty"])
    if not isinstance(beam, int) or isinstance(beam, bool) or beam < 1:
        raise UserError(f"{path}: beam-size is {beam!r}, which no search can use.")
    if not isinstance(exponent, int | float) or not math.isfinite(exponent):
        raise UserError(f"{path}: normalize is {exponent!r}, which no search can use.")
    return {"num_beams": beam, "length_penalty": exponent + 0, EARLY_STOPPING: beam > 1}


def unused_of_marian(model: Path) -> list[str]:
    """The settings beside a Marian model that change what its decoder finds, and that our search does not have."""
    _, options = decoding_of(model)
    return [f"{key} {shown(options[key])}" for key in OF_MARIAN if options.get(key)]
