"""Names shared by the workflow and the package: kinds of attention, scopes, splits, kinds of models.

Imported by the Snakefile, so nothing heavy may be imported here.
"""

ATTENTIONS = ("enc_self", "dec_self", "dec_enc")
"""The three kinds of multi-head attention, in the order of every table and figure."""

HEAD = ("attention", "layer", "head")
"""The columns that name a head in every table."""

HALVES = ("by_bias", "by_content", "bias_weight")
"""Columns of what heads with biases of distances do by these alone and by products of queries and keys alone."""

FEEDFORWARDS = ("enc_ffn", "dec_ffn")
"""The feed-forward layers of the encoder and of the decoder, whose hidden units can be removed as heads can."""

ATTENTION_LABELS = {
    "enc_self": "encoder self-attention",
    "dec_self": "decoder self-attention",
    "dec_enc": "cross-attention",
}

SCOPES: dict[str, tuple[str, ...]] = {"enc_self": ("enc_self",), "all": ATTENTIONS}
"""Which kinds of attention carry gates in each pruning scope of heads."""

UNIT_SCOPES: dict[str, tuple[str, ...]] = {"feedforward": FEEDFORWARDS, "everything": (*ATTENTIONS, *FEEDFORWARDS)}
"""Pruning scopes in which hidden units carry gates: they alone, or all heads too."""
GATED_SCOPES = {**SCOPES, **UNIT_SCOPES}

CHOICE_SCOPE = "all"
"""The scope in which heads are chosen by other means than gates."""

SPLITS = ("train", "dev", "test")
OUT_OF_DOMAIN = "out_of_domain"
"""The name of the out-of-domain test set that a corpus in files may have in addition to its splits."""

ROLES = "roles"
"""The name of source lines that a corpus in files may hold out from training, to be parsed for the roles of heads."""

TREES = ("gold", "stanza", "own")
"""Trees for roles of heads: the corpus's gold ones, their sentences parsed, and the corpus's own sentences parsed."""
PARSED_TREES = ("stanza", "own")
"""Those of them that come from a parser."""
NO_TREES = "text"
"""In their place in results: sentences without trees, on which no head is measured as syntactic."""

BESIDE = ("bench", "log")
"""Folders beside results, with the times that jobs took and what they said."""

SIDES = ("source", "target")
TASK = "task"
"""The key in settings of stages if the target is not text."""
TRANSLATION, CLASSIFICATION, EMBEDDING = "translation", "classification", "embedding"
"""What models are trained for: to write the target, to predict an example's label, or to embed it in one vector."""
ONE_MODEL = "one model"
"""In their place: what only `heads inspect` and `heads prune` score text by."""
TEXT_TO_TEXT = "text-to-text"
"""What the page calls the task of models whose prefix or training decides what they write, such as T5 and BART."""
METRICS = BLEU, ACCURACY, COSINE, CHRF, ROUGE_L = ("bleu", "accuracy", "cosine", "chrf", "rouge_l")
"""The values of the column `metric` beside a `score` in tables."""
METRIC_NAMES = {BLEU: "BLEU", CHRF: "chrF", ROUGE_L: "ROUGE-L"}
"""The names of those of text."""
TEXT_METRICS = {name.lower(): metric for metric, name in METRIC_NAMES.items()}
"""Metrics by the values of --metric."""
TASK_OF = {
    **{BLEU: TRANSLATION, CHRF: TRANSLATION, ROUGE_L: TRANSLATION},
    **{ACCURACY: CLASSIFICATION, COSINE: EMBEDDING},
}
SCORES = {metric: f"{metric}.json" for metric in METRICS}
"""The file of a run with its score, by metric."""
SCORED_FILES = {TRANSLATION: (SCORES[BLEU], "translations.txt"), CLASSIFICATION: (SCORES[ACCURACY], "predictions.txt")}
"""The files of every scored run, by task."""
CROSS_ATTENTION_FILE = "cross_attention_roles.tsv"
ALIGNMENT_FILE = "alignment_heads.tsv"
"""The file of a run that is made only if there is a word alignment."""
CAUSAL_FILE = "causal.tsv"
"""The file of a run that is made only if causal gates are fitted."""
OUT_OF_DOMAIN_FILE = f"ablation.{OUT_OF_DOMAIN}.tsv"
"""The file of a run that is made only if there is an out-of-domain test set."""
ONLY_OF = {
    TRANSLATION: (SCORES[BLEU], "bleu_statistics.tsv", CROSS_ATTENTION_FILE, ALIGNMENT_FILE, CAUSAL_FILE),
    CLASSIFICATION: (SCORES[ACCURACY],),
    EMBEDDING: (SCORES[COSINE],),
    ONE_MODEL: (SCORES[CHRF], SCORES[ROUGE_L]),
}
"""Files that only runs with this task have; no run of the workflow has those of vectors and of ONE_MODEL."""
KINDS_OF = {TRANSLATION: ATTENTIONS, CLASSIFICATION: ("enc_self",)}
"""The kinds of attention that models have, by their task."""
KINDS = ("baseline", "gates", "pruned", "scratch", "selected", "gates_from_scratch", "pruned_from_scratch")
"""The kinds of trained models, in the order in which they are made. `gates_from_scratch` are trained with gates and
their penalty from a fresh initialisation; `pruned_from_scratch` is what is left of such a model."""
OLD_KINDS = {"penalty_gates": "gates_from_scratch", "penalty_scratch": "pruned_from_scratch"}
"""Kinds by the names that their folders had until November 2026."""
WITH_GATES = ("gates", "gates_from_scratch")
"""Kinds of models that still have all heads, open or closed."""

WMT = "WMT"
PAPER_CORPORA = (WMT, "OpenSubtitles")
"""The corpora of Voita et al. 2019, as named in the files of their numbers. Experiments are compared with the numbers
for WMT unless their corpus says otherwise."""
OURS = "ours"
"""The source of a claim that comes from no paper: a control of our own."""

REFERENCES, UNPRUNED = "references", "unpruned model"
"""What test set scores are against: targets written by people, or by the model itself before pruning."""
TOKENIZE, AUTO = "tokenize", "auto"
TOKENISERS = (
    *(AUTO, "13a", "zh", "ja-mecab", "ko-mecab", "char", "intl", "none"),
    *("flores101", "flores200", "spm", "spBLEU-1K"),
)
"""The tokenisers that BLEU may use: one of sacrebleu, or that for the script of the references."""
DEFAULT_TOKENISER = "13a"
"""sacrebleu's default, which names of BLEU leave unsaid."""
FIDELITY = "BLEU (fidelity)"
"""The name of BLEU against anything but references: how close the output is to a model's, not how good."""

OVER_SEEDS = MEAN, DEVIATION = ("mean", "sd")
"""The values of the column `seed` in rows over several seeds."""
QUANTIZATIONS = ("float32", "float16", "bfloat16", "int16", "int8", "int8_float16", "int8_bfloat16")
"""CTranslate2's number formats of weights; the first is that of all other formats."""
