"""Parse the sentences of a treebank or of plain text with a folder of Stanza models."""

from pathlib import Path
from typing import Annotated

from heads.cli._flags import Machine, OutFile
from heads.cli._signature import OneOf
from heads.syntax.conllu import read_conllu, write_conllu
from heads.syntax.parsing import open_models, parse
from heads.syntax.tokenising import read_to_parse
from heads.training.devices import label_of, pick


def run(
    *,
    model: Annotated[Path, "folder of Stanza models"],
    language: Annotated[str, "language of the models, such as en"],
    trees: Annotated[Path | None, OneOf("words", required=True), "trees, CoNLL-U, whose words are parsed again"] = None,
    text: Annotated[
        Path | None, OneOf("words", required=True), "plain text, one sentence per line, to tokenise and parse"
    ] = None,
    parsed: Annotated[OutFile, "CoNLL-U file to write"],
    machine: Machine,
) -> str:
    """Parse and write the trees."""
    device = pick(machine.device, machine.threads)
    models = open_models(model, language, device)
    sentences = [*(read_conllu(trees) if trees else ()), *(read_to_parse(text) if text else ())]
    write_conllu(parsed, parse(models, sentences))
    return label_of(device)
