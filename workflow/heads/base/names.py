"""Names shared by the workflow and the package: kinds of attention, scopes, splits, kinds of models.

Imported by the Snakefile, so nothing heavy may be imported here.
"""

from __future__ import annotations

ATTENTIONS = ("enc_self", "dec_self", "dec_enc")
"""The three kinds of multi-head attention, in the order of every table and figure."""

ATTENTION_LABELS = {
    "enc_self": "encoder self-attention",
    "dec_self": "decoder self-attention",
    "dec_enc": "cross-attention",
}

SCOPES: dict[str, tuple[str, ...]] = {"enc_self": ("enc_self",), "all": ATTENTIONS}
"""Which kinds of attention carry gates in each pruning scope."""

CHOICE_SCOPE = "all"
"""The scope in which heads are chosen by other means than gates."""

SPLITS = ("train", "dev", "test")
OUT_OF_DOMAIN = "out_of_domain"
"""The name of a test set of another domain, which a corpus in files may have beside its splits."""

ROLES = "roles"
"""The name of source lines that a corpus in files may keep away from training, to be parsed for the roles of heads."""

TREES = ("gold", "stanza", "own")
"""Trees that roles of heads are measured on: those that the corpus brings, their sentences parsed, and sentences of the
corpus's own parsed."""
PARSED_TREES = ("stanza", "own")
"""Those of them that come from a parser."""

SIDES = ("source", "target")
TASK = "task"
"""The key in settings of stages where the target is no text."""
TRANSLATION, CLASSIFICATION, EMBEDDING = "translation", "classification", "embedding"
"""What models are trained for: to write the target, to tell the label of an example, or to make one vector of it."""
METRICS = BLEU, ACCURACY, COSINE = ("bleu", "accuracy", "cosine")
"""What tables have as the `metric` of a `score`."""
TASK_OF = {BLEU: TRANSLATION, ACCURACY: CLASSIFICATION, COSINE: EMBEDDING}
SCORES = {metric: f"{metric}.json" for metric in METRICS}
"""By metric the file of a run that has its score."""
SCORED_FILES = {
    TRANSLATION: (SCORES[BLEU], "translations.txt"),
    CLASSIFICATION: (SCORES[ACCURACY], "predictions.txt"),
}
"""What is made of every run that is scored."""
ONLY_OF = {
    TRANSLATION: (SCORES[BLEU], "bleu_statistics.tsv", "cross_attention_roles.tsv", "causal.tsv"),
    CLASSIFICATION: (SCORES[ACCURACY],),
    EMBEDDING: (SCORES[COSINE],),
}
"""Files that are made of runs with this task alone."""
KINDS_OF = {TRANSLATION: ATTENTIONS, CLASSIFICATION: ("enc_self",)}
"""The kinds of attention that models have, by what they are trained for."""
KINDS = ("baseline", "gates", "pruned", "scratch", "selected", "penalty_gates", "penalty_scratch")
"""The kinds of trained models, in the order in which they are made. In `penalty_gates` gates and their penalty are
there from a fresh initialisation on; `penalty_scratch` is what is left of such a model."""
WITH_GATES = ("gates", "penalty_gates")
"""Kinds that have all their heads, open or closed."""

WMT = "WMT"
PAPER_CORPORA = (WMT, "OpenSubtitles")
"""The corpora of Voita et al. 2019, as files of their numbers call them. Experiments are held against numbers of WMT
unless their corpus says otherwise."""
OURS = "ours"
"""Whose claim it is in the place of a study: a control that no paper has."""

REFERENCES, UNPRUNED = "references", "unpruned model"
"""What scores of the test set are against: targets that people wrote, or that the model itself wrote before pruning."""
FIDELITY = "BLEU (fidelity)"
"""What BLEU is called against anything but references: how much is as a model wrote it, not how good it is."""

OVER_SEEDS = MEAN, DEVIATION = ("mean", "sd")
"""What tables have as the seed of rows over several seeds."""
