"""A trained model as a folder of its own: weights, shape, vocabularies, score and a page about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heads.base.files import UserError, write_json, write_text, write_tsv
from heads.base.names import ATTENTION_LABELS
from heads.model.folder import HEADS, load_folder, save_folder
from heads.model.head_removal import COLUMNS, head_rows
from heads.model.shape import ModelShape, facts_of
from heads.model.transformer import Transformer
from heads.text.vocabulary import Vocabulary, facts_beside
from heads.translation.agreement import pairs_of
from heads.translation.aligning import ROWS, AligningHead, aligning_heads
from heads.translation.model_folder import (
    EARLY_STOPPING,
    PRETRAINED,
    SCORE,
    VOCABULARIES,
    about_of,
    load_vocabularies,
    score_of,
    vocabulary_folder,
)
from heads.translation.to_ctranslate2 import agreement_of_ctranslate2, write_ctranslate2
from heads.translation.to_huggingface import agreement_of_huggingface, write_huggingface
from heads.translation.to_onnx import agreement_of_onnx, write_onnx

FORMATS = ("folder", "ctranslate2", "onnx", "huggingface")
"""Our own folder, and what others read."""
SEARCH = (4, 0.6)
"""Beam and length penalty of a model that was never scored."""
TOLERANCE = 1e-4
"""How far a log-probability of an exported model in 32 bits may lie from ours, in nats: rounding and no more."""


def export(
    folder: Path,
    out: Path,
    form: str = "folder",
    *,
    sentences: Sequence[str] = (),
    quantization: str = "float32",
    alignment: Path | None = None,
) -> float | None:
    """Write the model of a run's folder, with all that translating with it takes, to the new folder `out`.

    A format of others is held against our own model on `sentences`, or on random pieces if there are none; returned is
    the largest difference of a log-probability in nats. Which heads align is told to CTranslate2, by the table
    `alignment` or the one in `folder`, if it has one. Raises UserError if `folder` is no run of an experiment, if
    `out` is already there, and where a format needs what is not installed.
    """
    model = load_folder(folder)
    vocabularies = load_vocabularies(folder, model)
    place = vocabulary_folder(folder)
    if place == folder.resolve() and form == "folder":
        raise UserError(exported_already(folder))
    facts = facts_of(folder)
    if place != folder.resolve():
        facts |= {"experiment": place.parent.name, "run": folder.resolve().relative_to(place.parent).as_posix()}
    score, about, difference = score_of(folder), about_of(place), None
    rows = alignment or (folder / ROWS if (folder / ROWS).exists() else None)
    aligning = aligning_heads(rows, model.shape) if rows and form == "ctranslate2" else None
    with new_folder(out) as stage:
        if form == "folder":
            save_folder(model, stage, facts, facts["provenance"])
        else:
            difference = _write_other(
                form, model, vocabularies, stage, sentences, quantization, aligning, _searched(score, about)
            )
            write_tsv(stage / HEADS, head_rows(model.shape), COLUMNS)
            write_json(stage / "origin.json", facts["provenance"])
        # transformers' folder has them by its own names.
        for name in VOCABULARIES if form != "huggingface" else ():
            # What imported vocabularies lack is told beside them.
            told = form == "folder" or about is not None
            for path in (place / name, *([facts_beside(place / name)] if told else [])):
                shutil.copyfile(path, stage / path.name)
        if about is not None:
            shutil.copytree(place / PRETRAINED, stage / PRETRAINED)
        if score is not None:
            write_json(stage / SCORE, score)
        parameters = sum(value.numel() for value in model.parameters())
        use = use_of(form, facts["provenance"], score, difference, about) + (ALIGNMENT_USE if aligning else "")
        write_text(stage / "README.md", page(model.shape, parameters, facts, score, use, about))
    return difference


def _write_other(
    form: str,
    model: Transformer,
    vocabularies: Sequence[Vocabulary],
    stage: Path,
    sentences: Sequence[str],
    quantization: str,
    aligning: Sequence[AligningHead] | None,
    searched: tuple[int, float],
) -> float:
    """Write the model as others read it, and find how far it is from ours. Raises ArithmeticError if that is far."""
    pairs = pairs_of(model, vocabularies[0], sentences)
    if form == "ctranslate2":
        write_ctranslate2(model, vocabularies, stage, quantization, aligning)
        difference = agreement_of_ctranslate2(model, vocabularies, stage, pairs)
    elif form == "huggingface":
        write_huggingface(model, vocabularies, searched, stage)
        difference = agreement_of_huggingface(model, stage, pairs)
    else:
        write_onnx(model, stage)
        difference = agreement_of_onnx(model, stage, pairs)
    if quantization == "float32" and not difference <= TOLERANCE:
        raise ArithmeticError(f"the exported model's log-probabilities differ from ours by {difference}")
    return difference


def exported_already(folder: Path) -> str:
    """What to say of a folder that export itself, or import, has written."""
    return f"{folder} is an exported model already: copy the folder."


def _searched(score: Mapping[str, Any] | None, about: Mapping[str, Any] | None) -> tuple[int, float]:
    """Beam and length penalty that a model was scored with, or else its authors use."""
    if score is None:
        return (about["num_beams"], about["length_penalty"]) if about else SEARCH
    return score["beam"], score["length_penalty"]


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path`, renamed to it when the block ends well and removed when it does not.

    Raises UserError when `path` is there or can not be made.
    """
    try:
        if path.exists():
            raise UserError(f"{path} is already there: delete it or export to another folder.")
        stage = path.with_name(f".{path.name}.{os.getpid()}.part")
        path.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
    except OSError as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): export to another folder.") from error
    try:
        yield stage
        stage.rename(path)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def page(
    shape: ModelShape,
    parameters: int,
    facts: Mapping[str, Any],
    score: Mapping[str, Any] | None,
    use: str,
    about: Mapping[str, Any] | None = None,
) -> str:
    """What a stranger should know of an exported model, as Markdown.

    use: how it translates. about: of the model of others that it was made from, if it was.
    """
    return f"""# {facts["experiment"]}/{facts["run"]}

A Transformer that translates, {parameters:,} parameters.

## Attention heads left

{head_table(shape)}

Layers count from 0. The other heads are cut out of the matrices.

## Score

{_score_text(score)}
{_origin_text(about)}
## Use

{use}
Text is UTF-8, a sentence a line. Nothing else of the experiment is needed, and no file here is a pickle.
"""


