"""The search settings of a model's authors: those that our search has, and the names of those that it has not."""

import json
import math
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from heads.base.files import UserError
from heads.translation.beam_search import NEVER, length_limit
from heads.translation.model_folder import EARLY_STOPPING

SEARCH: Mapping[str, int | bool] = {"num_beams": 1, "length_penalty": 1, EARLY_STOPPING: False}
"""Settings of a search: the values of transformers where they are left out, and Firefox's."""
LONGEST = length_limit(200) + 1
"""The longest translation, with its start, of a line that `heads translate` does not cut into parts."""
PLAIN: Mapping[str, float] = {
    "repetition_penalty": 1,
    "encoder_repetition_penalty": 1,
    "min_length": 1,
    "num_beam_groups": 1,
    "guidance_scale": 1,
    "temperature": 1,
    "top_p": 1,
    "top_k": 50,
    "typical_p": 1,
}
"""Values without an effect, beside None, zero, false and nothing."""
STEERING = (
    *("repetition_penalty", "encoder_repetition_penalty", "no_repeat_ngram_size", "encoder_no_repeat_ngram_size"),
    *("min_length", "min_new_tokens", "max_time", "stop_strings", "num_beam_groups", "diversity_penalty"),
    *("exponential_decay_length_penalty", "sequence_bias", "constraints", "force_words_ids", "penalty_alpha"),
    *("guidance_scale", "watermarking_config", "dola_layers", "token_healing", "renormalize_logits", "do_sample"),
)
"""Settings of transformers that change what a search finds, and that ours does not have."""
SAMPLING = ("temperature", "top_k", "top_p", "min_p", "top_h", "typical_p", "epsilon_cutoff", "eta_cutoff")
"""Those that only sampling reads."""
SHOWN = 40
"""The longest value that is shown in full."""


def searched_by_its_authors(folder: Path, generation: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of `generation` that our search has. Raises UserError for values that no search can use."""
    search = {key: generation.get(key) for key in SEARCH}
    search = {key: SEARCH[key] if value is None else value for key, value in search.items()}
    beam, exponent, ends = search.values()
    if not isinstance(beam, int) or isinstance(beam, bool) or beam < 1:
        wrong = "num_beams"
    elif not isinstance(exponent, int | float) or isinstance(exponent, bool) or not math.isfinite(exponent):
        wrong = "length_penalty"
    elif not isinstance(ends, bool) and ends != NEVER:
        wrong = EARLY_STOPPING
    else:
        return search
    raise UserError(f"{folder}: {wrong} of its generation is {search[wrong]!r}, which no search can use.")


def unused(generation: Mapping[str, Any], never: Collection[int], start: int | None, end: int) -> list[str]:
    """The settings that change what transformers' search finds, and that ours does not have.

    never: the ids that our search never generates. start: that translations begin after, or None if any will do. end:
    that of EOS.
    """
    longest = ("max_new_tokens", LONGEST - 1) if generation.get("max_new_tokens") else ("max_length", LONGEST)
    found = [key for key in STEERING if generation.get(key) and generation[key] != PLAIN.get(key)]
    if generation.get("do_sample"):
        found += [key for key in SAMPLING if generation.get(key) and generation[key] != PLAIN.get(key)]
    wanted = {longest[0]: lambda most: most >= longest[1]}
    wanted |= dict.fromkeys(("suppress_tokens", "begin_suppress_tokens"), {*never}.issuperset)
    wanted["bad_words_ids"] = lambda words: all(len(ids) == 1 and ids[0] in never for ids in words)
    wanted |= dict.fromkeys(("eos_token_id", "forced_eos_token_id"), lambda value: value in (end, [end]))
    wanted["decoder_start_token_id"] = lambda value: start in (None, value)
    found += [key for key, fits in wanted.items() if not _fits(generation.get(key), fits)]
    return [f"{key} {shown(generation[key])}" for key in found]


def _fits(value: Any, fits: Callable[[Any], bool]) -> bool:
    """Whether a setting is left out, or is such a value."""
    try:
        return value is None or fits(value)
    except TypeError:
        return False


def shown(value: Any) -> str:
    """A setting as messages show it."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN or not hasattr(value, "__len__") else f"({len(value)} values)"


def not_used(settings: Collection[str]) -> str:
    """The sentence about settings of a model's authors that are not used; empty if there are none."""
    return f"These settings of its authors are not used: {', '.join(settings)}." if settings else ""
