"""Flags that several stages share, alone and in groups; a group is a dataclass, which stands for its fields."""

from argparse import ArgumentTypeError
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

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
from heads.base.outputs import FOLDER, NEW_FOLDER
from heads.cli._signature import Written


def named_path(text: str) -> tuple[str, Path]:
    """Parse a flag's value such as `gold=dev.conllu`."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise ArgumentTypeError(f"{text!r} is not NAME=PATH, such as gold=dev.conllu")
    return name, Path(path)


def compared_corpus(text: str) -> tuple[str, str]:
    """Parse a flag's value such as `demo=WMT`."""
    experiment, _, corpus = text.rpartition("=")
    if not experiment or corpus not in PAPER_CORPORA:
        raise ArgumentTypeError(f"{text!r} is not EXPERIMENT=CORPUS, with {' or '.join(PAPER_CORPORA)}")
    return experiment, corpus


# Kinds of values.
OutFile = Annotated[Path, Written()]
OutFolder = Annotated[Path, Written(FOLDER)]
NewFolder = Annotated[Path, "-o", Written(NEW_FOLDER)]
MAYBE = {"nargs": "?"}
"""For a flag that a rule gives without a value where there is none."""
MaybePath = Annotated[Path | None, MAYBE]
_PARSED = {"type": settings_given, "metavar": "JSON|FILE"}

# Flags.
Settings = Annotated[Mapping[str, Any], _PARSED, "settings of the stage, as JSON or a YAML file"]
CorpusEntry = Annotated[Mapping[str, Any], _PARSED, "one entry of corpora, as JSON or a YAML file"]
Downloads = Annotated[Path, "folder of the downloaded files"]
Table = Annotated[OutFile, "table to write"]
Workers = Annotated[int, "number of processes"]
TorchThreads = Annotated[int, "CPU threads for torch"]
Baseline = Annotated[Path, "folder of the unpruned run"]
ComparedRuns = Annotated[Sequence[Path], "folders of the runs to compare with it"]
References = Annotated[Path, "plain text of the target side"]
SourceText = Annotated[Path, "plain text of the source sentences"]
TargetText = Annotated[Path, "plain text of the target sentences"]
StartModel = Annotated[Path, "folder of the trained model to start from"]
ForItsShape = Annotated[Path, "folder of the baseline, for its shape"]
Checkpoints = Annotated[Path, "folder of the training's checkpoints"]
KeptCheckpoints = Annotated[OutFolder, "folder to write, with checkpoints of the training"]
SourceBpe = Annotated[Path, "source SentencePiece model"]
TargetBpe = Annotated[Path, "target SentencePiece model"]
AnyTargetBpe = Annotated[Path, "SentencePiece model of the target side, or its labels"]
Grams = Annotated[MaybePath, "what the surgeon read, if it chose: heads that stay make up for the others"]
AnyModel = Annotated[
    str, "folder of a run, exported folder, transformers or Marian folder, name on the hub, or firefox/en-pt"
]
Labels = Annotated[
    Sequence[str],
    {"nargs": "+", "metavar": "LABEL"},
    "labels of a BERT, in its classifier's order, if it does not name them",
]
Quantization = Annotated[str, {"choices": QUANTIZATIONS}, "number format of weights, for ctranslate2"]
Metric = Annotated[
    str,
    {"choices": TEXT_METRICS},
    "score of models that write text; rouge-l, for summaries, needs the extra of the name rouge (bleu)",
]
METRIC = METRIC_NAMES[BLEU].lower()
Tokeniser = Annotated[
    str,
    {"choices": TOKENISERS},
    "sacrebleu's tokeniser for BLEU and ROUGE-L; auto: that for the references' script, such as zh or 13a",
]
Compared = Annotated[
    Sequence[tuple[str, str]],
    {"type": compared_corpus, "metavar": "EXPERIMENT=CORPUS"},
    f"corpus whose published numbers count for an experiment, {' or '.join(PAPER_CORPORA)}; default {WMT}",
]


