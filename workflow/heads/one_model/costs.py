"""What the heads and hidden units of a model cost in a format: bytes of its weights, and time, on this machine."""

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from statistics import median
from time import process_time

from torch import nn

from heads.analysis.speed import MEGABYTE, clock_of, rounds, source_batches, translate_all
from heads.base.files import UserError
from heads.base.names import FEEDFORWARDS
from heads.config.analyses import SpeedSettings
from heads.interop.bundle import Bundle
from heads.interop.export_encoder import export_any
from heads.interop.families import OURS, export_format
from heads.interop.family import Engine, ExportFormat, Translation
from heads.model.encoder import Encoder
from heads.model.folder import save_folder
from heads.model.head_removal import prune
from heads.model.shape import Place
from heads.model.sublayers import CrossAttention, FeedForwardPart, SelfAttention, SubLayer
from heads.one_model.answered_text import FIRST_OF_DEV, AnsweredSplits
from heads.one_model.request import PruningRequest
from heads.pruning.closed_form import output_of, parts_at
from heads.text.batches import TimedBatch
from heads.text.encoding import tokens_of

BYTES = (1, 2, 4)
"""What a weight may take."""
OF_WEIGHTS = (".safetensors", ".bin", ".onnx", ".data", ".npz")
"""Ends of the names of files with weights; Firefox's, and ONNX's large ones, are among them."""
SPEED = SpeedSettings(batch_sizes=(1, 16), sentences=1, repeats=5, beam=1, length_penalty=0.0)
"""Costs are those in batches of the largest size that the program takes."""
ORIGINAL = "the original model"
FEW, MANY = 8, 32
"""How many sentences are translated, in smaller batches and in the largest ones."""


