"""Every measure of a head but relevance, one record each; the readings of relevance are in `heads.tables.labels`.

Imported by the Snakefile, so nothing heavy may be imported here.
"""

from dataclasses import dataclass

from heads.base.names import CAUSAL_FILE


@dataclass(frozen=True, slots=True)
class Measure:
    """A column of the table of measures.

    file: the file of a run that it is read from. column: its column there; "" for a measure that is made of several
    rows or columns, see SOURCES in `heads.tables.measures`. label: its name in figures; measures without one are not
    correlated, as they repeat another in other units, or on words instead of subwords. name, what: its name and meaning
    on the page, for a translation model; measures without them are not shown there.
    """

    key: str
    file: str
    column: str = ""
    label: str = ""
    name: str = ""
    what: str = ""


GATES = "heads.tsv"
"""The file of runs with gates; all others are of the unpruned model."""

MEASURES = (
    Measure(
        *("confidence", "confidence.tsv", "confidence"),
        label="confidence",
        name="confidence",
        what="mean maximum attention weight, without the end token",
    ),
    Measure(
        *("importance_example", "importance.tsv"),
        label="importance",
        name="importance (Michel et al.)",
        what="mean absolute derivative of the loss with respect to the head's gate, per sentence, over the layer's "
        "norm",
    ),
    Measure(
        *("importance_token", "importance.tsv"),
        label="importance, token",
        name="importance per subword",
        what="the same, absolute value per subword",
    ),
    Measure(
        *("importance_batch", "importance.tsv"),
        label="importance, batch",
        name="importance per batch",
        what="the same, absolute value per batch",
    ),
    Measure(
        *("importance_signed", "importance.tsv"),
        label="importance, signed",
        name="importance, signed",
        what="the same, without absolute values",
    ),
    Measure(
        *("score_lost", "ablation.tsv"),
        label="BLEU lost, masked",
        name="BLEU lost when masked alone",
        what="test BLEU of the model less its BLEU without this one head",
    ),
    Measure(
        *("causal_gate", CAUSAL_FILE, "causal_gate"),
        label="causal gate",
        name="causal gate",
        what="how far its gate stays open when nudged either way, all weights frozen; 1: it helps, 0: it is in the way",
    ),
    Measure("causal_effect", CAUSAL_FILE, "effect"),
    Measure(
        *("syntactic_gain", "roles.tsv"),
        label="syntactic gain",
        name="best gain on a relation",
        what="accuracy above the best fixed offset, for the head's best relation",
    ),
    Measure(
        *("positional_accuracy", "roles.tsv"),
        label="best position",
        name="accuracy at one offset",
        what="share of subwords whose largest weight is at one offset",
    ),
    Measure(
        *("positional_by_bias", "roles.tsv"),
        name="at one offset by its bias alone",
        what="the same with products of queries and keys zero",
    ),
    Measure(
        *("positional_by_content", "roles.tsv"),
        name="at one offset by its content alone",
        what="the same with biases of distances zero",
    ),
    Measure(
        *("rare_accuracy", "roles.tsv"),
        label="rare words",
        name="accuracy on rare subwords",
        what="share of sentences in which it looks most at one of the two rarest subwords",
    ),
    Measure(
        *("gate_last_lambda_all", GATES),
        name="penalty survived, all heads pruned",
        what="the largest λ at which the head's gate stays open when gates are on all kinds of attention; 0: none",
    ),
    Measure(
        *("gate_last_lambda_enc_self", GATES),
        name="penalty survived, encoder pruned",
        what="the largest λ at which the head's gate stays open when gates are on the encoder alone; 0: none",
    ),
    Measure(
        *("gate_fewest_heads_all", GATES),
        name="stays among so few, all heads pruned",
        what="the fewest heads of all kinds of attention among which pruning keeps it; the total number: never kept",
    ),
    Measure(
        *("gate_fewest_heads_enc_self", GATES),
        name="stays among so few, encoder pruned",
        what="the fewest encoder heads among which pruning the encoder keeps it; the total number: never kept",
    ),
    Measure("gate_survival_enc_self", GATES, label="survival, encoder"),
    Measure("gate_survival_all", GATES, label="survival, all"),
)
"""In the order of their files in the table, after relevance."""

LABELS = {measure.key: measure.label for measure in MEASURES if measure.label}
MEASURED_COLUMNS = {
    file: {measure.column: measure.key for measure in MEASURES if measure.file == file}
    for file in dict.fromkeys(measure.file for measure in MEASURES if measure.column)
}
"""By file that holds measures as they are: the key of each by its column."""
FILES = ("lrp.tsv", *dict.fromkeys(measure.file for measure in MEASURES))
