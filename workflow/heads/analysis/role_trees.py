"""Roles of heads on trees from several sources or at several checkpoints; reports of what the trees lack."""

import difflib
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from heads.analysis.attention_weights import attend
from heads.analysis.confidence import confidence
from heads.analysis.roles import Row, Whole, positions, roles
from heads.base.columns import DYNAMICS_COLUMNS
from heads.base.files import UserError, read_lines
from heads.base.names import NO_TREES
from heads.config.analyses import ConfidenceSettings, RolesSettings
from heads.model.encoder import Encoder
from heads.model.folder import load_weights
from heads.syntax.conllu import Sentence, check_same_sentences, read_conllu
from heads.syntax.tokenising import sentences_in
from heads.syntax.words import SHORTEST, Words, usable, words_of
from heads.text.batches import Pairs
from heads.text.vocabulary import Vocabulary

MOST_UNKNOWN = 0.1
"""Largest share of unknown subwords in the measured sentences. A treebank in the language of the training text has
almost none, one in another alphabet about half: unknown subwords cover its letters, so that its words are aligned
nevertheless."""


class Treebank(NamedTuple):
    """Sentences with trees, and their name in messages."""

    name: str
    sentences: Iterable[Sentence]


def roles_on_trees(
    model: Encoder, treebanks: Mapping[str, Treebank], vocabulary: Vocabulary, ranks: Whole, settings: RolesSettings
) -> tuple[list[Row], list[Row], list[Row]]:
    """Measures of all encoder heads, counts of sentences used and left out, and positions of dependents, by trees.

    Each row names its `trees`. treebanks: from `sentences_of`. ranks: of the subwords of the source vocabulary, from
    `frequency_ranks`. What is missing is reported on standard error. Raises UserError for trees that cannot be
    measured.
    """
    heads = [(layer, head) for _, layer, head in model.shape.heads(("enc_self",))]
    apart = bool(model.shape.distance_buckets)
    rows: list[Row] = []
    coverage: list[Row] = []
    stand: list[Row] = []
    for name, treebank in treebanks.items():
        kept, counts = measurable(treebank, vocabulary, settings)
        attended = attend(model, kept, settings.batch_tokens, apart=apart)
        found = roles(attended, heads, ranks, settings, apart=apart)
        rows += [{"trees": name, **row} for row in found]
        coverage.append({"trees": name, **counts})
        stand += [{"trees": name, **row} for row in positions(kept, settings.relations)]
    return rows, coverage, stand


def dynamics_rows(
    model: Encoder,
    weights: Iterable[tuple[int, Path, int]],
    pairs: Pairs,
    sentences: Sequence[Words],
    ranks: Whole,
    *,
    settings: RolesSettings,
    how: ConfidenceSettings,
) -> list[Row]:
    """Rows as in DYNAMICS_COLUMNS for each checkpoint of one training: confidence, listed as a role, and measures.

    The papers look at finished models. Where a role is missing, its curve says more: one that is still rising calls for
    longer training, one that has levelled off far below its threshold for another text or model.

    weights: update, file, and 1 for the finished model; they are loaded into `model`. pairs: what confidence is
    measured on. sentences: what roles are measured on. ranks: of the source subwords, from `frequency_ranks`.
    """
    heads = [(layer, head) for _, layer, head in model.shape.heads(("enc_self",))]
    rows: list[Row] = []
    for update, path, finished in weights:
        load_weights(model, path)
        checkpoint: Row = {"update": update, "finished": finished}
        batches = (batch for _, batch in pairs.in_order(how.batch_tokens, how.sentences or None))
        for row in confidence(model, batches):
            if row["attention"] == "enc_self":
                place = {"layer": row["layer"], "head": row["head"], "role": "confidence", "name": ""}
                rows.append({**dict.fromkeys(DYNAMICS_COLUMNS), **checkpoint, **place, "accuracy": row["confidence"]})
        for row in roles(attend(model, sentences, settings.batch_tokens), heads, ranks, settings):
            rows.append({**checkpoint, **{name: row[name] for name in DYNAMICS_COLUMNS[2:]}})
    return rows


