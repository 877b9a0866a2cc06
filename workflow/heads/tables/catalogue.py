"""Every table and figure: what makes it, and which files of which runs it reads.

Imported by the Snakefile, so nothing heavy may be imported here: functions are named, and imported when needed.
"""

from dataclasses import dataclass, replace

from heads.base.names import (
    ALIGNMENT_FILE,
    CAUSAL_FILE,
    CROSS_ATTENTION_FILE,
    OUT_OF_DOMAIN_FILE,
    SCORES,
    TRANSLATION,
    UNIT_SCOPES,
)
from heads.base.runs import Need
from heads.tables.head_measures import FILES, GATES


@dataclass(frozen=True, slots=True)
class Made:
    """What is made of runs; its caption is in report/captions.rst.

    function: the module and the function that is given the frames that `need` asks for, and the papers' numbers.
    """

    function: str
    need: Need


@dataclass(frozen=True, slots=True)
class Table(Made):
    """A table. keys: the columns that identify rows which differ only by their seed; those get means and deviations.

    Never single heads: head 3 of one seed is not head 3 of another. Both tables of claims handle their seeds
    themselves, because a mean has a verdict of its own.
    """

    keys: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Figure(Made):
    """A figure of one experiment, or `across` all that `run` names; its function is also given their names, at the end.

    gates: whether the function is given the settings of gates, before the names. animation: the function, in the same
    module, that writes the figure as an animation as well.
    """

    across: bool = False
    gates: bool = False
    animation: str = ""


ENCODER, ALL, BOTH = ("enc_self",), ("all",), ("enc_self", "all")
TRANSLATORS = (TRANSLATION,)
SCORE = tuple(SCORES.values())
"""The files that hold the score of a run; each run has one of them."""
MEASURED = {"baseline": tuple(file for file in FILES if file != GATES), "gates": (GATES,)}
"""The files from which all measures of a head are read."""

MICHEL = ("layers_to_one.tsv", "masking_curve.tsv", "checkpoints.tsv", "speed.tsv", OUT_OF_DOMAIN_FILE)
"""The files from which the claims of Michel et al. are read, besides those of single heads masked."""
SCORE_AND_SHAPE = (*SCORE, "model.json")
"""Score files say what a score is measured against, so figures of scores from other files read them too."""
COMPARED = (*SCORE, "bleu_statistics.tsv")
TRAINED = ("model.json", "train.jsonl")
SHAPES = dict.fromkeys(("baseline", "pruned"), ("model.json",))
ONE_MODEL = ("experiment", "kind", "scope", "lam", "keep")

CLAIMS = Need(
    BOTH,
    {
        "baseline": (*MEASURED["baseline"], *COMPARED, "model.json", *MICHEL, ALIGNMENT_FILE),
        "gates": (*MEASURED["gates"], *TRAINED),
        "pruned": ("roles.tsv", *COMPARED, "model.json"),
        "scratch": (*COMPARED, *TRAINED),
        "selected": (*COMPARED, *TRAINED),
        "pruned_from_scratch": (*COMPARED, "model.json"),
    },
    ("voita_claims.csv", "michel_claims.csv", "alignment_claims.csv", "michel_nli_claims.csv"),
    optional=("roles.tsv", CAUSAL_FILE, *MICHEL, ALIGNMENT_FILE),
    driven=True,
)
MEASURES = Need(BOTH, MEASURED, optional=("roles.tsv", CAUSAL_FILE), driven=True)
DEPENDENCIES = Need((), {"baseline": ("roles.tsv", "coverage.tsv")}, ("voita_table1_dependencies.csv",), syntactic=True)
DYNAMICS = Need((), {"baseline": ("dynamics.tsv",)})
CROSS_ATTENTION = Need((), {"baseline": (CROSS_ATTENTION_FILE,)}, tasks=TRANSLATORS)
SCRATCH_CURVE = Need(
    BOTH, dict.fromkeys(("baseline", "gates", "scratch", "selected"), TRAINED), driven=True, tasks=TRANSLATORS
)
LAYERS = ("michel_tables2_5_layers.csv", "michel_tables3_6_bert_layers.csv")
PRUNING = Need(
    BOTH,
    {
        **dict.fromkeys(("baseline", "scratch", "selected"), (*SCORE, *TRAINED)),
        "gates": ("heads.tsv", *TRAINED),
        "pruned": SCORE_AND_SHAPE,
    },
    ("voita_table2_pruning.csv", "voita_figure7_encoder_pruning.csv"),
    driven=True,
)
ROLES = Need(
    BOTH,
    dict.fromkeys(("baseline", "pruned", "scratch"), ("roles.tsv", "model.json", "coverage.tsv")),
    ("voita_figure8_functions.csv",),
    driven=True,
)

