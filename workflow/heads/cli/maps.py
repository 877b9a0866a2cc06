"""Attention maps of all heads for a few sentences, with the model's output."""

import json
import sys
from pathlib import Path
from typing import Annotated

from heads.analysis.maps_of_text import maps_of_lines, maps_of_sentences, read_examples, read_sentences
from heads.base.files import UserError, write_text
from heads.cli._flags import Analysis, AnyTargetBpe, MaybePath, OutFile, SourceBpe
from heads.config.analyses import MapsSettings, TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_answering
from heads.model.transformer import Transformer
from heads.text.encoding import vocabulary_of
from heads.text.labels import Labels
from heads.training.devices import label_of, pick


def run(
    *,
    given: Analysis,
    source_bpe: SourceBpe,
    target_bpe: AnyTargetBpe,
    sentences: Annotated[
        Path, "source sentences: CoNLL-U, or plain lines in a .txt; for a classifier, one example per line"
    ],
    labels: Annotated[MaybePath, "for examples: the correct label of each line"] = None,
    trees: Annotated[MaybePath, "for examples, if known: the trees of their sentences in order, CoNLL-U"] = None,
    out: Annotated[OutFile, "JSON file to write"],
) -> str:
    """Choose sentences, translate them or predict their labels, and write the maps."""
    settings = section(MapsSettings, given.settings["maps"])
    search = section(TranslateSettings, given.settings["translate"])
    device = pick(given.device, given.threads)
    model = load_answering(given.model).to(device)
    source = vocabulary_of(source_bpe)
    if isinstance(model, Transformer):
        target = vocabulary_of(target_bpe)
        result = maps_of_sentences(model, source, target, read_sentences(sentences), settings, search)
    elif labels is None:
        raise UserError(f"{given.model} classifies: give the labels of its examples with --labels.")
    else:
        examples, answers = read_examples(sentences, labels)
        known = Labels(target_bpe)
        answers = known.named(answers, labels)
        result = maps_of_lines(model, source, known, examples, answers, trees, settings, search.batch_tokens)
    if not result:
        wanted = f"{settings.min_words} to {settings.max_words} words"
        print(f"{sentences}: no sentence has {wanted}, so the file of maps stays empty", file=sys.stderr)
    write_text(out, json.dumps(result, ensure_ascii=False) + "\n")
    return label_of(device)