def measurable(
    treebank: Treebank, vocabulary: Vocabulary, settings: RolesSettings
) -> tuple[list[Words], dict[str, int | float | None]]:
    """The measurable sentences of a treebank, and the counts of `usable` for all sentences read.

    Reports on standard error how much can be measured. Raises UserError if nothing can, or if the text is not in the
    source language.
    """
    trees = islice(treebank.sentences, settings.sentences or None)
    kept, counts = usable(words_of(trees, vocabulary), settings.max_subwords)
    reasons = (
        f"{counts['too_short']} with fewer than {SHORTEST} words, {counts['too_long']} with more than "
        f"{settings.max_subwords} subwords, {counts['not_aligned']} with words that subwords do not cover exactly"
    )
    if not kept:
        raise UserError(
            f"{treebank.name}: none of its {counts['sentences']} sentences can be measured ({reasons}): "
            "give a treebank in the source language, with one sentence per tree."
        )
    unknown = sum(words.unknown for words in kept) / sum(len(words.subwords) for words in kept)
    if unknown > MOST_UNKNOWN:
        raise UserError(
            f"{treebank.name}: {unknown:.0%} of the subwords of its sentences are unknown to the vocabulary, more than "
            f"{MOST_UNKNOWN:.0%}: give a treebank in the source language."
        )
    counted = [f"{counts['aligned_words']} of {counts['tree_words']} words are aligned with subwords"]
    if len(kept) != counts["sentences"]:
        counted.append(f"{len(kept)} of {counts['sentences']} sentences measured; left out: {reasons}")
    for sentence in (*counted, *missing_relations(kept, settings.relations)):
        print(f"{treebank.name}: {sentence}", file=sys.stderr)
    return kept, counts


def sentences_of(
    paths: Mapping[str, Path], text: Path | None, settings: RolesSettings
) -> tuple[dict[str, Treebank], RolesSettings]:
    """The sentences that roles are measured on, by the source of their trees, and the settings to measure them with.

    paths: CoNLL-U files by name, put in the order of the settings. text: plain sentences instead, on which no relation
    is measured. Raises UserError as `in_order_of`, and for neither or both.
    """
    if bool(paths) == bool(text):
        raise UserError("Roles are measured on trees or on plain text: give one of --trees and --text.")
    if text is None:
        return in_order_of(paths, settings), settings
    treebank = Treebank(str(text), sentences_in(read_lines(text)))
    return {NO_TREES: treebank}, settings.model_copy(update={"relations": ()})


def in_order_of(paths: Mapping[str, Path], settings: RolesSettings) -> dict[str, Treebank]:
    """The treebanks of CoNLL-U files, by name, in the order of the settings; a corpus may lack trees from some sources.

    Raises UserError for a name that is not in the settings, or if `stanza` and `gold` have different sentences.
    """
    names = settings.trees
    unknown = [name for name in paths if name not in names]
    if unknown:
        raise UserError(
            f"--trees gives {', '.join(unknown)}, but roles.trees is {', '.join(names)}: use names from roles.trees."
        )
    ordered = {name: paths[name] for name in names if name in paths}
    if {"gold", "stanza"} <= {*ordered}:
        check_same_sentences(ordered["gold"], ordered["stanza"], settings.sentences)
    return {name: read_treebank(path) for name, path in ordered.items()}


def read_treebank(path: Path) -> Treebank:
    """The trees of a CoNLL-U file."""
    return Treebank(str(path), read_conllu(path))


def missing_relations(sentences: Iterable[Words], relations: Sequence[str]) -> list[str]:
    """A message for each relation that never occurs, with the most similar one that does."""
    full = {arc.relation for words in sentences for arc in words.arcs}
    occurring = sorted(full | {relation.partition(":")[0] for relation in full})
    lines = []
    for relation in relations:
        if relation not in occurring:
            near = difflib.get_close_matches(relation, occurring, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"the trees have {', '.join(occurring) or 'no relations'}."
            lines.append(f"the relation {relation} never occurs, so its rows stay empty; {hint}")
    return lines
