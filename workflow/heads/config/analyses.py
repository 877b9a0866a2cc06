"""The sections of an experiment about what is measured on trained models: types, bounds, defaults, descriptions.

The defaults are the papers' values. The order of keys is that of config.yaml and of the settings files of stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
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

Kept = Annotated[
    str,
    Field(pattern=f"^({'|'.join(ATTENTIONS)})([.](0|[1-9][0-9]*))?$"),
    meant("a kind of attention such as dec_enc, or one of its layers such as dec_enc.2"),
]


@dataclass(frozen=True, slots=True)
class TranslateSettings(Closed):
    """Beam search on the test set."""

    beam: Count = setting(4, "[repo]")
    length_penalty: AtLeastZero = setting(0.6, "[repo]")
    batch_tokens: Count = setting(4000, "source tokens at once")
    sentences: CountOrZero = setting(0, "of the test set; 0: all")


@dataclass(frozen=True, slots=True)
class ConfidenceSettings(Closed):
    """How many dev sentences confidence is averaged over."""

    sentences: CountOrZero = setting(0, "of the dev set; 0: all")
    batch_tokens: Count = setting(4000, "source tokens at once")


@dataclass(frozen=True, slots=True)
class LrpSettings(Closed):
    """Layer-wise relevance propagation."""

    sentences: CountOrZero = setting(0, "of the dev set, all their generation steps [second-hand]; 0: all")
    batch_tokens: Count = setting(1000, "source tokens at once")
    stabiliser: Positive = setting(
        1e-12,
        "OURS: the paper writes none; in float64, added to a denominator with its sign. z-plus and alpha-beta add "
        "nothing; to them a side of a sum below this share of the whole is none.",
    )
    rules: Annotated[tuple[Annotated[str, one_of(*LRP_RULES)], ...], Field(min_length=1), EachOnce()] = setting(
        ("plain", "z-plus", "alpha-beta", "attnlrp", "plain-product", "voita-2019"),
        "How relevance is shared out, and what attention weights get of it. plain: the paper's ratio (app. A.2) "
        "through values alone; weights are constants and get nothing. plain-product: with the paper's rule for "
        "products, u / sum of u', so that a weight gets weight / (weight + value) and passes it on to its query and "
        "key; without limit where the sum nears zero. z-plus, alpha-beta: the textbook rules of Bach et al. 2015; "
        "attention as a linear function of queries, keys and values by its derivatives, its weights being no "
        "neurons. attnlrp: Achtibat et al. 2024; half of each product. The other way through attention: "
        "plain-softmax, z-plus-values and so on. voita-2019: what the authors' released code does, with "
        "its own constants; rescaled after each operation, attention by derivatives. Claims are decided by plain with "
        "signed shares, the paper as written, and say where its other shares or z-plus differ; heads are sorted and "
        "chosen by absolute shares of the first rule. "
        "lrp_conservation.tsv has what every rule kept.",
    )


@dataclass(frozen=True, slots=True)
class RolesSettings(Closed):
    """When a head counts as positional, syntactic or a rare-word head, and on which trees; the first ones decide."""

    trees: Annotated[tuple[Annotated[str, one_of(*TREES)], ...], Field(min_length=1), EachOnce()] = setting(
        ("gold",),
        "gold: the trees that the corpus brings, left out where it brings none; stanza: the sentences of gold parsed; "
        "own: sentences of the corpus's own parsed, the lines that it holds out for that (hold_out: {roles: N}), else "
        "its dev text. All are measured, the first decide on roles, the second stand beside them in tables.",
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
    relations: Annotated[tuple[Text, ...], Field(min_length=1), EachOnce()] = setting(
        ("nsubj", "obj", "amod", "advmod"), "the paper's dobj is UD v2's obj"
    )
    min_cases: Count = setting(50, "OURS: a relation seen less often gives no role")
    rare_outside_top: CountOrZero = setting(
        500, "sentences whose rarest subword is outside the most frequent so many [blog]"
    )
    rare_share: Share = setting(
        0.5,
        "OURS: the paper reports heads with 50 % (WMT) and 83 % (OpenSubtitles) on one of the two rarest",
    )


@dataclass(frozen=True, slots=True)
class AlignmentHeadsSettings(Closed):
    """Where cross-attention heads look, against a word alignment of the dev set."""

    sentences: CountOrZero = setting(0, "of the dev set; 0: all")
    max_subwords: Count = setting(200, "as for roles: pairs with a longer side are left out and counted")
    batch_tokens: Count = setting(4000, "source tokens at once")
    bootstrap: Resamples = setting(1000, "OURS: draws of pairs for the 95 % intervals")
    steps: Annotated[tuple[Annotated[str, one_of("output", "input")], ...], Field(min_length=1), EachOnce()] = setting(
        ("output", "input"),
        "OURS: which step of the decoder speaks for a word; output: that which gives it, as mostly in the literature; "
        "input: the next, which reads it (Chen et al. 2020). All are measured; tables and figures show the first.",
    )
    margin: AtLeastZero = setting(0.1, "OURS: a head aligns if it errs by so much less than the best fixed offset")


@dataclass(frozen=True, slots=True)
class MapsSettings(Closed):
    """How many sentences or examples attention maps are kept of, and how many words they may have in all."""

    sentences: Count = setting(24, "OURS: the first of the trees, else of the dev set")
    min_words: Count = setting(8, "shorter ones are passed over")
    max_words: Count = setting(14, "longer ones too")


@dataclass(frozen=True, slots=True)
class SpeedSettings(Closed):
    """How many sentences are translated at once, how often, and by which search, when models are timed."""

    batch_sizes: Annotated[tuple[Count, ...], Field(min_length=1), EachOnce()] = setting(
        (1, 4, 16, 64), "sentences translated at once [second-hand]"
    )
    sentences: Count = setting(256, "OURS: of the test set, translated once a round")
    # A spread needs two.
    repeats: Annotated[Integer, Field(ge=2)] = setting(
        6, "2 machines x 3 repeats [second-hand]; ours are 6 rounds on one machine"
    )
    beam: Count = setting(4, "as in translate")
    length_penalty: AtLeastZero = setting(0.6, "as in translate")


@dataclass(frozen=True, slots=True)
class ImportanceSettings(Closed):
    """How many dev sentences importance is averaged over."""

    sentences: CountOrZero = setting(0, "of the dev set; 0: all")
    batch_tokens: Count = setting(4000, "one of the published forms depends on how sentences are batched")


@dataclass(frozen=True, slots=True)
class CausalSettings(Closed):
    """How soft gates are fitted to frozen weights. The nudge is the paper's lambda; the rest is OURS."""

    updates: CountOrZero = setting(0, "of each of the three fits, 60 for some hundred sentences; 0: none are fitted")
    nudge: Positive = setting(0.002, "towards open and towards closed, the paper's lambda")
    learning_rate: Positive = setting(0.2, "of the logits of gates")
    first_logit: Number = setting(2.0, "of all gates")
    farthest_logit: Positive = setting(5.0, "beyond it, on either side, a nudge pushes no further")
    sentences: CountOrZero = setting(400, "of the dev set; 0: all")
    batch_tokens: Count = setting(600, "of each update")


