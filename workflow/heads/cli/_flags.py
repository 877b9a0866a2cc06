"""Flags that several commands share."""

import argparse
from collections.abc import Callable
from pathlib import Path

from heads.base.files import settings_given
from heads.base.names import (
    AUTO,
    BLEU,
    GATED_SCOPES,
    METRIC_NAMES,
    PAPER_CORPORA,
    QUANTIZATIONS,
    TEXT_METRICS,
    TOKENISERS,
    TOKENIZE,
    WMT,
)
from heads.base.outputs import DECLARED, FILE, FOLDER, Output
from heads.config.settings import Section, section


def add_path_argument(parser: argparse.ArgumentParser, name: str, what: str, nargs: str | None = None) -> None:
    """Declare a required flag that names a file or folder; with nargs "+" one or more. With "?" it is optional."""
    parser.add_argument(name, type=Path, nargs=nargs, required=nargs != "?", help=what)


def add_output_argument(
    parser: argparse.ArgumentParser,
    *names: str,
    what: str,
    kind: str = FILE,
    nargs: str | None = None,
    default: Path | None = None,
    required: bool = True,
    beside: Callable[[Path], Path] | None = None,
) -> None:
    """Declare a flag that names a file or folder to write, which is checked before the work begins.

    kind, beside: as in `heads.base.outputs.Output`.
    """
    flag = parser.add_argument(*names, type=Path, nargs=nargs, default=default, required=required, help=what)
    declared = {**(parser.get_default(DECLARED) or {}), flag.dest: Output(names[-1], kind, beside)}
    parser.set_defaults(**{DECLARED: declared})


def add_settings_argument(parser: argparse.ArgumentParser, what: str = "settings of the stage") -> None:
    """Declare `--settings`, for commands that the workflow calls with settings; its value is already parsed."""
    parser.add_argument(
        "--settings", type=settings_given, required=True, metavar="JSON|FILE", help=f"{what}, as JSON or a YAML file"
    )


def add_quantization_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--quantization`, for commands that write CTranslate2's format."""
    what = "number format of weights, for ctranslate2"
    parser.add_argument("--quantization", choices=QUANTIZATIONS, default=QUANTIZATIONS[0], help=what)


def settings_of(arguments: argparse.Namespace, kind: type[Section], name: str) -> Section:
    """One section of the settings that `add_settings_argument` declares; raise UserError if one is wrong."""
    return section(kind, arguments.settings[name])


def tokeniser_named(arguments: argparse.Namespace) -> str:
    """The tokeniser that the settings name for BLEU, or AUTO; those written by hand may name none."""
    return str(arguments.settings.get(TOKENIZE, AUTO))


def add_tokeniser_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--tokenize`, for commands that people call and that compute BLEU."""
    parser.add_argument(
        f"--{TOKENIZE}",
        choices=TOKENISERS,
        default=AUTO,
        help="sacrebleu's tokeniser for BLEU and ROUGE-L; auto: that for the references' script, such as zh or 13a",
    )


def add_metric_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--metric`, for commands that hold what a model writes against references or against its own outputs."""
    what = "score of models that write text; rouge-l, for summaries, needs the extra of the name rouge (bleu)"
    parser.add_argument("--metric", choices=TEXT_METRICS, default=METRIC_NAMES[BLEU].lower(), help=what)


def add_analysis_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of commands that analyse a trained model: the model, settings and device."""
    add_settings_argument(parser)
    add_path_argument(parser, "--model", "folder of a trained model")
    add_device_arguments(parser)


def add_measure_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of commands that measure heads on pairs of token files and write a table."""
    add_analysis_arguments(parser)
    add_path_argument(parser, "--source", "token file of the source sentences")
    add_path_argument(parser, "--target", "token file of the reference translations")
    add_output_argument(parser, "--out", what="table of heads to write")