TABLES: dict[str, Table] = {
    "pruning": Table("tables.pruning.pruning_table", PRUNING, ONE_MODEL),
    "scratch_curve": Table("tables.curves.scratch_curve_table", SCRATCH_CURVE, ("experiment", "scope", "lam", "keep")),
    "spare": Table(
        "tables.pruning.spare_table",
        Need(BOTH, dict.fromkeys(("baseline", "pruned"), (*COMPARED, "model.json")), driven=True, tasks=TRANSLATORS),
        ("experiment", "scope", "against", "most_score_lost"),
    ),
    "units": Table(
        "tables.units.units_table",
        Need(tuple(UNIT_SCOPES), dict.fromkeys(("baseline", "pruned"), SCORE_AND_SHAPE), driven=True),
        ONE_MODEL,
    ),
    "dependencies": Table("tables.roles.dependencies_table", DEPENDENCIES, ("experiment", "relation", "direction")),
    "roles": Table("tables.roles.roles_table", ROLES, ONE_MODEL),
    "role_drift": Table(
        "tables.roles.role_drift",
        Need(BOTH, dict.fromkeys(("baseline", "pruned"), ("roles.tsv", "model.json")), driven=True),
    ),
    "dynamics": Table("tables.roles.dynamics_table", DYNAMICS, ("experiment", "update", "finished", "role", "name")),
    "alignment": Table(
        "tables.cross_attention.alignment_table",
        Need(
            BOTH,
            dict.fromkeys(("baseline", "pruned", "scratch"), (ALIGNMENT_FILE, "model.json")),
            driven=True,
            tasks=TRANSLATORS,
        ),
        (*ONE_MODEL, "layer"),
    ),
    "cross_attention": Table("tables.cross_attention.cross_attention_table", CROSS_ATTENTION),
    "speed": Table(
        "tables.michel.speed_table",
        Need((), {"baseline": ("speed.tsv",)}, ("michel_table4_speed.csv",)),
        ("experiment", "device", "kind", "scope", "lam", "keep", "batch_sentences"),
    ),
    "michel_table1": Table(
        "tables.michel.heads_table",
        Need((), {"baseline": ("ablation.tsv", "ablation.dev.tsv")}, ("michel_table1_heads.csv",)),
    ),
    "michel_table2": Table(
        "tables.michel.layers_table",
        Need((), {"baseline": ("layers_to_one.tsv",)}, LAYERS),
        ("experiment", "attention", "layer"),
    ),
    "michel_masking_curve": Table(
        "tables.michel.curve_table",
        Need((), {"baseline": ("masking_curve.tsv",)}),
        ("experiment", "order", "attention", "masked"),
    ),
    "michel_checkpoints": Table(
        "tables.michel.checkpoints_table",
        Need((), {"baseline": ("checkpoints.tsv",)}, ("michel_figure5_moments.csv",)),
        ("experiment", "update", "finished", "masked"),
    ),
    "measures": Table("tables.measures.measures_table", MEASURES),
    "correlations": Table(
        "tables.measures.correlations_table", MEASURES, ("experiment", "attention", "measure_a", "measure_b")
    ),
    "selection": Table(
        "tables.selection.selection_table",
        Need((), {"baseline": ("masked.tsv", "compared.tsv")}),
        ("experiment", "target", "treatment", "updates"),
    ),
    "claims": Table("tables.claims.decided_claims", CLAIMS),
    "scoreboard": Table("tables.claims.scoreboard_table", CLAIMS),
}
"""By name. `corpus` and `parser` are missing because they read no runs, see `heads.tables.corpus`."""

