"""The files of runs that each table reads. Imported by the Snakefile, so nothing heavy may be imported here."""

from heads.base.names import SCORES, TRANSLATION, UNIT_SCOPES
from heads.base.runs import Need

BOTH = ("enc_self", "all")
TRANSLATORS = (TRANSLATION,)
SCORE = tuple(SCORES.values())
"""The files that hold the score of a run; each run has one of them."""
CAUSAL = "causal.tsv"
MEASURED = {
    "baseline": ("lrp.tsv", "confidence.tsv", "roles.tsv", "importance.tsv", "ablation.tsv", CAUSAL),
    "gates": ("heads.tsv",),
}
"""The files from which all measures of a head are read; see SOURCES in `heads.tables.measures`."""

MICHEL = ("layers_to_one.tsv", "masking_curve.tsv", "checkpoints.tsv", "speed.tsv", "ablation.out_of_domain.tsv")
"""The files from which the claims of Michel et al. are read, besides those of single heads masked."""
ALIGNED = "alignment_heads.tsv"
SCORED = (*SCORE, "bleu_statistics.tsv")
TRAINED = ("model.json", "train.jsonl")

CLAIMS = Need(
    BOTH,
    {
        "baseline": (*MEASURED["baseline"], *SCORED, "model.json", *MICHEL, ALIGNED),
        "gates": (*MEASURED["gates"], *TRAINED),
        "pruned": ("roles.tsv", *SCORED, "model.json"),
        "scratch": (*SCORED, *TRAINED),
        "selected": (*SCORED, *TRAINED),
        "penalty_scratch": (*SCORED, "model.json"),
    },
    ("voita_claims.csv", "michel_claims.csv", "alignment_claims.csv", "michel_nli_claims.csv"),
    optional=("roles.tsv", CAUSAL, *MICHEL, ALIGNED),
    driven=True,
)
"""What both tables of claims read."""

NEEDS: dict[str, Need] = {
    "pruning": Need(
        BOTH,
        {
            **dict.fromkeys(("baseline", "scratch", "selected"), (*SCORE, *TRAINED)),
            "gates": ("heads.tsv", *TRAINED),
            "pruned": (*SCORE, "model.json"),
        },
        ("voita_table2_pruning.csv", "voita_figure7_encoder_pruning.csv"),
        driven=True,
    ),
    "scratch_curve": Need(
        BOTH, dict.fromkeys(("baseline", "gates", "scratch", "selected"), TRAINED), driven=True, tasks=TRANSLATORS
    ),
    "spare": Need(BOTH, dict.fromkeys(("baseline", "pruned"), (*SCORED, "model.json")), driven=True, tasks=TRANSLATORS),
    "units": Need(tuple(UNIT_SCOPES), dict.fromkeys(("baseline", "pruned"), (*SCORE, "model.json")), driven=True),
    "dependencies": Need(
        (), {"baseline": ("roles.tsv", "coverage.tsv")}, ("voita_table1_dependencies.csv",), syntactic=True
    ),
    "roles": Need(
        BOTH,
        dict.fromkeys(("baseline", "pruned", "scratch"), ("roles.tsv", "model.json", "coverage.tsv")),
        ("voita_figure8_functions.csv",),
        driven=True,
    ),
    "role_drift": Need(BOTH, dict.fromkeys(("baseline", "pruned"), ("roles.tsv", "model.json")), driven=True),
    "dynamics": Need((), {"baseline": ("dynamics.tsv",)}),
    "alignment": Need(
        BOTH, dict.fromkeys(("baseline", "pruned", "scratch"), (ALIGNED, "model.json")), driven=True, tasks=TRANSLATORS
    ),
    "cross_attention": Need((), {"baseline": ("cross_attention_roles.tsv",)}, tasks=TRANSLATORS),
    "speed": Need((), {"baseline": ("speed.tsv",)}, ("michel_table4_speed.csv",)),
    "michel_table1": Need((), {"baseline": ("ablation.tsv", "ablation.dev.tsv")}, ("michel_table1_heads.csv",)),
    "michel_table2": Need(
        (), {"baseline": ("layers_to_one.tsv",)}, ("michel_tables2_5_layers.csv", "michel_tables3_6_bert_layers.csv")
    ),
    "michel_masking_curve": Need((), {"baseline": ("masking_curve.tsv",)}),
    "michel_checkpoints": Need((), {"baseline": ("checkpoints.tsv",)}, ("michel_figure5_moments.csv",)),
    "measures": Need(BOTH, MEASURED, optional=("roles.tsv", CAUSAL), driven=True),
    "correlations": Need(BOTH, MEASURED, optional=("roles.tsv", CAUSAL), driven=True),
    "selection": Need((), {"baseline": ("masked.tsv", "compared.tsv")}),
    "claims": CLAIMS,
    "scoreboard": CLAIMS,
}
"""By name of the table: the frames, and the papers' numbers, that the function of this table is given. `corpus` is
missing because it reads no runs, see `heads.tables.corpus`."""

AGAINST_CORPORA = ("claims", "scoreboard")
"""Tables, and the figure of the same name, that test claims about one of the paper's corpora."""

CORPUS_FILES = {
    "corpus": ("{split}.source.txt", "{split}.target.txt", "filters.tsv"),
    # Subwords are read together with the checksum beside them.
    "bpe": (
        *("source.model", "source.json", "target.model", "target.json"),
        *("{split}.source.safetensors", "{split}.target.safetensors"),
    ),
}
"""The files that the corpus table reads below results/corpora/{corpus} and below results/{experiment}/bpe."""
