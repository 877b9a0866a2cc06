"""Sections of an experiment on what is measured on trained models: types, bounds, defaults, descriptions.

The defaults are the papers' values. The order of keys is that of config.yaml and of the settings files of stages.
"""

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from heads.base.names import ATTENTIONS, TREES
from heads.config.fields import (
    AtLeastZero,
    Closed,
    Count,
    CountOrZero,
    EachOnce,
    Integer,
    Number,
    Positive,
    PositiveShare,
    Resamples,
    Share,
    Text,
    YesNo,
    meant,
    one_of,
    setting,
)

LRP_RULES = (
    "plain",
    "plain-softmax",
    "plain-product",
    "z-plus",
    "z-plus-values",
    "alpha-beta",
    "alpha-beta-values",
    "attnlrp",
    "attnlrp-values",
    "voita-2019",
)

AttentionOrLayer = Annotated[
    str,
    Field(pattern=f"^({'|'.join(ATTENTIONS)})([.](0|[1-9][0-9]*))?$"),
    meant("a kind of attention such as dec_enc, or one of its layers such as dec_enc.2"),
]


class TranslateSettings(Closed):
    """Beam search on the test set."""

    beam: Count = setting(4, "[repo]")
    length_penalty: AtLeastZero = setting(0.6, "[repo]")
    batch_tokens: Count = setting(4000, "source tokens at once")
    sentences: CountOrZero = setting(0, "of the test set; 0: all")


class ConfidenceSettings(Closed):
    """Number of dev sentences that confidence is averaged over."""

    sentences: CountOrZero = setting(0, "of the dev set; 0: all")
    batch_tokens: Count = setting(4000, "source tokens at once")


class LrpSettings(Closed):
    """Layer-wise relevance propagation."""

    sentences: CountOrZero = setting(0, "of the dev set, at all generation steps [second-hand]; 0: all")
    batch_tokens: Count = setting(1000, "source tokens at once")
    stabiliser: Positive = setting(
        1e-12,
        "OURS: the paper states none; in float64, added to a denominator with its sign. z-plus and alpha-beta add "
        "nothing; they treat a side of a sum below this share of the whole as zero.",
    )
    rules: Annotated[tuple[Annotated[str, one_of(*LRP_RULES)], ...], Field(min_length=1), EachOnce] = setting(
        ("plain", "z-plus", "alpha-beta", "attnlrp", "plain-product", "voita-2019"),
        "How relevance is distributed, and what attention weights get of it. plain: the paper's ratio (app. A.2) "
        "through values only; weights are constants and get nothing. plain-product: with the paper's rule for "
        "products, u / sum of u', so that a weight gets weight / (weight + value) and passes it on to its query and "
        "key; unbounded as the sum nears zero. z-plus, alpha-beta: the textbook rules of Bach et al. 2015; "
        "attention as a linear function of queries, keys and values by its derivatives, since its weights are not "
        "neurons. attnlrp: Achtibat et al. 2024; half of each product. The other way through attention: "
        "plain-softmax, z-plus-values and so on. voita-2019: what the authors' released code does, with "
        "its own constants; rescaled after each operation, attention by derivatives. Claims are decided by plain with "
        "signed shares, as in the paper, and say where its other shares or z-plus differ; heads are sorted and "
        "chosen by absolute shares under the first rule. "
        "lrp_conservation.tsv has what every rule conserved.",
    )


class RolesSettings(Closed):
    """When a head counts as positional, syntactic or a rare-word head, and on which trees; the first ones decide."""

    trees: Annotated[tuple[Annotated[str, one_of(*TREES)], ...], Field(min_length=1), EachOnce] = setting(
        ("gold",),
        "gold: the corpus's gold trees; stanza: the sentences of gold, parsed; own: the corpus's own sentences, "
        "parsed, from the lines held out for that (hold_out: {roles: N}), else from its dev text. All are measured; "
        "the first decide roles, the second are shown beside them in tables. Left out is what the corpus has no "
        "treebank for; if that is all, its own sentences are measured without trees, for all but syntactic roles.",
    )
    sentences: CountOrZero = setting(
        50000, "at most, of the trees; 50k held-out English sentences [second-hand]; 0: all"
    )
    max_subwords: Count = setting(200, "OURS: longer sentences are left out and counted, as in training")
    batch_tokens: Count = setting(4000, "source tokens at once")
    bootstrap: Resamples = setting(1000, "OURS: draws of sentences for the 95 % intervals")
    positional_share: Share = setting(0.9, "argmax at one offset for at least this share of subwords [blog]")
    syntactic_margin: AtLeastZero = setting(0.1, "above the positional baseline [second-hand]")
    margin_is_relative: YesNo = setting(False, "OURS: 10 points; true: 10 percent of the baseline")
    relations: Annotated[tuple[Text, ...], Field(min_length=1), EachOnce] = setting(
        ("nsubj", "obj", "amod", "advmod"), "the paper's dobj is UD v2's obj"
    )
    min_cases: Count = setting(50, "OURS: a relation seen less often gives no role")
    rare_outside_top: CountOrZero = setting(
        500, "sentences whose rarest subword is not among this many most frequent ones [blog]"
    )
    rare_share: Share = setting(
        0.5,
        "OURS: the paper reports heads with 50 % (WMT) and 83 % (OpenSubtitles) on one of the two rarest",
    )


