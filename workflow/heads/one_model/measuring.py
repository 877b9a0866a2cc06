"""Measure the heads of one model on one text: what the files of a run hold, in memory."""

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import redirect_stderr
from functools import cached_property
from io import StringIO
from typing import Any

import numpy as np
import torch

from heads.analysis.ablation import Translate, ablation_rows, gates_without, masked_alone
from heads.analysis.alignment_heads import unlinked
from heads.analysis.causal_gating import INTERFERES, IRRELEVANT, causal_rows
from heads.analysis.confidence import confidence
from heads.analysis.cross_attention_roles import roles_of_cross_attention
from heads.analysis.importance import importance_rows
from heads.analysis.lrp.rows import generated, relevance_rows
from heads.analysis.masking import EncodedText, evaluation_of, vectors
from heads.analysis.metrics import Answers, Metric
from heads.analysis.role_trees import Treebank, read_treebank, roles_on_trees
from heads.analysis.roles import frequency_ranks
from heads.base.bootstrap import interval
from heads.base.files import UserError, as_written
from heads.base.names import CAUSAL_FILE, REFERENCES, UNPRUNED
from heads.config.analyses import (
    AblationSettings,
    AlignmentHeadsSettings,
    CausalSettings,
    LrpSettings,
    RolesSettings,
)
from heads.interop.bundle import Bundle
from heads.model.shape import FACTS, Head
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.one_model.answering import UNITS, answered_by, maps_of_any, score_of_answers
from heads.one_model.reading import readable
from heads.one_model.text import Text
from heads.syntax.pharaoh import Lines
from heads.syntax.tokenising import check_words, sentences_in
from heads.text.batches import Batch, Pairs, measured_pairs
from heads.text.encoding import tokens_of
from heads.text.vocabulary import Vocabulary
from heads.translation.stream import Report
from heads.translation.text_scores import tokeniser_of

UNTRAINED = {"dev_loss": None, "total_updates": 0}
"""Facts about a training that exported folders do not have."""
INTERVAL = ("bleu_change_low", "bleu_change_high")
"""Columns of the 95 % interval of what masking a head changes, by paired bootstrap over sentences."""
DRAWS = 1000
STEPS = {
    "the model's answers": "_score",
    "confidence": "_confidence",
    "where encoder heads look": "_roles",
    "where cross-attention looks": "_cross_attention",
    "importance": "_importance",
    "relevance": "_relevance",
    "each head masked alone": "_masked",
    "attention maps": "_maps",
}
"""Each measurement, and the method that makes it."""
OF_TRANSLATORS = ("_cross_attention",)
OF_ANSWERS = {"_importance": "importance.tsv", "_relevance": "lrp.tsv"}
"""Measurements that need a loss or a logit, which a sentence encoder does not have; their files stay empty."""
CAUSAL = {"causal gates": "_causal"}
CHECK_FILE = "causal_check.tsv"
RELEVANCE_SENTENCES, RELEVANCE_SUBWORDS = 10, 100
"""The most sentences, and the most subwords of one, as memory for relevance grows with the square of its length."""
RANDOM_DRAWS = 3
"""Random sets of heads to mask for comparison, each `like_drawn` the heads that causal gates call irrelevant."""
ROLES = RolesSettings(batch_tokens=2048)
WITHOUT_TREES = ROLES.model_copy(update={"relations": ()})


