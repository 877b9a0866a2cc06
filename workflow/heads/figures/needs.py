"""Which files of which runs each figure reads. Imported by the Snakefile, so nothing heavy may be imported here."""

from __future__ import annotations

from heads.tables.needs import BOTH, CAUSAL, EITHER, MEASURED, SCORE, Need
from heads.tables.needs import NEEDS as TABLE_NEEDS

SCORED = (*SCORE, "model.json")
"""Score files say what a score is measured against, so figures of scores from other files read them too."""
ENCODER, ALL = ("enc_self",), ("all",)

NEEDS: dict[str, Need] = {
    "heads_needed": Need(
        (*ENCODER, *ALL),
        {"baseline": ("roles.tsv", "cross_attention_roles.tsv", "ablation.tsv", *SCORE), "gates": ("heads.tsv",)},
        (),
        driven=True,
        optional=("roles.tsv",),
    ),
    "head_functions": Need(
        (), {"baseline": ("model.json", "lrp.tsv", "confidence.tsv", "roles.tsv")}, (), tasks=EITHER
    ),
    "relevance_all": Need((), {"baseline": ("lrp.tsv", "confidence.tsv")}, ()),
    "measures": Need(
        BOTH,
        {**MEASURED, "baseline": (*MEASURED["baseline"], *SCORE)},
        (),
        optional=("roles.tsv", CAUSAL),
        driven=True,
    ),
    "relative_positions": Need((), {"baseline": ("positions.tsv",)}, ("voita_table1_dependencies.csv",), tasks=EITHER),
    "dynamics": TABLE_NEEDS["dynamics"],
    "dependency_scores": TABLE_NEEDS["dependencies"],
    "hard_concrete": Need((*ENCODER, *ALL), {"gates": ("heads.tsv",)}, (), driven=True, tasks=EITHER),
    "attention_maps": Need((), {"baseline": ("roles.tsv", "model.json", "maps.json")}, ()),
    "alignment_heads": Need(ALL, dict.fromkeys(("baseline", "pruned"), ("alignment_heads.tsv",)), (), driven=True),
    "cross_attention": TABLE_NEEDS["cross_attention"],
    "bleu_encoder_heads": Need(
        ENCODER, {"baseline": SCORED, "pruned": SCORED}, ("voita_figure7_encoder_pruning.csv",), driven=True
    ),
    "functions_retained": Need(
        (*ENCODER, *ALL),
        dict.fromkeys(("baseline", "pruned", "scratch"), ("model.json", "roles.tsv")),
        ("voita_figure8_functions.csv",),
        driven=True,
    ),
    "heads_by_type": Need(
        ALL, {"baseline": ("model.json",), "pruned": ("model.json",)}, ("voita_figure9_types.csv",), driven=True
    ),
    "heads_by_layer": Need(
        ALL, {"baseline": ("model.json",), "pruned": ("model.json",)}, ("voita_figure10_layers.csv",), driven=True
    ),
    "score_scratch": Need(
        ALL,
        {"baseline": SCORED, "pruned": SCORED, "scratch": SCORE},
        ("voita_table2_pruning.csv",),
        driven=True,
        tasks=EITHER,
    ),
    "scratch_curves": TABLE_NEEDS["scratch_curve"],
    "michel_fig1": Need((), {"baseline": ("ablation.tsv", *SCORE)}, ("michel_table1_heads.csv",), tasks=EITHER),
    "michel_fig2": Need(
        (),
        {"baseline": ("ablation.tsv", "ablation.dev.tsv", "ablation.out_of_domain.tsv", *SCORE)},
        (),
        optional=("ablation.out_of_domain.tsv",),
        tasks=EITHER,
    ),
    "michel_fig3": Need((), {"baseline": ("masking_curve.tsv", *SCORE)}, (), tasks=EITHER),
    "michel_fig4": Need((), {"baseline": ("masking_curve.tsv", *SCORE)}, ()),
    "michel_fig5": Need((), {"baseline": ("checkpoints.tsv", *SCORE)}, (), tasks=EITHER),
    "michel_layers": Need(
        (), {"baseline": ("layers_to_one.tsv", *SCORE)}, TABLE_NEEDS["michel_table2"].reference, tasks=EITHER
    ),
    "selection": Need((), {"baseline": ("masked.tsv", "compared.tsv", *SCORE)}, (), tasks=EITHER),
    "scoreboard": TABLE_NEEDS["scoreboard"],
    "gates_closing": Need(ALL, {"gates": ("gates.jsonl",)}, (), driven=True, tasks=EITHER),
}
"""By name of the figure; each is drawn for one experiment, except those in ACROSS."""

ANIMATED = ("gates_closing",)
"""Figures that are also written as an animation."""

ACROSS = ("dependency_scores", "scoreboard")
"""Figures drawn once for all experiments that `run` names."""

FROM_SETTINGS = ("hard_concrete",)
"""Figures that also read the settings of gates."""
