"""Which files of which runs each figure reads. Imported by the Snakefile, so nothing heavy may be imported here."""

from heads.base.runs import Need
from heads.tables.needs import BOTH, CAUSAL, MEASURED, SCORE, TRANSLATORS
from heads.tables.needs import NEEDS as TABLE_NEEDS

SCORED = (*SCORE, "model.json")
"""Score files say what a score is measured against, so figures of scores from other files read them too."""
ENCODER, ALL = ("enc_self",), ("all",)
SHAPES = dict.fromkeys(("baseline", "pruned"), ("model.json",))

NEEDS: dict[str, Need] = {
    "heads_needed": Need(
        BOTH,
        {"baseline": ("roles.tsv", "cross_attention_roles.tsv", "ablation.tsv", *SCORE), "gates": ("heads.tsv",)},
        driven=True,
        optional=("roles.tsv",),
        tasks=TRANSLATORS,
    ),
    "head_functions": Need((), {"baseline": ("model.json", "lrp.tsv", "confidence.tsv", "roles.tsv")}),
    "relevance_all": Need((), {"baseline": ("lrp.tsv", "confidence.tsv")}, tasks=TRANSLATORS),
    "measures": Need(
        BOTH,
        {**MEASURED, "baseline": (*MEASURED["baseline"], *SCORE)},
        optional=("roles.tsv", CAUSAL),
        driven=True,
        tasks=TRANSLATORS,
    ),
    "relative_positions": Need(
        (), {"baseline": ("positions.tsv",)}, ("voita_table1_dependencies.csv",), syntactic=True
    ),
    "dynamics": TABLE_NEEDS["dynamics"],
    "dependency_scores": TABLE_NEEDS["dependencies"],
    "hard_concrete": Need(BOTH, {"gates": ("heads.tsv",)}, driven=True),
    "attention_maps": Need((), {"baseline": ("roles.tsv", "model.json", "maps.json")}, tasks=TRANSLATORS),
    "alignment_heads": Need(
        ALL, dict.fromkeys(("baseline", "pruned"), ("alignment_heads.tsv",)), driven=True, tasks=TRANSLATORS
    ),
    "cross_attention": TABLE_NEEDS["cross_attention"],
    "bleu_encoder_heads": Need(
        ENCODER,
        {"baseline": SCORED, "pruned": SCORED},
        ("voita_figure7_encoder_pruning.csv",),
        driven=True,
        tasks=TRANSLATORS,
    ),
    "functions_retained": Need(
        BOTH,
        dict.fromkeys(("baseline", "pruned", "scratch"), ("model.json", "roles.tsv")),
        ("voita_figure8_functions.csv",),
        driven=True,
        tasks=TRANSLATORS,
    ),
    "heads_by_type": Need(ALL, SHAPES, ("voita_figure9_types.csv",), driven=True, tasks=TRANSLATORS),
    "heads_by_layer": Need(ALL, SHAPES, ("voita_figure10_layers.csv",), driven=True, tasks=TRANSLATORS),
    "score_scratch": Need(
        ALL, {"baseline": SCORED, "pruned": SCORED, "scratch": SCORE}, ("voita_table2_pruning.csv",), driven=True
    ),
    "scratch_curves": TABLE_NEEDS["scratch_curve"],
    "michel_fig1": Need((), {"baseline": ("ablation.tsv", *SCORE)}, ("michel_table1_heads.csv",)),
    "michel_fig2": Need(
        (),
        {"baseline": ("ablation.tsv", "ablation.dev.tsv", "ablation.out_of_domain.tsv", *SCORE)},
        optional=("ablation.out_of_domain.tsv",),
    ),
    "michel_fig3": Need((), {"baseline": ("masking_curve.tsv", *SCORE)}),
    "michel_fig4": Need((), {"baseline": ("masking_curve.tsv", *SCORE)}, tasks=TRANSLATORS),
    "michel_fig5": Need((), {"baseline": ("checkpoints.tsv", *SCORE)}),
    "michel_layers": Need((), {"baseline": ("layers_to_one.tsv", *SCORE)}, TABLE_NEEDS["michel_table2"].reference),
    "selection": Need((), {"baseline": ("masked.tsv", "compared.tsv", *SCORE)}),
    "scoreboard": TABLE_NEEDS["scoreboard"],
    "gates_closing": Need(ALL, {"gates": ("gates.jsonl",)}, driven=True),
}
"""By name of the figure; each is drawn for one experiment, except those in ACROSS."""

ANIMATED = ("gates_closing",)
"""Figures that are also written as an animation."""

ACROSS = ("dependency_scores", "scoreboard")
"""Figures drawn once for all experiments that `run` names."""

FROM_SETTINGS = ("hard_concrete",)
"""Figures that also read the settings of gates."""