class Measuring:
    """The measurements of a model on a text; `files` has what the files of a run would hold, by their names."""

    def __init__(self, model: Bundle, text: Text, device: torch.device, report: Report) -> None:
        """Say which lines are left out.

        report: called with what is being measured. Raises UserError as `readable` does.
        """
        self.device, self.report = device, report
        self.model, self.source, self.target = model.model.to(device), model.source, model.target
        self.text, left_out = readable(text, self.source, self.target, self.model.shape)
        if left_out:
            print(left_out, file=sys.stderr)
        self.tokens = tokens_of(self.text.sentences, self.source)
        self.references: Sequence[str] = []
        self.tokeniser = text.tokeniser
        facts = {**UNTRAINED, **model.facts, "any_text": model.writes_any_text}
        self.files: dict[str, Any] = {FACTS: facts}

    def measure(self) -> dict[str, Any]:
        """All content behind the page and the table. Raises UserError if `causal` cannot be met."""
        shape = self.model.shape
        if self.text.causal and shape.encoder_only:
            raise UserError("--causal needs a model that writes text: remove it.")
        skipped = (*(OF_TRANSLATORS if shape.encoder_only else ()), *(OF_ANSWERS if shape.embeds else ()))
        for what, stage in (STEPS | (CAUSAL if self.text.causal else {})).items():
            if stage not in skipped:
                self.report(what)
                getattr(self, stage)()
            elif stage in OF_ANSWERS:
                self.files[OF_ANSWERS[stage]] = []
        return {
            name: [{key: as_written(value) for key, value in row.items()} for row in content]
            if name.endswith(".tsv") else content for name, content in self.files.items()
        }  # fmt: skip

    @cached_property
    def pairs(self) -> Pairs:
        """The text with its references, or with the model's own outputs."""
        answers = tokens_of(self.references, self.target)
        return measured_pairs(self.tokens, answers, labelled=self.model.shape.encoder_only)

    @cached_property
    def vectors(self) -> Answers:
        """The vectors of the text, of a model that embeds sentences."""
        return vectors(self.model, self.tokens, self.device)

    def batches(self, tokens: int, most: int | None = None) -> Iterator[Batch]:
        """Batches of sentences of similar length."""
        return (batch for _, batch in self.pairs.in_order(tokens, most))

    def answers(self, search: AblationSettings, *, much_alike: bool = False) -> tuple[Translate, Answers, Metric]:
        """A function that answers the text under given gates, the references, and the metric."""
        text = EncodedText(self.tokens, self.references, self.target, self.tokeniser, self.text.metric)
        return evaluation_of(self.model, self.device, text, search, much_alike=much_alike)

    def _score(self) -> None:
        """Score the model's answers; without references, they are the references too."""
        answers = answered_by(self.model, self.tokens, self.target, self.device)
        given = self.text.references
        self.references = answers if given is None else given
        if isinstance(self.target, Vocabulary):
            self.tokeniser = tokeniser_of(self.references, self.text.tokeniser)
        how = (self.tokeniser, self.text.metric)
        name, score = score_of_answers(self.model.shape, answers, self.references, 100.0, *how)
        self.files[f"{name}.json"] = {**score, "against": UNPRUNED if given is None else REFERENCES}

    def _confidence(self) -> None:
        self.files["confidence.tsv"] = confidence(self.model, self.batches(2048))

    def _roles(self) -> None:
        """Measure roles on the given trees or Stanza's, or else only by the positions of words."""
        settings, made_by = ROLES, "gold"
        if self.text.trees is not None:
            treebank = read_treebank(self.text.trees)
        else:
            words = sentences_in(self.text.sentences)
            if self.text.stanza:
                check_words("The text", self.text.sentences)
                from heads.syntax.parsing import open_models, own_models, parse  # Stanza may not be installed

                models, made_by = open_models(own_models(), self.text.stanza, self.device), "stanza"
                words = list(parse(models, words))
            else:
                settings = WITHOUT_TREES
            treebank = Treebank("the text", words)
        ranks = frequency_ranks(self.tokens.ids, len(self.source))
        with redirect_stderr(StringIO() if settings is WITHOUT_TREES else sys.stderr):
            rows = roles_on_trees(self.model, {made_by: treebank}, self.source, ranks, settings)[0]
        self.files["roles.tsv"] = rows

    def _cross_attention(self) -> None:
        settings = AlignmentHeadsSettings(batch_tokens=2048)
        assert isinstance(self.model, Transformer)
        assert isinstance(self.target, Vocabulary)
        texts = [Lines("the text", self.text.sentences), Lines("the outputs", self.references)]
        golds = unlinked(texts, (self.source, self.target), settings)
        rows = roles_of_cross_attention(self.model, golds, settings, linked=False)
        self.files["cross_attention_roles.tsv"] = rows

    def _importance(self) -> None:
        self.files["importance.tsv"] = importance_rows(self.model, self.batches(1024), label_smoothing=0.0)

    def _relevance(self) -> None:
        short = np.flatnonzero(self.tokens.lengths <= RELEVANCE_SUBWORDS)[:RELEVANCE_SENTENCES]
        if not len(short):
            print(f"No line has at most {RELEVANCE_SUBWORDS} subwords, so relevance is not measured.", file=sys.stderr)
            self.files["lrp.tsv"] = []
            return
        batches = (generated(self.model, batch.to(self.device)) for _, batch in self.pairs.only(short).in_order(300))
        self.files["lrp.tsv"] = relevance_rows(self.model, batches, LrpSettings(rules=("z-plus",)))[0]

    def _masked(self) -> None:
        search = AblationSettings(sentences=self.text.masked, beam=1, batch_tokens=4096)
        translate, wanted, metric = self.answers(search, much_alike=True)
        texts: list[Answers] = []

        def remembered(gates: Gates | None) -> Answers:
            texts.append(translate(gates))
            return texts[-1]

        cases = masked_alone(self.model.shape)
        rows = ablation_rows(self.model, cases, remembered, wanted, metric, resamples=search.resamples)
        (_, whole), *drawn = (metric.drawn(own, wanted, DRAWS) for own in texts)
        ends = metric.named(INTERVAL)
        for row, (_, without) in zip(rows, drawn, strict=True):
            row |= dict(zip(ends, map(float, interval(without - whole)), strict=True))
        self.files["ablation.tsv"] = rows

    def _causal(self) -> None:
        """Fit causal gates; then mask at once all irrelevant heads, all interfering ones, and random ones."""
        settings = CausalSettings(updates=60)
        rows = causal_rows(self.model, list(self.batches(settings.batch_tokens)), settings)
        heads = self.model.shape.heads()
        called = {
            effect: [head for head, row in zip(heads, rows, strict=True) if row["effect"] == effect]
            for effect in (IRRELEVANT, INTERFERES)
        }
        draws = range(1, RANDOM_DRAWS + 1)
        called |= {f"random {draw}": like_drawn(called[IRRELEVANT], heads, draw) for draw in draws}
        search = AblationSettings(sentences=0, beam=1, length_penalty=0.0, batch_tokens=2048)
        translate, wanted, metric = self.answers(search)
        whole = metric.drawn(translate(None), wanted, 1)[0]
        check = []
        for what, masked in called.items():
            score = metric.drawn(translate(gates_without(self.model, masked)), wanted, 1)[0]
            check.append({"masked": what, "heads": len(masked), "change": score - whole, "unit": UNITS[metric.name]})
        self.files |= {CAUSAL_FILE: rows, CHECK_FILE: check}

    def _maps(self) -> None:
        lines, shown = self.text.sentences, self.text.shown
        self.files["maps.json"] = maps_of_any(self.model, self.source, self.target, lines, self.references, shown)


def like_drawn(chosen: Sequence[Head], heads: Sequence[Head], seed: int) -> list[Head]:
    """Draw as many random heads of each kind of attention as are among the chosen ones.

    A draw over all kinds could take the one cross-attention head that a model cannot do without.
    """
    order = np.random.default_rng(seed).permutation(len(heads))
    left = Counter(kind for kind, *_ in chosen)
    drawn: list[Head] = []
    for head in (heads[place] for place in order):
        if left[head[0]]:
            left[head[0]] -= 1
            drawn.append(head)
    return drawn