FIGURES: dict[str, Figure] = {
    "heads_needed": Figure(
        "figures.importance.heads_needed",
        Need(
            BOTH,
            {"baseline": ("roles.tsv", CROSS_ATTENTION_FILE, "ablation.tsv", *SCORE), "gates": ("heads.tsv",)},
            driven=True,
            optional=("roles.tsv",),
            tasks=TRANSLATORS,
        ),
    ),
    "head_functions": Figure(
        "figures.importance.head_functions",
        Need((), {"baseline": ("model.json", "lrp.tsv", "confidence.tsv", "roles.tsv")}),
    ),
    "relevance_all": Figure(
        "figures.importance.relevance_all",
        Need((), {"baseline": ("lrp.tsv", "confidence.tsv")}, tasks=TRANSLATORS),
    ),
    "measures": Figure(
        "figures.measures.measures",
        replace(MEASURES, files={**MEASURED, "baseline": (*MEASURED["baseline"], *SCORE)}, tasks=TRANSLATORS),
    ),
    "relative_positions": Figure(
        "figures.dependencies.relative_positions",
        Need((), {"baseline": ("positions.tsv",)}, ("voita_table1_dependencies.csv",), syntactic=True),
    ),
    "dynamics": Figure("figures.functions.dynamics", DYNAMICS),
    "dependency_scores": Figure("figures.dependencies.dependency_scores", DEPENDENCIES, across=True),
    "hard_concrete": Figure(
        "figures.gates.hard_concrete", Need(BOTH, {"gates": ("heads.tsv",)}, driven=True), gates=True
    ),
    "attention_maps": Figure(
        "figures.maps.attention_maps",
        Need((), {"baseline": ("roles.tsv", "model.json", "maps.json")}, tasks=TRANSLATORS),
    ),
    "alignment_heads": Figure(
        "figures.cross_attention.alignment_heads",
        Need(ALL, dict.fromkeys(("baseline", "pruned"), (ALIGNMENT_FILE,)), driven=True, tasks=TRANSLATORS),
    ),
    "cross_attention": Figure("figures.cross_attention.cross_attention", CROSS_ATTENTION),
    "bleu_encoder_heads": Figure(
        "figures.pruning.bleu_encoder_heads",
        Need(
            ENCODER,
            dict.fromkeys(("baseline", "pruned"), SCORE_AND_SHAPE),
            ("voita_figure7_encoder_pruning.csv",),
            driven=True,
            tasks=TRANSLATORS,
        ),
    ),
    "functions_retained": Figure(
        "figures.functions.functions_retained",
        Need(
            BOTH,
            dict.fromkeys(("baseline", "pruned", "scratch"), ("model.json", "roles.tsv")),
            ("voita_figure8_functions.csv",),
            driven=True,
            tasks=TRANSLATORS,
        ),
    ),
    "heads_by_type": Figure(
        "figures.pruning.heads_by_type",
        Need(ALL, SHAPES, ("voita_figure9_types.csv",), driven=True, tasks=TRANSLATORS),
    ),
    "heads_by_layer": Figure(
        "figures.pruning.heads_by_layer",
        Need(ALL, SHAPES, ("voita_figure10_layers.csv",), driven=True, tasks=TRANSLATORS),
    ),
    "score_scratch": Figure(
        "figures.pruning.score_scratch",
        Need(
            ALL,
            {"baseline": SCORE_AND_SHAPE, "pruned": SCORE_AND_SHAPE, "scratch": SCORE},
            ("voita_table2_pruning.csv",),
            driven=True,
        ),
    ),
    "scratch_curves": Figure("figures.pruning.scratch_curves", SCRATCH_CURVE),
    "michel_fig1": Figure(
        "figures.michel.fig1", Need((), {"baseline": ("ablation.tsv", *SCORE)}, ("michel_table1_heads.csv",))
    ),
    "michel_fig2": Figure(
        "figures.michel.fig2",
        Need(
            (),
            {"baseline": ("ablation.tsv", "ablation.dev.tsv", OUT_OF_DOMAIN_FILE, *SCORE)},
            optional=(OUT_OF_DOMAIN_FILE,),
        ),
    ),
    "michel_fig3": Figure("figures.michel.fig3", Need((), {"baseline": ("masking_curve.tsv", *SCORE)})),
    "michel_fig4": Figure(
        "figures.michel.fig4", Need((), {"baseline": ("masking_curve.tsv", *SCORE)}, tasks=TRANSLATORS)
    ),
    "michel_fig5": Figure("figures.michel.fig5", Need((), {"baseline": ("checkpoints.tsv", *SCORE)})),
    "michel_layers": Figure("figures.michel.layers", Need((), {"baseline": ("layers_to_one.tsv", *SCORE)}, LAYERS)),
    "selection": Figure("figures.selection.selection", Need((), {"baseline": ("masked.tsv", "compared.tsv", *SCORE)})),
    "scoreboard": Figure("figures.scoreboard.scoreboard", CLAIMS, across=True),
    "gates_closing": Figure(
        "figures.gates.gates_closing",
        Need(ALL, {"gates": ("gates.jsonl",)}, driven=True),
        animation="figures.gates.write_animation",
    ),
}
"""By name; numbers of `michel_fig` are those of the paper's figures, and `michel_layers` corresponds to its tables."""

CORPUS_FILES = {
    "corpus": ("{split}.source.txt", "{split}.target.txt", "filters.tsv"),
    # Subwords are read together with the checksum beside them.
    "bpe": (
        *("source.model", "source.json", "target.model", "target.json"),
        *("{split}.source.safetensors", "{split}.target.safetensors"),
    ),
}
"""The files that the corpus table reads below results/corpora/{corpus} and below results/{experiment}/bpe."""
