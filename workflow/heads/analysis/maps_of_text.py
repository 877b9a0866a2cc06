"""Attention maps of the first sentences or examples of suitable length, read from files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any

from heads.analysis.attention_maps import examples_to_show, maps, maps_of_examples, sentences_to_show
from heads.analysis.attention_weights import attend_classifying, attend_translating
from heads.base.files import UserError, read_lines
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.model.encoder import Encoder
from heads.model.transformer import Transformer
from heads.syntax.alignment import Words, words_of
from heads.syntax.conllu import Sentence, read_conllu
from heads.syntax.tokenising import words_of_text
from heads.text.encoding import vocabulary_of
from heads.text.labels import Labels
from heads.text.vocabulary import Vocabulary


def maps_of_sentences(
    model: Transformer,
    source_bpe: Path,
    target_bpe: Path,
    sentences: Path,
    settings: MapsSettings,
    search: TranslateSettings,
) -> list[dict[str, Any]]:
    """Attention maps of translated sentences, see `heads.analysis.attention_maps.maps`.

    sentences: a CoNLL-U file of trees, or a .txt file with one sentence per line.
    """
    source, target = vocabulary_of(source_bpe), vocabulary_of(target_bpe)
    is_text = sentences.suffix == ".txt"
    lines = map(words_of_text, read_lines(sentences)) if is_text else read_conllu(sentences)
    shown = sentences_to_show(words_of(lines, source), settings)
    return maps(attend_translating(model, shown, search), source, target)


def maps_of_lines(
    model: Encoder,
    source_bpe: Path,
    target_bpe: Path,
    lines: Path,
    wanted: Path,
    trees: Path | None,
    settings: MapsSettings,
    batch_tokens: int,
) -> list[dict[str, Any]]:
    """Attention maps of classified examples, see `heads.analysis.attention_maps.maps_of_examples`.

    lines: one example per line, its sentences separated by a tab. target_bpe: the labels of the model. wanted: the
    label of each line. trees: those of all sentences, in order. Raises UserError if lines, labels and trees do not
    match.
    """
    source, labels = vocabulary_of(source_bpe), Labels(target_bpe)
    examples, words = read_lines(lines), read_lines(wanted)
    if len(examples) != len(words):
        raise UserError(
            f"{lines} has {len(examples)} examples and {wanted} {len(words)} labels: give files of one text."
        )
    shown = examples_to_show(_sentences_of(examples, trees, source), settings)
    return maps_of_examples(attend_classifying(model, shown, batch_tokens), source, labels.words, words)


def _sentences_of(lines: Iterable[str], trees: Path | None, source: Vocabulary) -> Iterator[list[Words]]:
    """The sentences of each example, with their trees if `trees` is given."""
    examples = [line.split("\t") for line in lines]
    texts = chain.from_iterable(examples)
    words = words_of(_trees_of(texts, trees) if trees else map(words_of_text, texts), source)
    for example in examples:
        yield [next(words) for _ in example]


def _trees_of(texts: Iterable[str], path: Path) -> Iterator[Sentence]:
    """The tree of each sentence. Raises UserError if the file has no tree or another sentence in its place."""
    trees = read_conllu(path)
    for text in texts:
        tree = next(trees, None)
        if tree is None or tree.text != text:
            raise UserError(f"{path} has no tree of {text!r} at the place of its example: parse this text again.")
        yield tree
