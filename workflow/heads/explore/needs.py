"""Files that the page reads. Imported by the Snakefile, so nothing heavy may be imported here."""

from heads.base.names import ALIGNMENT_FILE, CROSS_ATTENTION_FILE
from heads.base.runs import Need
from heads.tables.catalogue import BOTH, SCORE

EXPLORED = Need(
    BOTH,
    {
        "baseline": ("model.json", *SCORE, "roles.tsv", ALIGNMENT_FILE, "maps.json", CROSS_ATTENTION_FILE),
        "gates": ("heads.tsv", "gates.jsonl"),
        "pruned": ("model.json", *SCORE, "maps.json"),
        "scratch": ("model.json", *SCORE),
    },
    optional=("roles.tsv", ALIGNMENT_FILE, CROSS_ATTENTION_FILE),
    driven=True,
)
TABLES = ("measures", "michel_table1", "pruning", "selection", "claims", "scoreboard")
"""The tables that the page shows; if one is missing, the page shows less."""

BY_PLACE = {
    ("Voita", "Fig 10"): "heads_by_layer",
    ("Voita", "Fig 9"): "heads_by_type",
    ("Voita", "Fig 8"): "functions_retained",
    ("Voita", "Table 2"): "score_scratch",
    ("Voita", "Table 1"): "dependency_scores",
    ("Michel", "Fig 4"): "michel_fig4",
    ("Michel", "Fig 2"): "michel_fig2",
}
"""The figure for a claim, by the paper and place that its source names."""
BY_TOPIC = {
    "relevance and confidence": "measures",
    "positional heads": "head_functions",
    "syntactic heads": "head_functions",
    "a head for rare words": "head_functions",
    "gates and fine-tuning": "hard_concrete",
    "encoder heads pruned": "bleu_encoder_heads",
    "heads of all kinds pruned": "heads_by_type",
    "which heads stay": "heads_by_layer",
    "heads masked one at a time, layers cut to one head": "michel_fig1",
    "heads masked in the order of importance": "michel_fig3",
    "other domains, other moments, speed": "michel_fig5",
    "word alignment": "alignment_heads",
    "against a control": "bleu_encoder_heads",
}
"""The figure for a claim by its topic, if its place has none."""

PICTURES = tuple(dict.fromkeys((*BY_PLACE.values(), *BY_TOPIC.values())))
"""All figures that claims link to."""


def figure_of(source: str, topic: str) -> str:
    """The name of the figure for a claim; "" if its topic has none."""
    named = [name for (paper, place), name in BY_PLACE.items() if source.startswith(paper) and place in source]
    return next(iter(named), BY_TOPIC.get(topic, ""))
