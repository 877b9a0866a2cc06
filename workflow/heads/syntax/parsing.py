"""Offline dependency parsing with Stanza (Qi et al. 2020): train a tagger and parser on a treebank, parse words.

Models are in a folder like Stanza's own: `resources.json`, `{language}/pos/*.pt`, `{language}/depparse/*.pt`. Training
here makes such a folder too, so downloaded and trained models are loaded in the same way. Stanza 1.15 opens each `.pt`
file with `torch.load(weights_only=True)`, which builds tensors and plain values and runs no code from the file.

Training is Stanza's own: a tagger, then a parser that sees the tagger's tags, both without pretrained word vectors and
with Adam as in Qi et al. 2018. The check set that picks the best step is held out from the training treebank.
"""

import os
import pickle
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import stanza
import torch
from stanza.models import parser as parser_trainer
from stanza.models import tagger as tagger_trainer
from stanza.pipeline.core import PipelineRequirementsException
from stanza.resources.common import DEFAULT_MODEL_DIR

from heads.base.files import UserError, write_json
from heads.config.trainings import ParserSettings
from heads.syntax.conllu import Sentence, write_conllu

PACKAGE = "trained"
"""The name of a model trained here, in its folder's resources.json."""

CHECK_EVERY = 20
"""Every twentieth sentence of the treebank is not trained on but picks the best step."""

UNLOADABLE = (
    OSError,
    EOFError,
    ValueError,
    LookupError,
    RuntimeError,
    pickle.UnpicklingError,
    PipelineRequirementsException,
)
"""Errors that Stanza raises for models that are missing, damaged or of another kind."""

EVALUATE_EVERY = 100
PARSED_AT_ONCE = 1000
ADAM = ("--optim", "adam", "--lr", "0.003", "--beta2", "0.95")


