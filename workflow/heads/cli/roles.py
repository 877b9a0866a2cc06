"""`roles`: which encoder heads are positional, syntactic or look at rare words, on parsed sentences."""

from __future__ import annotations

import argparse
import difflib
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path

from heads.analysis.attention_weights import attend
from heads.analysis.roles import COLUMNS, POSITION_COLUMNS, Row, frequency_ranks, positions, roles
from heads.base.files import UserError, read_yaml, write_tsv
from heads.config.analyses import RolesSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.syntax.alignment import ALIGNMENT_COLUMNS, SHORTEST, Words, usable, words_of
from heads.syntax.conllu import check_same_sentences, read_conllu
from heads.text.vocabulary import Tokens, Vocabulary
from heads.training.devices import add_device_arguments, pick

MOST_UNKNOWN = 0.1
"""Of the pieces of all sentences that are measured. A treebank in the language of the training text has next to none,
one in another alphabet about half: its letters lie in unknown pieces, so that its words are aligned all the same."""


def named_path(text: str) -> tuple[str, Path]:
    """A flag's value such as `gold=dev.conllu`."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, such as gold=dev.conllu")
    return name, Path(path)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of `python -m heads roles`."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument(
        "--trees",
        type=named_path,
        nargs="+",
        required=True,
        metavar="NAME=PATH",
        help="parsed source sentences, CoNLL-U, for one name or more under trees in the settings",
    )
    parser.add_argument("--train-source", type=Path, required=True, help="token file to count pieces in")
    parser.add_argument("--out", type=Path, required=True, help="table to write")
    parser.add_argument("--alignment", type=Path, required=True, help="table to write: what was read and left out")
    parser.add_argument(
        "--positions", type=Path, required=True, help="table to write: where the dependents of each relation stand"
    )
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> None:
    """Measure heads on the trees of every source and write all tables; say on standard error what is missing."""
    settings = section(RolesSettings, read_yaml(arguments.settings)["roles"])
    paths = _in_order(dict(arguments.trees), settings.trees)
    first, *others = paths.values()
    for path in others:
        check_same_sentences(first, path, settings.sentences)
    vocabulary = Vocabulary(arguments.source_bpe)
    model = load_folder(arguments.model).to(pick(arguments))
    heads = [(layer, head) for _, layer, head in model.shape.heads(("enc_self",))]
    ranks = frequency_ranks(Tokens(arguments.train_source).ids, len(vocabulary))
    rows: list[Row] = []
    alignment: list[Row] = []
    stand: list[Row] = []
    for name, path in paths.items():
        trees = islice(read_conllu(path), settings.sentences or None)
        kept, counts = usable(words_of(trees, vocabulary), settings.max_pieces)
        _tell(path, kept, counts, settings)
        found = roles(attend(model, kept, settings.batch_tokens), heads, ranks, settings)
        rows += [{"trees": name, **row} for row in found]
        alignment.append({"trees": name, **counts})
        stand += [{"trees": name, **row} for row in positions(kept, settings.relations)]
    write_tsv(arguments.out, rows, ("trees", *COLUMNS))
    write_tsv(arguments.alignment, alignment, ("trees", *ALIGNMENT_COLUMNS))
    write_tsv(arguments.positions, stand, ("trees", *POSITION_COLUMNS))


def _in_order(paths: Mapping[str, Path], names: Sequence[str]) -> dict[str, Path]:
    """The trees that are there, in the order of the settings: a corpus may have none of one source."""
    unknown = [name for name in paths if name not in names]
    if unknown:
        raise UserError(
            f"--trees gives {', '.join(unknown)}, but roles.trees is {', '.join(names)}: give names that stand there."
        )
    return {name: paths[name] for name in names if name in paths}


def _tell(path: Path, kept: Collection[Words], counts: Mapping[str, object], settings: RolesSettings) -> None:
    reasons = (
        f"{counts['too_short']} of fewer than {SHORTEST} words, {counts['too_long']} of more than "
        f"{settings.max_pieces} pieces, {counts['not_aligned']} with words that pieces do not cover exactly"
    )
    if not kept:
        raise UserError(
            f"{path}: none of its {counts['sentences']} sentences can be measured ({reasons}): "
            "give a treebank in the source language, a sentence a tree."
        )
    unknown = sum(words.unknown for words in kept) / sum(len(words.pieces) for words in kept)
    if unknown > MOST_UNKNOWN:
        raise UserError(
            f"{path}: {unknown:.0%} of the pieces of its sentences are unknown to the vocabulary, more than "
            f"{MOST_UNKNOWN:.0%}: give a treebank in the source language."
        )
    print(f"{path}: {counts['aligned_words']} of {counts['tree_words']} words are aligned with pieces", file=sys.stderr)
    if len(kept) != counts["sentences"]:
        print(f"{path}: {len(kept)} of {counts['sentences']} sentences measured; left out: {reasons}", file=sys.stderr)
    for sentence in missing_relations(kept, settings.relations):
        print(f"{path}: {sentence}", file=sys.stderr)


def missing_relations(sentences: Iterable[Words], relations: Sequence[str]) -> list[str]:
    """A sentence for every relation that never occurs, with the nearest one that does."""
    full = {arc.relation for words in sentences for arc in words.arcs}
    occurring = sorted(full | {relation.partition(":")[0] for relation in full})
    told = []
    for relation in relations:
        if relation not in occurring:
            near = difflib.get_close_matches(relation, occurring, n=1, cutoff=0.5)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(occurring) or 'none at all'}."
            told.append(f"the relation {relation} never occurs, its rows stay empty; {hint}")
    return told
