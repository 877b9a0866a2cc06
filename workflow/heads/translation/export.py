"""A trained model as a folder of its own: weights, shape, vocabularies, score and a page about it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from heads.base.files import UserError, write_json, write_text
from heads.base.names import ATTENTION_LABELS
from heads.model.folder import load_folder, save_folder
from heads.model.shape import ModelShape, facts_of
from heads.text.vocabulary import facts_beside
from heads.translation.model_folder import SCORE, VOCABULARIES, load_vocabularies, score_of, vocabulary_folder


def export(folder: Path, out: Path) -> None:
    """Write the model of a run's folder, with all that translating with it takes, to the new folder `out`.

    Raises UserError if `folder` is no run of an experiment or `out` is already there.
    """
    model = load_folder(folder)
    load_vocabularies(folder, model)
    vocabularies = vocabulary_folder(folder)
    experiment = vocabularies.parent
    if vocabularies == folder.resolve():
        raise UserError(f"{folder} is an exported model already: copy the folder.")
    facts = {
        **facts_of(folder),
        "experiment": experiment.name,
        "run": folder.resolve().relative_to(experiment).as_posix(),
    }
    score = score_of(folder)
    with new_folder(out) as stage:
        save_folder(model, stage, facts, facts["provenance"])
        for name in VOCABULARIES:
            for path in (vocabularies / name, facts_beside(vocabularies / name)):
                shutil.copyfile(path, stage / path.name)
        if score is not None:
            write_json(stage / SCORE, score)
        parameters = sum(value.numel() for value in model.parameters())
        write_text(stage / "README.md", page(model.shape, parameters, facts, score))


@contextmanager
def new_folder(path: Path) -> Iterator[Path]:
    """Give a temporary folder beside `path`, renamed to it when the block ends well and removed when it does not.

    Raises UserError when `path` is there or can not be made.
    """
    stage = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        if path.exists():
            raise UserError(f"{path} is already there: delete it or export to another folder.")
        path.parent.mkdir(parents=True, exist_ok=True)
        stage.mkdir()
    except OSError as error:
        raise UserError(f"{path} cannot be made ({error.strerror}): export to another folder.") from error
    try:
        yield stage
        stage.rename(path)
    finally:
        shutil.rmtree(stage, ignore_errors=True)


def page(shape: ModelShape, parameters: int, facts: Mapping[str, Any], score: Mapping[str, Any] | None) -> str:
    """What a stranger should know of an exported model, as Markdown."""
    origin = facts["provenance"]
    changed = ", with changes that were not committed" if origin["changed_since_commit"] else ""
    versions = ", ".join(f"{name} {origin[name]}" for name in ("python", "torch", "sentencepiece"))
    known = "" if score else " --beam 4 --length-penalty 0.6"
    return f"""# {facts["experiment"]}/{facts["run"]}

A Transformer that translates, {parameters:,} parameters in 32 bits.

## Attention heads left

{_head_table(shape)}

Layers count from 0. The other heads are cut out of the matrices; `model.json` lists those that are left.

## Score

{_score_text(score)}

## Use

    python -m heads translate --model FOLDER{known} < source.txt > translations.txt

FOLDER is this one; the text is UTF-8, a sentence a line. The command is there once `pip install .` was run in the code
that trained the model, commit `{origin["commit"]}`{changed}, with {versions}.
Nothing else of the experiment is needed, and no file here is a pickle.
"""


def _head_table(shape: ModelShape) -> str:
    rows = [["attention", *(str(layer) for layer in range(shape.layers)), "all"]]
    rows.append(["---"] * len(rows[0]))
    for attention, label in ATTENTION_LABELS.items():
        left = [len(layer) for layer in shape.live_heads[attention]]
        cells = [*map(str, left), f"{sum(left)} of {shape.original_heads * shape.layers}"]
        rows.append([label, *cells])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _score_text(score: Mapping[str, Any] | None) -> str:
    if score is None:
        return "It was not scored."
    return (
        f"BLEU {score['bleu']:.2f} on {score['sentences']} sentences of the {score['split']} set, with a beam of "
        f"{score['beam']} and length penalty {score['length_penalty']}.\nsacrebleu: `{score['signature']}`"
    )