def evenly(trees: Sequence[Sentence], limit: int) -> list[Sentence]:
    """At most `limit` trees, spread evenly over a treebank, which may be ordered by genre; 0: all."""
    if not limit or limit >= len(trees):
        return list(trees)
    return [trees[index * len(trees) // limit] for index in range(limit)]


def train_models(
    folder: Path, language: str, trees: Sequence[Sentence], settings: ParserSettings, device: torch.device
) -> None:
    """Train a tagger and a parser on `trees` and write both or neither to `folder`; the same for the same seed.

    Raises UserError if the folder already exists and is not empty, or if there are too few trees.
    """
    if folder.exists() and any(folder.iterdir()):
        raise UserError(f"{folder} already exists: delete it or name another folder for the models.")
    chosen = evenly(trees, settings.train_sentences)
    if len(chosen) < CHECK_EVERY:
        raise UserError(f"{len(chosen)} trees are too few to train a parser on: give at least {CHECK_EVERY}.")
    with _staged(folder) as stage:
        work = stage / "work"
        tagger, parser = (stage / language / name / f"{PACKAGE}.pt" for name in ("pos", "depparse"))
        treebank = {"check": chosen[::CHECK_EVERY], "train": [t for i, t in enumerate(chosen) if i % CHECK_EVERY]}
        for name, part in treebank.items():
            # The forms as lemmas, as the parser will see them: our only lemmatiser repeats the word.
            seen = (replace(tree, tokens=tuple(replace(token, lemma=token.form) for token in tree)) for tree in part)
            write_conllu(work / f"{name}.gold", seen)
        tagging = _common(tagger, language, settings.seed, device)
        files = ["--train_file", str(work / "train.gold"), "--eval_file", str(work / "check.gold")]
        tagger_trainer.main([*tagging, *files, *_tagger_flags(settings)])
        # The parser learns from predicted tags, which are as good as those that it will be given.
        for name in treebank:
            tag = ["--mode", "predict", "--no_gold_labels", "--eval_file", str(work / f"{name}.gold")]
            tagger_trainer.main([*tagging, *tag, "--output_file", str(work / f"{name}.tagged")])
        files = ["--train_file", str(work / "train.tagged"), "--eval_file", str(work / "check.tagged")]
        parser_trainer.main([*_common(parser, language, settings.seed, device), *files, *_parser_flags(settings)])
        shutil.rmtree(work)
        models: dict[str, Any] = {name: {PACKAGE: {}} for name in ("pos", "depparse")}
        default = {"pos": PACKAGE, "lemma": "identity", "depparse": PACKAGE}
        resources = {language: {"lang_name": language, **models, "packages": {"default": default}}}
        write_json(stage / "resources.json", resources)


def own_models() -> Path:
    """Where Stanza keeps its downloads: STANZA_RESOURCES_DIR, or its folder in the user's home."""
    return Path(DEFAULT_MODEL_DIR)


def open_models(folder: Path, language: str, device: torch.device) -> stanza.Pipeline:
    """Load the tagger and the parser from a folder of Stanza models; nothing is downloaded.

    Raises UserError naming the folder if something is missing.
    """
    needed = ("resources.json", f"{language}/pos/*.pt", f"{language}/depparse/*.pt")
    missing = [name for name in needed if not any(folder.glob(name))]
    reason = f"no {' and no '.join(missing)}"
    if not missing:
        try:
            models: stanza.Pipeline = stanza.Pipeline(
                language,
                dir=str(folder),
                processors="tokenize,pos,lemma,depparse",
                tokenize_pretokenized=True,
                download_method=None,
                device=str(device),
            )
            if "depparse" in models.processors:
                return models
            reason = "its resources.json names no default package with a parser"
        except UNLOADABLE as error:
            reason = " ".join(str(error).split()) or type(error).__name__
    raise UserError(
        f"{folder} is not a folder of Stanza models for {language} ({reason}): it needs {', '.join(needed)} and the "
        f"files that these models build on, as stanza.download({language!r}, model_dir=...) writes them."
    )


def parse(models: stanza.Pipeline, sentences: Sequence[Sentence]) -> Iterator[Sentence]:
    """The same words, spaces and multiword tokens, with tags, lemmas, heads and relations from the models.

    A model trained here has no lemmatiser and gives the word itself as its lemma.
    """
    for start in range(0, len(sentences), PARSED_AT_ONCE):
        part = sentences[start : start + PARSED_AT_ONCE]
        # As lists of words, so that Stanza splits neither sentences nor words.
        document = models([[token.form for token in sentence] for sentence in part])
        for sentence, parsed in zip(part, document.sentences, strict=True):
            tokens = tuple(
                replace(token, lemma=word.lemma or "_", upos=word.upos or "_", head=word.head, relation=word.deprel)
                for token, word in zip(sentence, parsed.words, strict=True)
            )
            yield replace(sentence, tokens=tokens)


@contextmanager
def _staged(folder: Path) -> Iterator[Path]:
    """Yield a temporary folder that becomes `folder` if the block succeeds and is deleted if it fails."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    stage = folder.with_name(f".{folder.name}.{os.getpid()}.part")
    try:
        yield stage
        stage.replace(folder)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def _common(model: Path, language: str, seed: int, device: torch.device) -> list[str]:
    names = ["--lang", language, "--shorthand", f"{language}_{PACKAGE}"]
    place = ["--save_dir", str(model.parent), "--save_name", model.name]
    return [*names, *place, "--no_pretrain", "--seed", str(seed), "--device", str(device)]


def _sizes(settings: ParserSettings, steps: int) -> list[str]:
    sizes = {
        "hidden_dim": settings.width,
        "deep_biaff_hidden_dim": settings.width,
        "char_hidden_dim": settings.width // 2,
        "word_emb_dim": settings.embedding,
        "char_emb_dim": settings.embedding,
        "tag_emb_dim": settings.embedding,
        "transformed_dim": settings.embedding,
        "max_steps": steps,
        "eval_interval": min(EVALUATE_EVERY, steps),
    }
    rates = {"dropout": settings.dropout, "word_dropout": settings.word_dropout}
    return [text for name, value in {**sizes, **rates}.items() for text in (f"--{name}", str(value))]


def _tagger_flags(settings: ParserSettings) -> list[str]:
    batch = ["--batch_size", str(settings.tagger_batch_sentences)]
    return [*_sizes(settings, settings.tagger_steps), *ADAM, *batch, "--fix_eval_interval"]


def _parser_flags(settings: ParserSettings) -> list[str]:
    batch = ["--batch_size", str(settings.parser_batch_words), "--deep_biaff_output_dim", str(settings.width // 2)]
    # Language-specific tags and features of a treebank are not kept.
    plain = ["--no_second_optim", "--weight_decay", "0", "--no_checkpoint", "--no_xpos", "--no_ufeats"]
    return [*_sizes(settings, settings.parser_steps), *ADAM, *batch, *plain]
