"""Measure the heads of one model on one text, into the same files as a run of the workflow."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from io import StringIO
from pathlib import Path

import numpy as np
import torch

from heads.analysis.ablation import ablation_rows, columns_of, gates_without, masked_alone
from heads.analysis.alignment_pairs import unlinked
from heads.analysis.causal_gating import COLUMNS as CAUSAL_COLUMNS
from heads.analysis.causal_gating import INTERFERES, IRRELEVANT, causal_rows
from heads.analysis.confidence import COLUMNS as CONFIDENCE_COLUMNS
from heads.analysis.confidence import confidence
from heads.analysis.cross_attention_pairs import roles_of_cross_attention
from heads.analysis.cross_attention_roles import COLUMNS as CROSS_COLUMNS
from heads.analysis.importance import COLUMNS as IMPORTANCE_COLUMNS
from heads.analysis.importance import importance_rows
from heads.analysis.lrp.rows import COLUMNS as RELEVANCE_COLUMNS
from heads.analysis.lrp.rows import generated, relevance_rows
from heads.analysis.masking import answers_of
from heads.analysis.metrics import Answers
from heads.analysis.role_trees import roles_on_trees
from heads.analysis.roles import COLUMNS as ROLE_COLUMNS
from heads.analysis.roles import frequency_ranks
from heads.base.bootstrap import interval
from heads.base.files import UserError, read_json, write_json, write_lines, write_text, write_tsv
from heads.base.names import REFERENCES, UNPRUNED
from heads.config.analyses import (
    AblationSettings,
    AlignmentHeadsSettings,
    CausalSettings,
    LrpSettings,
    RolesSettings,
)
from heads.model.encoder import Encoder
from heads.model.folder import load_model
from heads.model.shape import FACTS
from heads.model.sublayers import Gates
from heads.model.transformer import Transformer
from heads.one_model.answering import answered_by, maps_of_any, score_of_answers
from heads.syntax.conllu import Sentence, write_conllu
from heads.syntax.pharaoh import lines_of
from heads.syntax.tokenising import words_of_text
from heads.text.batches import Batch, Pairs, measured_pairs
from heads.text.encoding import encode_file, opened, vocabulary_of
from heads.text.vocabulary import Tokens
from heads.translation.model_folder import VOCABULARIES, load_vocabularies, vocabulary_folder

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
OF_ANSWERS = {"_importance": ("importance.tsv", IMPORTANCE_COLUMNS), "_relevance": ("lrp.tsv", RELEVANCE_COLUMNS)}
"""Measurements that need a loss or a logit, which a sentence encoder does not have; their files stay empty."""
CAUSAL = {"causal gates": "_causal"}
CAUSAL_FILE, CHECK_FILE = "causal.tsv", "causal_check.tsv"
CHECK_COLUMNS = ("masked", "heads", "bleu", "bleu_change")
RANDOM_DRAWS = 3
"""Random sets of heads to mask for comparison, each as large as the set that causal gates call irrelevant."""
Report = Callable[[str], None]
ROLES = RolesSettings(batch_tokens=2048)
WITHOUT_TREES = replace(ROLES, relations=())


@dataclass(frozen=True)
class Text:
    """The text that a model is measured on. Without references, its own outputs are used instead."""

    sentences: Sequence[str]
    references: Sequence[str] | None = None
    trees: Path | None = None
    stanza: str = ""
    """The language whose Stanza models parse the sentences, if no trees are given."""
    shown: Sequence[int] = ()
    """Numbers, from 1, of the sentences whose attention is shown; by default the first ones of suitable length."""
    masked: int = 25
    """The number of sentences on which each head is masked alone."""
    relevance: int = 10
    """The number of sentences on which relevance is measured."""
    causal: bool = False
    """Whether causal gates are fitted as well."""


@dataclass(frozen=True)
class Measuring:
    """A model, a text, and the run folder to write, `results/NAME/baseline/seed-1`."""

    model_folder: Path
    text: Text
    run: Path
    device: torch.device
    report: Report = field(default=lambda _: None)

    def measure(self) -> None:
        """Write all files behind the page and the table. Raises UserError if `shown` or `causal` cannot be met."""
        shape = self.model.shape
        if self.text.causal and shape.alone:
            raise UserError("--causal needs a model that translates: remove it.")
        absent = [number for number in self.text.shown if not 1 <= number <= len(self.text.sentences)]
        if absent:
            raise UserError(
                f"There is no sentence {absent[0]} to show: give numbers from 1 to {len(self.text.sentences)}."
            )
        self._lay_out()
        skipped = (*(OF_TRANSLATORS if shape.alone else ()), *(OF_ANSWERS if shape.embeds else ()))
        for what, stage in (STEPS | (CAUSAL if self.text.causal else {})).items():
            if stage not in skipped:
                self.report(what)
                getattr(self, stage)()
            elif stage in OF_ANSWERS:
                write_tsv(self.run / OF_ANSWERS[stage][0], [], OF_ANSWERS[stage][1])

    @cached_property
    def model(self) -> Encoder:
        """The model, on the device."""
        return load_model(self.model_folder).to(self.device)

    @property
    def translator(self) -> Transformer:
        """The model, if it translates."""
        assert isinstance(self.model, Transformer)
        return self.model

    @property
    def bpe(self) -> Path:
        """The folder of the vocabularies, and of the text in subwords."""
        return self.run.parent.parent / "bpe"

    @property
    def pairs(self) -> Pairs:
        """The text with its references, or with the model's own outputs."""
        alone = self.model.shape.alone
        return measured_pairs(self.bpe / "source.safetensors", self.bpe / "target.safetensors", labelled=alone)

    def batches(self, tokens: int, most: int | None = None) -> Iterator[Batch]:
        """Batches of sentences of similar length."""
        return (batch for _, batch in self.pairs.in_order(tokens, most))

    def _lay_out(self) -> None:
        """Put model.json and the vocabularies where a run has them."""
        self.run.mkdir(parents=True)
        # Defaults for facts about the training that exported folders do not have.
        write_json(self.run / FACTS, {"dev_loss": None, "total_updates": 0, **read_json(self.model_folder / FACTS)})
        shutil.copytree(vocabulary_folder(self.model_folder), self.bpe, ignore=shutil.ignore_patterns("*.safetensors"))

    def _score(self) -> None:
        """Score the model's answers; without references, they are the references too."""
        source, target = (opened(self.bpe / name) for name in VOCABULARIES)
        write_lines(self.bpe / "source.txt", self.text.sentences)
        encode_file(self.bpe / "source.txt", source, self.bpe / "source.safetensors")
        answers = answered_by(
            self.model, Tokens(self.bpe / "source.safetensors"), self.bpe / VOCABULARIES[1], self.device
        )
        references, against = self.text.references, REFERENCES
        if references is None:
            references, against = answers, UNPRUNED
        write_lines(self.bpe / "target.txt", references)
        encode_file(self.bpe / "target.txt", target, self.bpe / "target.safetensors")
        name, score = score_of_answers(self.model.shape, answers, references)
        write_json(self.run / f"{name}.json", {**score, "against": against})

    def _confidence(self) -> None:
        write_tsv(self.run / "confidence.tsv", confidence(self.model, self.batches(2048)), CONFIDENCE_COLUMNS)

    def _roles(self) -> None:
        """Measure roles on the given trees or Stanza's, or else only by the positions of words."""
        trees, settings, made_by = self.text.trees, ROLES, "gold"
        if trees is None:
            trees = self.bpe / "words.conllu"
            words = [words_of_text(one) for line in self.text.sentences for one in line.split("\t")]
            if self.text.stanza:
                words, made_by = parsed(words, self.text.stanza, self.device), "stanza"
            else:
                settings = WITHOUT_TREES
            write_conllu(trees, words)
        source = vocabulary_of(self.bpe / VOCABULARIES[0])
        ranks = frequency_ranks(Tokens(self.bpe / "source.safetensors").ids, len(source))
        with redirect_stderr(StringIO() if settings is WITHOUT_TREES else sys.stderr):
            rows = roles_on_trees(self.model, {made_by: trees}, source, ranks, settings)[0]
        write_tsv(self.run / "roles.tsv", rows, ("trees", *ROLE_COLUMNS))

    def _cross_attention(self) -> None:
        settings = AlignmentHeadsSettings(batch_tokens=2048)
        vocabularies = load_vocabularies(self.model_folder, self.translator)
        texts = [lines_of(path) for path in self._both_texts()]
        golds = unlinked(texts, vocabularies, settings)
        rows = roles_of_cross_attention(self.translator, golds, settings, linked=False)
        write_tsv(self.run / "cross_attention_roles.tsv", rows, CROSS_COLUMNS)

    def _both_texts(self) -> list[Path]:
        return [self.bpe / name.replace(".model", ".txt") for name in VOCABULARIES]

    def _importance(self) -> None:
        rows = importance_rows(self.model, self.batches(1024), label_smoothing=0.0)
        write_tsv(self.run / "importance.tsv", rows, IMPORTANCE_COLUMNS)

    def _relevance(self) -> None:
        settings = LrpSettings(rules=("z-plus",))
        batches = (generated(self.model, batch.to(self.device)) for batch in self.batches(300, self.text.relevance))
        write_tsv(self.run / "lrp.tsv", relevance_rows(self.model, batches, settings)[0], RELEVANCE_COLUMNS)

    def _masked(self) -> None:
        search = AblationSettings(sentences=self.text.masked, beam=1, batch_tokens=4096)
        source, references = self.bpe / "source.safetensors", self.bpe / "target.txt"
        answers = partial(answers_of, self.model, self.device, source, references, self.bpe / VOCABULARIES[1])
        translate, wanted, metric = answers(search, much_alike=True)
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
        write_tsv(self.run / "ablation.tsv", rows, (*columns_of(metric), *ends))

    def _causal(self) -> None:
        """Fit causal gates; then mask at once all irrelevant heads, all interfering heads, and random heads."""
        settings = CausalSettings(updates=60)
        rows = causal_rows(self.model, list(self.batches(settings.batch_tokens)), settings)
        write_tsv(self.run / CAUSAL_FILE, rows, CAUSAL_COLUMNS)
        heads = self.model.shape.heads()
        called = {effect: [head for head, row in zip(heads, rows, strict=True) if row["effect"] == effect] for effect in
                  (IRRELEVANT, INTERFERES)}  # fmt: skip
        for draw in range(1, RANDOM_DRAWS + 1):
            chosen = np.random.default_rng(draw).permutation(len(heads))[: len(called[IRRELEVANT])]
            called[f"random {draw}"] = [heads[place] for place in chosen]
        search = AblationSettings(sentences=0, beam=1, length_penalty=0.0, batch_tokens=2048)
        source, references = self.bpe / "source.safetensors", self.bpe / "target.txt"
        translate, wanted, metric = answers_of(
            self.model, self.device, source, references, self.bpe / VOCABULARIES[1], search
        )
        whole = metric.drawn(translate(None), wanted, 1)[0]
        check: list[dict[str, object]] = []
        for what, masked in called.items():
            score = metric.drawn(translate(gates_without(self.model, masked)), wanted, 1)[0]
            check.append(dict(zip(CHECK_COLUMNS, (what, len(masked), score, score - whole), strict=True)))
        write_tsv(self.run / CHECK_FILE, check, CHECK_COLUMNS)

    def _maps(self) -> None:
        found = maps_of_any(self.model, self.bpe, self.text.shown)
        write_text(self.run / "maps.json", json.dumps(found, ensure_ascii=False) + "\n")


def parsed(words: Sequence[Sentence], language: str, device: torch.device) -> list[Sentence]:
    """Parse sentences with Stanza's own models of a language. Raises UserError if there are none."""
    from heads.syntax.parsing import open_models, own_models, parse  # Stanza may not be installed

    return list(parse(open_models(own_models(), language, device), words))


def checked(sentences: Sequence[str], references: Sequence[str] | None) -> None:
    """Raise UserError if the text is empty, or the references differ from it in length."""
    if not sentences:
        raise UserError("The text is empty: give a file with one sentence per line.")
    if references is not None and len(references) != len(sentences):
        raise UserError(f"The text has {len(sentences)} lines and its references {len(references)}: give one per line.")
