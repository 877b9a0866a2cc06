"""Every claim of Voita et al. 2019 by its id in `voita_claims.csv`."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from heads.tables import claims_heads as heads
from heads.tables import claims_pruning as pruning
from heads.tables.evidence import Evidence
from heads.tables.verdicts import Finding

VOITA_RELEVANCE_CLAIMS: dict[str, Callable[[Evidence, str], Finding]] = {
    "top_heads_differ": heads.top_heads_differ,
    "relevance_confidence": heads.relevance_confidence,
    "without_exception": heads.without_exception,
    "exception_is_first": heads.exception_is_first,
    "positional_relevant": partial(heads.role_relevant, role="positional"),
    "syntactic_relevant": partial(heads.role_relevant, role="syntactic"),
    "rare_most_relevant": heads.rare_most_relevant,
}
"""Each function takes the column of one reading of relevance."""

VOITA_CLAIMS: dict[str, Callable[[Evidence], Finding]] = {
    "positional_share": partial(heads.share_with, role="positional"),
    "positional_confident": heads.positional_confident,
    "positional_most_confident": partial(heads.role_confident, role="positional"),
    "syntactic_share": partial(heads.share_with, role="syntactic"),
    "relations_beaten": heads.relations_beaten,
    "several_heads": heads.several_heads,
    "rare_heads": heads.rare_heads,
    "rare_in_first_layer": heads.rare_in_first_layer,
    "rarest": partial(heads.rarest_hit, name="rarest"),
    "two_rarest": partial(heads.rarest_hit, name="one of two rarest"),
    "two_rarest_wmt": partial(heads.rarest_hit, name="one of two rarest"),
    "specialised_last": pruning.specialised_last,
    "gates_between": pruning.gates_between,
    "penalty_from_scratch": pruning.penalty_gain,
    "encoder_from_scratch": partial(pruning.scratch_gain, scope="enc_self"),
    "encoder_10_of_48": partial(pruning.change_at, scope="enc_self", share=10 / 48, control=False),
    "encoder_10_of_48_control": partial(pruning.change_at, scope="enc_self", share=10 / 48, control=True),
    "encoder_5_of_48": partial(pruning.change_at, scope="enc_self", share=5 / 48, control=False),
    "encoder_4_of_48": partial(pruning.change_at, scope="enc_self", share=4 / 48, control=False),
    "functions_at_17_of_48": partial(heads.functions_left, share=17 / 48),
    "functions_drift": partial(heads.functions_drift, share=17 / 48),
    "all_75_of_144": partial(pruning.change_at, scope="all", share=75 / 144, control=False),
    "all_75_of_144_control": partial(pruning.change_at, scope="all", share=75 / 144, control=True),
    "all_58_of_144": partial(pruning.change_at, scope="all", share=58 / 144, control=False),
    "three_quarters_of_encoder": partial(pruning.most_encoder_heads_free, encoder=14 / 48, decoder=61 / 96),
    "scratch_not_better": pruning.scratch_not_better,
    "scratch_gain": partial(pruning.scratch_gain, scope="all"),
    "encoder_fewest": pruning.encoder_fewest,
    "source_over_self": partial(pruning.more_left, most="dec_enc", least="dec_self"),
    "self_near_source": partial(pruning.nearly_equal, one="dec_self", other="dec_enc"),
    "self_over_encoder": partial(pruning.more_left, most="dec_self", least="enc_self"),
    "self_near_encoder": partial(pruning.nearly_equal, one="dec_self", other="enc_self"),
    "self_in_low_layers": partial(pruning.low_minus_high, attention="dec_self", sign=1),
    "source_in_high_layers": partial(pruning.low_minus_high, attention="dec_enc", sign=-1),
}
