"""Attention maps of the first sentences or examples of suitable length."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from heads.analysis.attention_maps import examples_to_show, maps, maps_of_examples, sentences_to_show
from heads.analysis.attention_weights import attend_classifying, attend_translating
from heads.base.files import UserError, read_lines
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.model.encoder import Encoder
from heads.model.transformer import Transformer
from heads.syntax.conllu import Sentence, read_conllu
from heads.syntax.tokenising import words_of_text
from heads.syntax.words import Words, words_of
from heads.text.labels import Labels
from heads.text.vocabulary import Vocabulary


def maps_of_sentences(
    model: Transformer,
    source: Vocabulary,
    target: Vocabulary,
    sentences: Iterable[Sentence],
    settings: MapsSettings,
    search: TranslateSettings,
) -> list[dict[str, Any]]:
    """Attention maps of translated sentences, see `heads.analysis.attention_maps.maps`."""
    shown = sentences_to_show(words_of(sentences, source), settings)
    return maps(attend_translating(model, shown, search), source, target)


def read_sentences(path: Path) -> Iterable[Sentence]:
    """The sentences of a CoNLL-U file with their trees, or those of a .txt file, one per line, without."""
    return map(words_of_text, read_lines(path)) if path.suffix == ".txt" else read_conllu(path)


def maps_of_lines(
    model: Encoder,
    source: Vocabulary,
    labels: Labels,
    examples: Sequence[str],
    wanted: Sequence[str],
    trees: Path | None,
    settings: MapsSettings,
    batch_tokens: int,
) -> list[dict[str, Any]]:
    """Attention maps of classified examples, see `heads.analysis.attention_maps.maps_of_examples`.

    examples: the sentences of each, separated by a tab. wanted: the label of each. trees: those of all sentences, in
    order. Raises UserError if examples and trees do not match.
    """
    shown = examples_to_show(_sentences_of(examples, trees, source), settings)
    return maps_of_examples(attend_classifying(model, shown, batch_tokens), source, labels.words, wanted)


def read_examples(lines: Path, wanted: Path) -> tuple[list[str], list[str]]:
    """Examples, one per line, and the label of each. Raises UserError if the two files differ in length."""
    examples, labels = read_lines(lines), read_lines(wanted)
    if len(examples) != len(labels):
        raise UserError(
            f"{lines} has {len(examples)} examples and {wanted} {len(labels)} labels: give files of one text."
        )
    return examples, labels


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
