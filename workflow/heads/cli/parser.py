"""Parse the sentences of a treebank or of plain text with a folder of Stanza models."""

import argparse
from pathlib import Path

from heads.cli._flags import add_device_arguments, add_output_argument, add_path_argument
from heads.syntax.conllu import read_conllu, write_conllu
from heads.syntax.parsing import open_models, parse
from heads.syntax.tokenising import read_to_parse
from heads.training.devices import label_of, pick


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags."""
    add_path_argument(parser, "--model", "folder of Stanza models")
    parser.add_argument("--language", required=True, help="language of the models, such as en")
    words = parser.add_mutually_exclusive_group(required=True)
    words.add_argument("--trees", type=Path, help="trees, CoNLL-U, whose words are parsed again")
    words.add_argument("--text", type=Path, help="plain text, one sentence per line, to tokenise and parse")
    add_output_argument(parser, "--parsed", what="CoNLL-U file to write")
    add_device_arguments(parser)


def run(arguments: argparse.Namespace) -> str:
    """Parse and write the trees."""
    device = pick(arguments.device, arguments.threads)
    models = open_models(arguments.model, arguments.language, device)
    sentences = list(read_conllu(arguments.trees)) if arguments.trees else read_to_parse(arguments.text)
    write_conllu(arguments.parsed, parse(models, sentences))
    return label_of(device)