def use_of(
    form: str,
    origin: Mapping[str, Any],
    score: Mapping[str, Any] | None,
    difference: float | None,
    about: Mapping[str, Any] | None = None,
) -> str:
    """How an exported model translates, as Markdown: where our own command is from, or what others' programs need."""
    changed = ", with changes that were not committed" if origin["changed_since_commit"] else ""
    versions = ", ".join(f"{name} {origin[name]}" for name in ("python", "torch", "sentencepiece"))
    code = f"the code that trained the model, commit `{origin['commit']}`{changed}, with {versions}"
    if form == "folder":
        known = "" if score or about else " --beam {} --length-penalty {}".format(*SEARCH)
        return f"""    python -m heads translate --model FOLDER{known} < source.txt > translations.txt

FOLDER is this one, and `model.json` lists the heads that are left. The command is there once `pip install .` was run in
{code}."""
    beam, alpha = _searched(score, about)
    theirs = score is None and bool(about)
    how = {"onnx": ONNX_USE, "ctranslate2": CTRANSLATE2_USE, "huggingface": HUGGINGFACE_USE}[form].format(
        beam=beam,
        alpha=alpha,
        ours="as ours" if theirs else OURS.format(alpha=alpha),
        search=THEIR_SEARCH.format(ends=str(about.get(EARLY_STOPPING, False)).lower()) if theirs and about else "",
    )
    return f"""{how}
Written by {code}. When it was, no log-probability of a piece was further than {difference:.1e} nats from those of the
model in that code. `heads.tsv` lists the heads that are left, `origin.json` where all came from."""