def add_workers_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--threads` for commands that work in several processes; it changes only their speed."""
    parser.add_argument("--threads", type=int, default=1, help="number of processes")


def add_device_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare `--device` and `--threads`, for commands that run a model."""
    parser.add_argument("--device", default="auto", help="auto (a free GPU if there is one), cpu, cuda or cuda:1")
    parser.add_argument("--threads", type=int, default=1, help="CPU threads for torch")


def add_model_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the name of the model, and the flags for the languages of a multilingual one."""
    what = "folder of a run, exported folder, transformers or Marian folder, name on the hub, or firefox/en-pt"
    parser.add_argument("model", help=what)
    add_language_arguments(parser)


EXAMPLES = '">>ru<<" for OPUS-MT, or "translate English to German: " for T5'


def add_language_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags that name the languages of a multilingual model."""
    parser.add_argument("--prefix", default="", help=f"text before each source, such as {EXAMPLES}")
    parser.add_argument("--source-language", default="", help="for M2M100 (en), NLLB (eng_Latn) or mBART (en_XX)")
    parser.add_argument("--target-language", default="", help="for M2M100 (de), NLLB (deu_Latn) or mBART (de_DE)")


def add_labels_argument(parser: argparse.ArgumentParser) -> None:
    """Declare the flag that names the labels of a BERT."""
    what = "labels of a BERT, in its classifier's order, if it does not name them"
    parser.add_argument("--labels", nargs="+", default=(), metavar="LABEL", help=what)


def languages_of(arguments: argparse.Namespace) -> tuple[str, str]:
    """Source and target language from the flags of `add_language_arguments`; empty if not given."""
    return arguments.source_language, arguments.target_language


def add_masking_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of commands that translate with masked heads."""
    add_analysis_arguments(parser)
    add_path_argument(parser, "--source", "token file of the test sentences")
    add_path_argument(parser, "--references", "plain text of their translations, or labels")
    add_path_argument(parser, "--target-bpe", "SentencePiece model of the target side, or its labels")


def add_grams_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--grams`, for commands in which heads may make up for others."""
    add_path_argument(
        parser, "--grams", "what the surgeon read, if it chose: heads that stay make up for the others", "?"
    )


def named_path(text: str) -> tuple[str, Path]:
    """Parse a flag's value such as `gold=dev.conllu`."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=PATH, such as gold=dev.conllu")
    return name, Path(path)


def add_compared_argument(parser: argparse.ArgumentParser) -> None:
    """Declare `--compared-with`, for commands that test the papers' claims."""
    parser.add_argument(
        "--compared-with",
        type=compared_corpus,
        nargs="*",
        default=[],
        metavar="EXPERIMENT=CORPUS",
        help=f"corpus whose published numbers count for an experiment, {' or '.join(PAPER_CORPORA)}; default {WMT}",
    )


def compared_corpus(text: str) -> tuple[str, str]:
    """Parse a flag's value such as `demo=WMT`."""
    experiment, _, corpus = text.rpartition("=")
    if not experiment or corpus not in PAPER_CORPORA:
        raise argparse.ArgumentTypeError(f"{text!r} is not EXPERIMENT=CORPUS, with {' or '.join(PAPER_CORPORA)}")
    return experiment, corpus


def add_roles_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of commands that measure what encoder heads look at."""
    add_analysis_arguments(parser)
    add_path_argument(parser, "--source-bpe", "source SentencePiece model")
    parser.add_argument(
        "--trees",
        type=named_path,
        nargs="*",
        default=[],
        metavar="NAME=PATH",
        help="parsed source sentences, CoNLL-U, for one or more names under trees in the settings",
    )
    add_path_argument(parser, "--text", "without trees: plain source sentences, for all but syntactic roles", "?")
    add_path_argument(parser, "--train-source", "token file for subword frequencies")
    add_output_argument(parser, "--out", what="table to write")


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of every training."""
    add_settings_argument(parser)
    add_path_argument(parser, "--data", "folder of the bpe stage")
    add_path_argument(parser, "--references", "plain text of the dev targets, for BLEU")
    parser.add_argument("--seed", type=int, required=True)
    add_output_argument(parser, "--model", what="folder to write the model into", kind=FOLDER)
    add_output_argument(parser, "--history", what="training log to write, JSON lines")
    parser.add_argument(
        "--save-every-seconds",
        type=float,
        default=60.0,
        help="interval between saves, the most work that a killed training loses",
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="processes that share the training, each with its own GPU"
    )
    add_device_arguments(parser)


def add_gate_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the flags of every training with gates."""
    add_training_arguments(parser)
    parser.add_argument(
        "--scope", choices=sorted(GATED_SCOPES), required=True, help="which heads or hidden units get gates"
    )
    parser.add_argument(
        "--target",
        required=True,
        help="a penalty in nats per target token per head, lam-0.05; or a number of heads to keep in the "
        "scope, keep-12, for each kind of attention, keep-4-6-8, or by differentiable subset pruning, dsp-12",
    )
    add_output_argument(parser, "--heads", what="table of the gates to write")
    add_output_argument(parser, "--gates-log", what="log of the gates closing to write, JSON lines")