def tokeniser_named(settings: Mapping[str, Any]) -> str:
    """The tokeniser that the settings name for BLEU, or AUTO; those written by hand may name none."""
    return str(settings.get(TOKENIZE, AUTO))


@dataclass(frozen=True, kw_only=True)
class Languages:
    """The languages of a multilingual model."""

    prefix: Annotated[
        str, 'text before each source, such as ">>ru<<" for OPUS-MT, or "translate English to German: " for T5'
    ] = ""
    source_language: Annotated[str, "for M2M100 (en), NLLB (eng_Latn) or mBART (en_XX)"] = ""
    target_language: Annotated[str, "for M2M100 (de), NLLB (deu_Latn) or mBART (de_DE)"] = ""

    @property
    def pair(self) -> tuple[str, str]:
        """Source and target language; empty if not given."""
        return self.source_language, self.target_language


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a model runs."""

    device: Annotated[str, "auto (a free GPU if there is one), cpu, cuda or cuda:1"] = "auto"
    threads: TorchThreads = 1


@dataclass(frozen=True, kw_only=True)
class Analysis(Machine):
    """A trained model to analyse."""

    settings: Settings
    model: Annotated[Path, "folder of a trained model"]


@dataclass(frozen=True, kw_only=True)
class Measure(Analysis):
    """Heads measured on pairs of token files."""

    source: Annotated[Path, "token file of the source sentences"]
    target: Annotated[Path, "token file of the reference translations"]
    out: Annotated[OutFile, "table of heads to write"]


@dataclass(frozen=True, kw_only=True)
class Masking(Analysis):
    """Translation with masked heads."""

    source: Annotated[Path, "token file of the test sentences"]
    references: Annotated[Path, "plain text of their translations, or labels"]
    target_bpe: AnyTargetBpe

    @property
    def text(self) -> tuple[Path, Path, Path, str]:
        """The files of its text, and the tokeniser that the settings name for BLEU, for `read_text`."""
        return self.source, self.references, self.target_bpe, tokeniser_named(self.settings)


@dataclass(frozen=True, kw_only=True)
class Roles(Analysis):
    """What encoder heads look at."""

    source_bpe: SourceBpe
    trees: Annotated[
        Sequence[tuple[str, Path]],
        {"type": named_path, "metavar": "NAME=PATH"},
        "parsed source sentences, CoNLL-U, for one or more names under trees in the settings",
    ] = ()
    text: Annotated[MaybePath, "without trees: plain source sentences, for all but syntactic roles"] = None
    train_source: Annotated[Path, "token file for subword frequencies"]
    out: Table


@dataclass(frozen=True, kw_only=True)
class Training(Machine):
    """Every training."""

    settings: Settings
    data: Annotated[Path, "folder of the bpe stage"]
    references: Annotated[Path, "plain text of the dev targets, for BLEU"]
    seed: Annotated[int, "seed of all random numbers"]
    model: Annotated[OutFolder, "folder to write the model into"]
    history: Annotated[OutFile, "training log to write, JSON lines"]
    save_every_seconds: Annotated[float, "interval between saves, the most work that a killed training loses"] = 60.0
    processes: Annotated[int, "processes that share the training, each with its own GPU"] = 1


@dataclass(frozen=True, kw_only=True)
class GatedTraining(Training):
    """Every training with gates."""

    scope: Annotated[str, {"choices": sorted(GATED_SCOPES)}, "which heads or hidden units get gates"]
    target: Annotated[
        str,
        "a penalty in nats per target token per head, lam-0.05; or a number of heads to keep in the scope, keep-12, "
        "for each kind of attention, keep-4-6-8, or by differentiable subset pruning, dsp-12",
    ]
    heads: Annotated[OutFile, "table of the gates to write"]
    gates_log: Annotated[OutFile, "log of the gates closing to write, JSON lines"]