OURS = "ours were divided by ((5 + length) / 6) ** {alpha}"

THEIR_SEARCH = " --length-offset 0 --early-stopping {ends}"

ONNX_USE = """    pip install onnxruntime sentencepiece numpy
    python translate.py --beam {beam} --length-penalty {alpha}{search} < source.txt > translations.txt

`encoder.onnx` takes ids of pieces with the end sign, `step.onnx` the newest piece of every hypothesis and what encoder
and earlier steps left; `translate.py` shows how."""

HUGGINGFACE_USE = """    pip install transformers sentencepiece torch

```python
from transformers import MarianMTModel, MarianTokenizer

tokenizer, model = (kind.from_pretrained(".") for kind in (MarianTokenizer, MarianMTModel))
batch = tokenizer(["A sentence.", "Another one."], return_tensors="pt", padding=True)
print(tokenizer.batch_decode(model.generate(**batch), skip_special_tokens=True, use_source_tokenizer=False))
```

Heads that are cut out are zeros there, as Marian has as many in every layer: it is no smaller and no faster.
transformers divides scores by length ** length_penalty, {ours}; the beam is {beam}."""

CTRANSLATE2_USE = """    pip install ctranslate2 sentencepiece

```python
import ctranslate2, sentencepiece

source, target = (sentencepiece.SentencePieceProcessor(model_file=f"{{side}}.model") for side in ("source", "target"))
translator = ctranslate2.Translator(".")
pieces = [source.encode(line, out_type=str) for line in ["A sentence.", "Another one."]]
for result in translator.translate_batch(pieces, beam_size={beam}, disable_unk=True):
    print(target.decode(result.hypotheses[0]))
```

CTranslate2 divides scores by length ** length_penalty, {ours}."""


ALIGNMENT_USE = """

`alignment_heads` in `config.json` lists the decoder-encoder heads that align words, [layer, head] in the numbers of
this model, from 0, the best one first. Those of the best one's layer are what `translate_batch(...,
return_attention=True)` gives the mean attention of: a row a target piece, a column a source piece.
"""


def head_table(shape: ModelShape) -> str:
    """How many heads are left in each layer, as Markdown."""
    deepest = max(shape.layers(kind) for kind in ATTENTION_LABELS)
    rows = [["attention", *map(str, range(deepest)), "all"]]
    rows.append(["---"] * len(rows[0]))
    for attention, label in ATTENTION_LABELS.items():
        if not shape.layers(attention):
            continue
        left = [len(layer) for layer in shape.live_heads[attention]]
        lacking = [""] * (deepest - len(left))
        rows.append([label, *map(str, left), *lacking, f"{sum(left)} of {shape.original_heads * len(left)}"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _origin_text(about: Mapping[str, Any] | None) -> str:
    if about is None:
        return ""
    licence = f"under the licence {about['license']}" if about["license"] else "whose page names no licence"
    prefix = f" Each source sentence begins with `{about['prefix']}`." if about["prefix"] else ""
    return f"""
## Origin

Made from the Marian model {about["name"]}, {licence}; what came with it is in `{PRETRAINED}/`.{prefix}
Its authors search with a beam of {about["num_beams"]} and divide scores by length ** {about["length_penalty"]}, and so
does `heads translate`; an experiment divides by ((5 + length) / 6) to a power of its own. Unknown pieces are never
written.
"""


def _score_text(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return "It was not scored."
    return (
        f"BLEU {score['bleu']:.2f} on {score['sentences']} sentences of the {score['split']} set, with a beam of "
        f"{score['beam']} and length penalty {score['length_penalty']}.\nsacrebleu: `{score['signature']}`"
    )
