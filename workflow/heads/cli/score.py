"""Translate the test set by beam search and score it with sacrebleu."""

import sys
from pathlib import Path
from typing import Annotated

from heads.base.files import read_references, write_json, write_lines, write_tsv
from heads.base.names import REFERENCES
from heads.base.provenance import made_by
from heads.cli._flags import Analysis, OutFile, References, tokeniser_named
from heads.cli._signature import Written
from heads.config.analyses import TranslateSettings
from heads.config.settings import section
from heads.model.folder import load_folder
from heads.text.encoding import vocabulary_of
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick
from heads.translation.bleu import STATISTICS
from heads.translation.scoring import scored
from heads.translation.text_scores import bleu as bleu_of
from heads.translation.text_scores import tokeniser_of

SCORES = (("BLEU", "bleu", "signature"), ("chrF", "chrf", "chrf_signature"))


def run(
    *,
    given: Analysis,
    source: Annotated[Path, "token file of the source side"],
    text: Annotated[Path | None, "plain text of the source side, to score as if it were a translation"] = None,
    references: References,
    against: Annotated[str, "what the references are, if a model wrote them"] = REFERENCES,
    target_bpe: Annotated[Path, "SentencePiece model of the target side"],
    translations: Annotated[OutFile, "translations to write"],
    bleu: Annotated[OutFile, "score to write, JSON"],
    statistics: Annotated[Path | None, Written(), "table to write: the counts behind BLEU in each sentence"] = None,
) -> str:
    """Translate, score, and write everything."""
    device = pick(given.device, given.threads)
    settings = section(TranslateSettings, given.settings["translate"])
    model = load_folder(given.model).to(device)
    sentences, vocabulary = Tokens(source), vocabulary_of(target_bpe)
    wanted = read_references(references, str(source), len(sentences))
    tokeniser = tokeniser_of(wanted, tokeniser_named(given.settings))
    texts, counts, score = scored(model, sentences, wanted, vocabulary, settings, device, tokeniser)
    if text:
        copied = read_references(text, str(source), len(sentences))
        # Copying the source gets some names and numbers right; a translation has to be better than that.
        score["copied_bleu"] = bleu_of(copied[: len(texts)], wanted[: len(texts)], tokeniser)["bleu"]
    write_lines(translations, texts)
    if statistics:
        write_tsv(statistics, counts, STATISTICS)
    made = made_by(device=label_of(device), threads=given.threads)
    write_json(bleu, {**score, "against": against, "provenance": made})
    scores = (f"{name} {score[key]:.2f} {score[signature]}" for name, key, signature in SCORES)
    print(f"{', '.join(scores)}, against the {against}", file=sys.stderr)
    return label_of(device)
