"""Flags that several commands have in common."""

from __future__ import annotations

import argparse
from pathlib import Path

from heads.base.files import settings_given
from heads.base.names import PAPER_CORPORA, SCOPES, WMT


def add_settings_argument(parser: argparse.ArgumentParser, what: str = "settings of the stage") -> None:
    """The flag `--settings` of every command that the workflow calls with settings; its value is read already."""
    parser.add_argument(
        "--settings", type=settings_given, required=True, metavar="JSON|FILE", help=f"{what}, YAML if a file"
    )


def add_measure_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every command that measures heads on pairs of token files and writes a table of them."""
    add_settings_argument(parser)
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--source", type=Path, required=True, help="token file of the source sentences")
    parser.add_argument("--target", type=Path, required=True, help="token file of the reference translations")
    parser.add_argument("--out", type=Path, required=True, help="table of heads to write")
    add_device_arguments(parser)


def add_workers_argument(parser: argparse.ArgumentParser) -> None:
    """The flag `--threads` of commands that work in several processes; it changes nothing but their speed."""
    parser.add_argument("--threads", type=int, default=1, help="processes to work in")


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags `--device` and `--threads`, shared by all commands that run a model."""
    parser.add_argument("--device", default="auto", help="auto (a free GPU when there is one), cpu, cuda or cuda:1")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for torch")


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """The model that a person names, and its languages where it has several."""
    what = "a run, an exported folder, one of transformers or Marian, a name on the hub, or firefox/en-pt"
    parser.add_argument("model", help=what)
    add_language_arguments(parser)


def add_language_arguments(parser: argparse.ArgumentParser) -> None:
    """The flags that name the languages of a model that has several."""
    parser.add_argument("--prefix", default="", help='what each source sentence begins with, such as ">>ru<<"')
    parser.add_argument("--source-language", default="", help="of M2M100, NLLB or mBART: en, eng_Latn or en_XX")
    parser.add_argument("--target-language", default="", help="of M2M100, NLLB or mBART: de, deu_Latn or de_DE")


def languages_of(arguments: argparse.Namespace) -> tuple[str, str]:
    """Those of source and target that `add_language_arguments` was given; empty where none."""
    return arguments.source_language, arguments.target_language


def add_masking_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every command that translates with masked heads."""
    add_settings_argument(parser)
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    parser.add_argument("--source", type=Path, required=True, help="token file of the test sentences")
    parser.add_argument("--references", type=Path, required=True, help="plain text of their translations, or labels")
    parser.add_argument(
        "--target-bpe", type=Path, required=True, help="SentencePiece model of the target side, or its labels"
    )
    add_device_arguments(parser)


def named_path(text: str) -> tuple[str, Path]:
    """A flag's value such as `gold=dev.conllu`."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, such as gold=dev.conllu")
    return name, Path(path)


def add_compared_argument(parser: argparse.ArgumentParser) -> None:
    """The flag `--compared-with` of whatever tries the papers' claims."""
    parser.add_argument(
        "--compared-with",
        type=compared_corpus,
        nargs="+",
        default=[],
        metavar="EXPERIMENT=CORPUS",
        help=f"the paper's corpus, {' or '.join(PAPER_CORPORA)}, whose numbers count for an experiment; else {WMT}",
    )


def compared_corpus(text: str) -> tuple[str, str]:
    """A flag's value such as `demo=WMT`."""
    experiment, _, corpus = text.rpartition("=")
    if not experiment or corpus not in PAPER_CORPORA:
        raise argparse.ArgumentTypeError(f"{text!r} is not EXPERIMENT=CORPUS, with {' or '.join(PAPER_CORPORA)}")
    return experiment, corpus


def add_roles_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every command that measures what encoder heads look at."""
    parser.add_argument("--model", type=Path, required=True, help="folder of a trained model")
    add_settings_argument(parser)
    parser.add_argument("--source-bpe", type=Path, required=True, help="source SentencePiece model")
    parser.add_argument(
        "--trees",
        type=named_path,
        nargs="+",
        required=True,
        metavar="NAME=PATH",
        help="parsed source sentences, CoNLL-U, for one name or more under trees in the settings",
    )
    parser.add_argument("--train-source", type=Path, required=True, help="token file to count subwords in")
    parser.add_argument("--out", type=Path, required=True, help="table to write")


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every training."""
    add_settings_argument(parser)
    parser.add_argument("--data", type=Path, required=True, help="folder of the bpe stage")
    parser.add_argument("--references", type=Path, required=True, help="plain text of the dev targets, for BLEU")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--model", type=Path, required=True, help="folder to write the model into")
    parser.add_argument("--history", type=Path, required=True, help="training log to write, JSON lines")
    parser.add_argument(
        "--save-every-seconds", type=float, default=60.0, help="how much work a killed training loses at most"
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="processes that share the training, each with a GPU of its own"
    )
    add_device_arguments(parser)


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every training with gates."""
    add_training_arguments(parser)
    parser.add_argument("--scope", choices=sorted(SCOPES), required=True, help="which heads get gates")
    parser.add_argument(
        "--target",
        required=True,
        help="penalty in nats per target token per head, lam-0.05; heads to be left of the scope or of each kind of "
        "attention, keep-12 or keep-4-6-8; or by differentiable subset pruning, dsp-12",
    )
    parser.add_argument("--heads", type=Path, required=True, help="table of the gates to write")
    parser.add_argument("--gates-log", type=Path, required=True, help="how the gates closed, JSON lines to write")
