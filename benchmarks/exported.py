"""How good, how large and how fast exported models are in CTranslate2, on one thread: BLEU, chrF, megabytes, ratios.

Run: python benchmarks/exported.py test.en.gz test.de.gz FOLDER... on folders that `heads export --format ctranslate2`
made; the others are compared with the first. BLEU and chrF are of all lines. Speed is that of the first lines, one at a
time and in batches, in which every model has to write as many subwords as the first one writes of its own accord, so
that none gains by shorter outputs. Folders take turns, so that a busy machine slows them alike; a time is that of the
fastest turn, in CPU seconds, and the ratio is what counts. Memory is the most that a process takes that only translates
the lines timed. None of our own code is used.
"""

import argparse
import csv
import gzip
import multiprocessing
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ctranslate2
import sacrebleu
import sentencepiece

BATCH = 32
MEGABYTE = 1e6


@dataclass
class Exported:
    """A model with its vocabularies, its translations, and the CPU seconds of each turn by sentences at once."""

    folder: Path
    seconds: dict[int, list[float]] = field(default_factory=lambda: {1: [], BATCH: []})
    translations: list[str] = field(default_factory=list)
    lengths: list[int] = field(default_factory=list)
    """Subwords of each translation."""

    def __post_init__(self) -> None:
        self.source, self.target = (
            sentencepiece.SentencePieceProcessor(model_file=str(self.folder / f"{side}.model"))
            for side in ("source", "target")
        )
        self.translator = ctranslate2.Translator(str(self.folder), device="cpu", inter_threads=1, intra_threads=1)

    @property
    def heads(self) -> int:
        """The number of heads that are left."""
        with (self.folder / "heads.tsv").open(encoding="utf-8", newline="") as rows:
            return sum(int(row["open"]) for row in csv.DictReader(rows, delimiter="\t"))

    @property
    def megabytes(self) -> float:
        """The size of the file with the weights."""
        return (self.folder / "model.bin").stat().st_size / MEGABYTE

    def translate(self, lines: Sequence[str], beam: int, length_penalty: float) -> None:
        """Translate all lines, and keep the translations."""
        subwords = [self.source.encode(line, out_type=str) for line in lines]
        found = self.translator.translate_batch(
            subwords, beam_size=beam, length_penalty=length_penalty, disable_unk=True, max_batch_size=BATCH
        )
        self.lengths = [len(result.hypotheses[0]) for result in found]
        self.translations = [self.target.decode(result.hypotheses[0]) for result in found]

    def timed(self, lines: Sequence[str], lengths: Sequence[int], size: int, beam: int, length_penalty: float) -> None:
        """Translate lines to these lengths, so many at once, those of similar length together; keep the CPU seconds."""
        order = sorted(range(len(lines)), key=lengths.__getitem__)
        subwords = [self.source.encode(lines[number], out_type=str) for number in order]
        started = time.process_time()
        for first in range(0, len(order), size):
            longest = max(1, lengths[order[min(first + size, len(order)) - 1]])
            self.translator.translate_batch(
                subwords[first : first + size], beam_size=beam, length_penalty=length_penalty,
                min_decoding_length=longest, max_decoding_length=longest,
            )  # fmt: skip
        self.seconds[size].append(time.process_time() - started)


def peak(folder: Path, lines: Sequence[str], beam: int, length_penalty: float) -> float:
    """The most megabytes that a process takes that translates these lines with a model, on Linux."""
    Exported(folder).translate(lines, beam, length_penalty)
    # The highest of all, as the system counts it; getrusage begins with what the parent took.
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1]) * 1024 / MEGABYTE


def lines_of(path: Path) -> list[str]:
    """The lines of a text, plain or gzipped."""
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="text, plain or gzipped")
    parser.add_argument("reference", type=Path, help="text, plain or gzipped")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=1.0, help="exponent of the length")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--timed", type=int, default=100, help="lines that are timed")
    parser.add_argument("--tokenize", default="13a", help="sacrebleu's tokeniser, such as zh for Chinese (13a)")
    arguments = parser.parse_args()
    source, reference = lines_of(arguments.source), lines_of(arguments.reference)
    models, search = [Exported(folder) for folder in arguments.folders], (arguments.beam, arguments.length_penalty)
    for model in models:
        model.translate(source, *search)
    timed, whole = source[: arguments.timed], models[0]
    for _ in range(arguments.turns):
        for size in whole.seconds:
            for model in models:
                model.timed(timed, whole.lengths[: len(timed)], size, *search)
    print("folder\theads\tweights\tMB\tBLEU\tchrF\tsentences_per_second\tratio\tratio_in_batches\tpeak_MB")
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        for model in models:
            bleu = sacrebleu.corpus_bleu(model.translations, [reference], tokenize=arguments.tokenize).score
            chrf = sacrebleu.corpus_chrf(model.translations, [reference]).score
            alone, together = (min(whole.seconds[size]) / min(model.seconds[size]) for size in whole.seconds)
            rate, most = len(timed) / min(model.seconds[1]), pool.apply(peak, (model.folder, timed, *search))
            cells = (f"{model.megabytes:.1f}", f"{bleu:.2f}", f"{chrf:.2f}", f"{rate:.1f}", f"{alone:.2f}")
            weights = model.translator.compute_type
            print(model.folder.name, model.heads, weights, *cells, f"{together:.2f}", f"{most:.0f}", sep="\t")


if __name__ == "__main__":
    main()