@dataclass(frozen=True, slots=True)
class _MaskedSearch(TranslateSettings):
    """The search of stages that translate with masked heads; it stands behind what is their own."""

    beam: Count = setting(4, "as in translate")
    length_penalty: AtLeastZero = setting(0.6, "as in translate")
    batch_tokens: Count = setting(4000, "as in translate")


@dataclass(frozen=True, slots=True)
class AblationSettings(_MaskedSearch):
    """Single heads masked or left alone: how many test and dev sentences, and draws of the significance test."""

    sentences: CountOrZero = setting(
        0, "of the test set, and of the corpus's `out_of_domain`, a test set of another domain; 0: all"
    )
    dev_sentences: CountOrZero = setting(0, "of the dev set, on which the head to keep is chosen; 0: all")
    resamples: Resamples = setting(
        10000, "OURS: permutations of the test; the paper draws a bootstrap of 1000 [second-hand]"
    )


@dataclass(frozen=True, slots=True)
class MaskingCurveSettings(_MaskedSearch):
    """The share of heads masked at each step, how many random orders are walked too, draws for the intervals."""

    step: PositiveShare = setting(0.1, "of all heads [second-hand]")
    random_orders: CountOrZero = setting(5, "OURS: the control")
    resamples: Resamples = setting(1000, "OURS: paired bootstrap, for the 95 % intervals of what is lost")
    sentences: CountOrZero = setting(0, "of the test set; 0: all")


@dataclass(frozen=True, slots=True)
class CheckpointsSettings(_MaskedSearch):
    """The masking curve at checkpoints: which share of the heads is masked at each step, draws for the intervals."""

    step: PositiveShare = setting(0.1, "[second-hand]")
    resamples: Resamples = setting(1000, "as in masking_curve")
    sentences: CountOrZero = setting(0, "of the test set; 0: all")


@dataclass(frozen=True, slots=True)
class SelectionSettings(Closed):
    """Heads chosen by other means: what the optimal choice must keep, and draws of the significance test.

    `at_least` is a number of heads for every layer of a kind of attention, `dec_enc`, or for one layer, `dec_enc.2`.
    """

    at_least: Mapping[Kept, CountOrZero] = setting(
        dict.fromkeys(ATTENTIONS, 1),
        "OURS: heads that the optimal choice keeps: in each layer of a kind of attention (dec_enc: 1) or in one "
        "(dec_enc.5: 2, counted from 0). A budget that can not hold them stops with one sentence.",
    )
    resamples: Resamples = setting(10000, "OURS: permutations of the test, each against the unpruned model")