class Costs:
    """Costs of one model's heads and hidden units in a format."""

    def __init__(self, whole: Bundle, texts: AnsweredSplits, request: PruningRequest) -> None:
        """whole: with all heads and units, on the device of the texts. request: says what may go, and the format."""
        self.whole, self.model, self.texts, self.request, self.device = whole, whole.model, texts, request, texts.device

    def counts(self, place: Place) -> bool:
        """Whether a head or unit that is gone saves anything."""
        return place[0] in FEEDFORWARDS or self.heads_alike is not None

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention, and the feed-forward stacks, that lose heads or units."""
        return self.request.kinds(heads_save=self.heads_alike is not None)

    @cached_property
    def export_format(self) -> ExportFormat | None:
        """The format; None: our own folder."""
        return export_format(self.request.format, self.whole.family)

    @cached_property
    def engine(self) -> Engine | None:
        """The program in which models are timed; None: our own search."""
        engine = self.export_format.engine if self.export_format else None
        return engine if engine and engine.reads(self.model.shape, self.whole.came_with) else None

    @property
    def one_width(self) -> tuple[tuple[str, ...], ...]:
        """Groups of feed-forward stacks whose layers all have as many hidden units in the format."""
        return self.export_format.one_width if self.export_format else ()

    @property
    def one_number(self) -> tuple[tuple[str, ...], ...] | None:
        """Groups of kinds of attention whose layers all have as many heads in the format; None: all it ever had."""
        return self.export_format.one_number if self.export_format else ()

    @property
    def heads_alike(self) -> tuple[tuple[str, ...], ...] | None:
        """Groups of kinds of attention whose layers all lose equally many heads; None: heads that go save nothing.

        They save nothing where a format has one number of heads for layers that differ already, or will, as a number is
        asked for and heads go wherever least is lost.
        """
        anywhere = self.request.keeps_a_number and not self.request.uniform
        return None if self.one_number and (anywhere or uneven(self.model, self.one_number)) else self.one_number

    @property
    def alike(self) -> tuple[tuple[str, ...], ...]:
        """Groups of kinds of sub-layers that all lose equally many heads, or units, for the format."""
        return (*(self.heads_alike or ()), *self.one_width)

    @property
    def timed_in(self) -> str:
        """The name of that program."""
        return self.engine.name if self.engine else "PyTorch"

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """How many sentences it is given at once, smallest number first."""
        return SPEED.batch_sizes[:1] if self.engine and self.engine.line_by_line else SPEED.batch_sizes

    @property
    def original(self) -> Bundle:
        """The model with all its subwords: the given one, unless its vocabulary was made smaller."""
        return self.texts.model

    @cached_property
    def faster_already(self) -> float:
        """How many times as fast as the original model the given one is."""
        return self.speeds({"": self.model})[""][0] if self.whole is not self.original else 1.0

    @cached_property
    def whole_bytes(self) -> int:
        """Bytes of the weights of the whole model in the format."""
        return self.bytes_in(self.whole)

    @cached_property
    def original_bytes(self) -> int:
        """The same of the model with all its subwords."""
        return self.bytes_in(self.original) if self.whole is not self.original else self.whole_bytes

    def bytes_in(self, model: Bundle) -> int:
        """Bytes of the weights of a model in the format."""
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "exported"
            if self.request.format == OURS:  # a folder of ours is not exported as the same again
                out.mkdir()
                save_folder(model.model, out, model.facts, {})
            else:
                export_any(model.on("cpu"), out, self.request.format, **self.request.options)
            return weights_in(out)

    def bytes(self, place: Place) -> float:
        """Bytes of one head or unit of a sub-layer."""
        if not self.counts(place):
            return 0.0
        part = self.parts[place]
        output, groups = output_of(part)
        assert isinstance(part, FeedForwardPart | SelfAttention | CrossAttention)
        maps: nn.Module = part.feedforward if isinstance(part, FeedForwardPart) else part.attention
        own = sum(value.numel() for value in maps.parameters()) - (0 if output.bias is None else output.bias.numel())
        return own / groups * self.bytes_of_a_weight

    @cached_property
    def bytes_of_a_weight(self) -> int:
        """What a weight takes in the format."""
        whole = sum(value.numel() for value in self.model.parameters())
        # The beginning of a small model's file is as long as its weights.
        return min(BYTES, key=lambda number: abs(number - self.whole_bytes / whole))

    def megabytes_of(self, model: Encoder) -> float:
        """Megabytes that a model with fewer heads or units takes."""
        left = parts_at(model, self.kinds)
        gone = {place: output_of(part)[1] - output_of(left[place])[1] for place, part in self.parts.items()}
        return (self.whole_bytes - sum(number * self.bytes(place) for place, number in gone.items())) / MEGABYTE

    def time(self, place: Place) -> float:
        """The time of one head or unit of a sub-layer, as a share of that of the whole model."""
        return self.times.get(place[0], 0.0)

    @cached_property
    def parts(self) -> dict[Place, SubLayer]:
        """The sub-layers that may lose some."""
        return {place: part for place, part in parts_at(self.model, self.kinds).items() if output_of(part)[1]}

    @cached_property
    def times(self) -> dict[str, float]:
        """By kind, the time of a head or unit: what is saved without half of them in all layers, shared among these.

        Those that lose equally many in the format lose their halves together, as alone they save nothing there.
        """
        halves, gone = dict[str, Encoder](), dict[str, int]()
        kinds = {kind: group for group in self.alike for kind in group}
        for group in dict.fromkeys(kinds.get(kind, (kind,)) for kind in self.kinds):
            sizes = {
                kind: [output_of(part)[1] for place, part in self.parts.items() if place[0] == kind] for kind in group
            }
            without = sum(size // 2 for of_kind in sizes.values() for size in of_kind)
            if self.counts((group[0], 0)) and without:
                stays = {
                    kind: [[number < size - size // 2 for number in range(size)] for size in of_kind]
                    for kind, of_kind in sizes.items()
                }
                name = " ".join(group)
                halves[name], gone[name] = prune(self.model, stays), without
        found = self.speeds(halves, against=self.whole)
        return {
            kind: max(0.0, 1 - 1 / speed) / gone[name] for name, (speed, *_) in found.items() for kind in name.split()
        }

    def speeds(
        self,
        models: Mapping[str, Encoder],
        size: int | None = None,
        repeats: int = SPEED.repeats,
        against: Bundle | None = None,
    ) -> dict[str, tuple[float, float, float]]:
        """How many times as fast as the original model each of others is: the median, least and most of the repeats.

        Models are compared round by round, so that what else the machine does affects both.

        models: in the subwords of the whole one. size: sentences at once; default: the most. repeats: rounds after a
        first one, in which all is new. against: another model in place of the original one. All with the same subwords
        write equally many of them, in the format's own program if there is one and it is installed, or else in our
        search.
        """
        if not models:
            return {}
        first, size = against or self.original, size or self.batch_sizes[-1]
        with tempfile.TemporaryDirectory() as folder:
            own = self.batches(size, self.whole)
            theirs = own if first is self.whole else self.batches(size, first)
            work = {ORIGINAL: self.translating(first, theirs, Path(folder) / "original")}
            for number, (name, model) in enumerate(models.items()):
                smaller = replace(self.whole, model=model)
                work[name] = self.translating(smaller, own, Path(folder) / str(number))
            clock = process_time if self.engine or self.device.type == "cpu" else clock_of(self.device)
            seconds = rounds(work, 1 + repeats, clock)
        found = {}
        for name in models:
            _, *ratios = (slow / fast for slow, fast in zip(seconds[ORIGINAL], seconds[name], strict=True))
            found[name] = median(ratios), min(ratios), max(ratios)
        return found

    def translating(self, model: Bundle, batches: Sequence[TimedBatch], folder: Path) -> Callable[[], object]:
        """A function that lets a model answer some of the sentences on which sizes are compared."""
        if self.engine is None:
            return partial(translate_all, model.model, batches, SPEED)
        folder.mkdir()
        own, vocabularies = model.on("cpu").translates()
        written = Translation(own, vocabularies, (), (1, 0.0), model.came_with, {}, self.request.quantization)
        return self.engine.translating(written, batches, folder)

    def batches(self, size: int, model: Bundle) -> list[TimedBatch]:
        """Some of these sentences, so many at once, and how long a model's translations of them are."""
        source = tokens_of(self.texts[FIRST_OF_DEV].sentences, model.source)
        most = min(MANY if size == self.batch_sizes[-1] else FEW, len(source))
        settings = SPEED.model_copy(update={"sentences": most})
        return source_batches(source, model.model, settings, min(most, size), self.device)


def uneven(model: Encoder, groups: Iterable[Iterable[str]]) -> bool:
    """Whether layers of one of these groups of kinds of attention differ in their number of heads."""
    heads = model.shape.live_heads
    return any(len({len(layer) for kind in group for layer in heads[kind]}) > 1 for group in groups)


def refuse_uniform(model: Bundle, request: PruningRequest) -> None:
    """Raise UserError if layers are to lose equally many heads where that saves nothing."""
    known = export_format(request.format, model.family)
    groups = known.one_number if known else None
    if request.uniform and not groups:
        raise UserError(
            "--uniform is for a format that fills up layers with fewer heads, such as ctranslate2: leave it out."
        )
    if request.uniform and uneven(model.model, groups or ()):
        raise UserError(
            "--uniform is not possible, as layers of the model differ in their number of heads: leave it out."
        )


def weights_in(folder: Path) -> int:
    """Bytes of all files with weights in an exported folder."""
    return sum(
        path.stat().st_size
        for path in folder.iterdir()
        if path.suffix in OF_WEIGHTS and not path.name.startswith("lex")
    )
