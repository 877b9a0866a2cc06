"""How well and how fast exported models translate: BLEU and CPU seconds in CTranslate2, on one thread.

Run: python benchmarks/exported.py test.en.gz test.de.gz FOLDER... on folders that `heads export --format ctranslate2`
made; the others are compared with the first. Folders take turns, so that a busy machine slows them alike; seconds are
those of the fastest turn, and the ratio is what counts. None of our own code is used.
"""

import argparse
import csv
import gzip
import time
from dataclasses import dataclass, field
from pathlib import Path

import ctranslate2
import sacrebleu
import sentencepiece


@dataclass
class Exported:
    """A model with its vocabularies, its translations, and the CPU seconds of each turn."""

    folder: Path
    seconds: list[float] = field(default_factory=list)
    translations: list[str] = field(default_factory=list)

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

    def translate(self, lines: list[str], beam: int, length_penalty: float) -> None:
        """Translate all lines once, and keep the translations and the CPU seconds."""
        started = time.process_time()
        subwords = [self.source.encode(line, out_type=str) for line in lines]
        found = self.translator.translate_batch(
            subwords, beam_size=beam, length_penalty=length_penalty, disable_unk=True, max_batch_size=32
        )
        self.translations = [self.target.decode(result.hypotheses[0]) for result in found]
        self.seconds.append(time.process_time() - started)


def lines_of(path: Path) -> list[str]:
    """The lines of a gzipped text."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        return [line.rstrip("\n") for line in lines]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("source", type=Path, help="gzipped text")
    parser.add_argument("reference", type=Path, help="gzipped text")
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--length-penalty", type=float, default=1.0, help="exponent of the length")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--tokenize", default="13a", help="sacrebleu's tokeniser, such as zh for Chinese (13a)")
    arguments = parser.parse_args()
    source, reference = lines_of(arguments.source), lines_of(arguments.reference)
    models = [Exported(folder) for folder in arguments.folders]
    for _ in range(arguments.turns):
        for model in models:
            model.translate(source, arguments.beam, arguments.length_penalty)
    print("folder\theads\tweights\tMB\tBLEU\tCPU_seconds\tratio")
    for model in models:
        score = sacrebleu.corpus_bleu(model.translations, [reference], tokenize=arguments.tokenize)
        bleu, seconds = score.score, min(model.seconds)
        size = (model.folder / "model.bin").stat().st_size / 1e6
        cells = (model.heads, model.translator.compute_type, f"{size:.1f}", f"{bleu:.2f}", f"{seconds:.1f}")
        print(model.folder.name, *cells, f"{min(models[0].seconds) / seconds:.2f}", sep="\t")


if __name__ == "__main__":
    main()
