"""The columns of the tables that measure a run, which other stages and all tables read by the same names.

In columns of scores, `bleu` stands for the name of the metric, see `heads.analysis.metrics.Metric.named`. Imported
without torch.
"""

from heads.base.names import ALIGNMENT_FILE, CAUSAL_FILE, CROSS_ATTENTION_FILE, HALVES, HEAD, OUT_OF_DOMAIN_FILE

GATE_COLUMNS = (*HEAD, "log_alpha", "p_open", "open", "strictly_between")
CONFIDENCE_COLUMNS = (*HEAD, "confidence", "tokens")
RELEVANCE_COLUMNS = ("rule", *HEAD, "relevance", "relevance_of_sums", "relevance_absolute", "steps")
IMPORTANCE_COLUMNS = (*HEAD, "form", "importance", "importance_normalised")
CAUSAL_COLUMNS = (*HEAD, "gate", "gate_nudged_open", "gate_nudged_closed", "causal_gate", "effect")
"""Gates are between 0 and 1, and `causal_gate` is the mean of the two nudged ones."""
ROLE_COLUMNS = (
    *("layer", "head", "role", "name", "accuracy", "low", "high", "baseline", "excess_low", "excess_high"),
    *("cases", "reaches", "holds", *HALVES),
)
POSITION_COLUMNS = ("relation", "position", "arcs")
COVERAGE_COLUMNS = (
    *("sentences", "measured", "too_short", "too_long", "not_aligned", "tree_words", "aligned_words"),
    *("aligned_share", "subwords", "unknown_subwords", "arcs", "arcs_inside_words"),
)
DYNAMICS_COLUMNS = ("update", "finished", "layer", "head", "role", "name", "accuracy", "low", "high", "baseline")
ALIGNMENT_COLUMNS = (
    *("step", "layer", "head", "aer", "aer_low", "aer_high", "precision", "recall", "offset", "offset_aer"),
    *("gain", "gain_low", "gain_high", "links", "target_words", "pairs", "aligns"),
)
CROSS_ATTENTION_COLUMNS = (
    *("layer", "head", "role", "share", "low", "high", "offset", "offset_share", "gain_low", "gain_high"),
    *("cases", "pairs", "linked_by", "information", "holds"),
)
ABLATION_COLUMNS = (*HEAD, "bleu", "bleu_change", "p_value")
CHOICE_COLUMNS = (
    *("attention", "layer", "heads", "head_chosen", "bleu", "bleu_change", "p_value"),
    *("head_oracle", "bleu_oracle", "bleu_change_oracle", "p_value_oracle"),
)
WALK_COLUMNS = (
    *("order", "attention", "masked", "of", "share", "bleu"),
    *("bleu_change_low", "bleu_change_high", "bleu_kept_low", "bleu_kept_high"),
)
"""Those of a single order of heads that are masked, without comparison with another."""
MASKING_CURVE_COLUMNS = (*WALK_COLUMNS, "bleu_behind", "bleu_behind_low", "bleu_behind_high")
CHECKPOINT_COLUMNS = ("update", "epoch", "finished", *WALK_COLUMNS)
MASKED_COLUMNS = ("target", "kept", "of", "bleu", "bleu_change", "p_value")
COMPARED_COLUMNS = ("run", "kept", "of", "updates", "bleu", "bleu_change", "p_value")
SPEED_COLUMNS = (
    *("run", "batch_sentences", "repeats", "examples_per_second", "examples_per_second_sd"),
    *("ratio", "ratio_low", "ratio_high", "sentences", "subwords_per_example"),
    *("heads", "of", "parameters", "disk_mb", "peak_memory_mb", "device"),
)

ABLATIONS = ("ablation.tsv", "ablation.dev.tsv", OUT_OF_DOMAIN_FILE)
"""The files of a run with what it scores without each head: on the test set, dev, and another domain."""
COLUMNS_OF = {
    "heads.tsv": GATE_COLUMNS,
    "confidence.tsv": CONFIDENCE_COLUMNS,
    "lrp.tsv": RELEVANCE_COLUMNS,
    "importance.tsv": IMPORTANCE_COLUMNS,
    CAUSAL_FILE: CAUSAL_COLUMNS,
    "roles.tsv": ("trees", *ROLE_COLUMNS),
    "positions.tsv": ("trees", *POSITION_COLUMNS),
    "coverage.tsv": ("trees", *COVERAGE_COLUMNS),
    "dynamics.tsv": DYNAMICS_COLUMNS,
    ALIGNMENT_FILE: ALIGNMENT_COLUMNS,
    CROSS_ATTENTION_FILE: CROSS_ATTENTION_COLUMNS,
    **dict.fromkeys(ABLATIONS, ABLATION_COLUMNS),
    "layers_to_one.tsv": CHOICE_COLUMNS,
    "masking_curve.tsv": MASKING_CURVE_COLUMNS,
    "checkpoints.tsv": CHECKPOINT_COLUMNS,
    "masked.tsv": MASKED_COLUMNS,
    "compared.tsv": COMPARED_COLUMNS,
    "speed.tsv": SPEED_COLUMNS,
}
"""By the name of the file in the folder of a run; accuracy comes with further columns, see `Metric.beside`."""