class AlignmentHeadsSettings(Closed):
    """Attention of cross-attention heads compared with a word alignment of the dev set."""

    sentences: CountOrZero = setting(0, "of the dev set; 0: all")
    max_subwords: Count = setting(200, "as for roles: pairs with a longer side are left out and counted")
    batch_tokens: Count = setting(4000, "source tokens at once")
    bootstrap: Resamples = setting(1000, "OURS: draws of pairs for the 95 % intervals")
    steps: Annotated[tuple[Annotated[str, one_of("output", "input")], ...], Field(min_length=1), EachOnce] = setting(
        ("output", "input"),
        "OURS: the decoder step that counts for a word; output: the step that writes it, as in most of the literature; "
        "input: the next one, which reads it (Chen et al. 2020). All are measured; tables and figures show the first.",
    )
    margin: AtLeastZero = setting(0.1, "OURS: a head aligns if its error is this much below the best fixed offset's")


class MapsSettings(Closed):
    """Number of sentences or examples whose attention maps are kept, and how many words these may have."""

    sentences: Count = setting(24, "OURS: the first of the trees, else of the dev set")
    min_words: Count = setting(8, "shorter ones are skipped")
    max_words: Count = setting(14, "longer ones too")


class SpeedSettings(Closed):
    """How models are timed: batch sizes, sentences, repeats and search."""

    batch_sizes: Annotated[tuple[Count, ...], Field(min_length=1), EachOnce] = setting(
        (1, 4, 16, 64), "sentences translated at once [second-hand]"
    )
    sentences: Count = setting(256, "OURS: of the test set, translated once per round")
    # A spread needs two.
    repeats: Annotated[Integer, Field(ge=2)] = setting(
        6, "2 machines x 3 repeats [second-hand]; ours are 6 rounds on one machine"
    )
    beam: Count = setting(4, "as in translate")
    length_penalty: AtLeastZero = setting(0.6, "as in translate")


class ImportanceSettings(Closed):
    """Number of dev sentences that importance is averaged over."""

    sentences: CountOrZero = setting(0, "of the dev set; 0: all")
    batch_tokens: Count = setting(4000, "one of the published forms depends on how sentences are batched")


class SurgeonSettings(Closed):
    """What the surgeon reads before heads are removed in closed form."""

    subwords: Count = setting(30000, "of the source, of training pairs drawn at random, for the outputs of heads")
    sentences: CountOrZero = setting(200, "of the dev set, on which answers are compared; 0: all")


class CausalSettings(Closed):
    """How soft gates are fitted to frozen weights. The nudge is the paper's lambda; the rest is OURS."""

    updates: CountOrZero = setting(0, "of each of the three fits, 60 for a few hundred sentences; 0: no fit")
    nudge: Positive = setting(0.002, "towards open and towards closed, the paper's lambda")
    learning_rate: Positive = setting(0.2, "of the logits of gates")
    first_logit: Number = setting(2.0, "of all gates")
    farthest_logit: Positive = setting(5.0, "beyond it, on either side, a nudge pushes no further")
    sentences: CountOrZero = setting(400, "of the dev set; 0: all")
    batch_tokens: Count = setting(600, "of each update")


class _MaskedSearch(TranslateSettings):
    """The search of stages that translate with masked heads; its keys come after the stage's own."""

    beam: Count = setting(4, "as in translate")
    length_penalty: AtLeastZero = setting(0.6, "as in translate")
    batch_tokens: Count = setting(4000, "as in translate")


class AblationSettings(_MaskedSearch):
    """Single heads masked or kept alone: number of test and dev sentences, and draws of the significance test."""

    sentences: CountOrZero = setting(
        0, "of the test set, and of the corpus's out-of-domain test set, `out_of_domain`; 0: all"
    )
    dev_sentences: CountOrZero = setting(0, "of the dev set, on which the head to keep is chosen; 0: all")
    resamples: Resamples = setting(
        10000, "OURS: permutations of the test; the paper uses 1000 bootstrap samples [second-hand]"
    )


class MaskingCurveSettings(_MaskedSearch):
    """The share of heads masked at each step, the number of random orders, and draws for the intervals."""

    step: PositiveShare = setting(0.1, "of all heads [second-hand]")
    random_orders: CountOrZero = setting(5, "OURS: the control")
    resamples: Resamples = setting(1000, "OURS: paired bootstrap, for the 95 % intervals of the loss")
    sentences: CountOrZero = setting(0, "of the test set; 0: all")


class CheckpointsSettings(_MaskedSearch):
    """The masking curve at checkpoints: the share of heads masked at each step, and draws for the intervals."""

    step: PositiveShare = setting(0.1, "[second-hand]")
    resamples: Resamples = setting(1000, "as in masking_curve")
    sentences: CountOrZero = setting(0, "of the test set; 0: all")


class SelectionSettings(Closed):
    """Heads chosen by other means than gates: what the optimal choice must keep, and draws of the significance test.

    `at_least` is a number of heads for every layer of a kind of attention, `dec_enc`, or for one layer, `dec_enc.2`.
    """

    at_least: Mapping[AttentionOrLayer, CountOrZero] = setting(
        dict.fromkeys(ATTENTIONS, 1),
        "OURS: heads that the optimal choice keeps at least: in each layer of a kind of attention (dec_enc: 1) or in "
        "one (dec_enc.5: 2, counted from 0). A budget that is too small for them is an error.",
    )
    resamples: Resamples = setting(10000, "OURS: permutations of the test, each against the unpruned model")
