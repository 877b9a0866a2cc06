"""The files of a built corpus: their names, and how to write either all of them or none."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from heads.base.checksums import sha256_of
from heads.base.files import UserError
from heads.base.names import OUT_OF_DOMAIN, ROLES, SIDES, SPLITS
from heads.config.corpus_parts import FileSpec
from heads.corpus.clean import Pair

FILTER_TABLE = "filters.tsv"


def text_name(split: str, side: str) -> str:
    """The file name of one side of a split."""
    return f"{split}.{side}.txt"


OUTPUT_NAMES = (
    *(text_name(split, side) for split in SPLITS for side in SIDES),
    text_name(ROLES, "source"),
    FILTER_TABLE,
)
OUT_OF_DOMAIN_NAMES = tuple(text_name(OUT_OF_DOMAIN, side) for side in SIDES)


@contextmanager
def staged(out_folder: Path, names: Sequence[str]) -> Iterator[Path]:
    """A temporary folder in `out_folder`; if the block succeeds, its files `names` move up to `out_folder`."""
    # Named after the first file, since several jobs of one corpus may run at once.
    stage = out_folder / f".building-{names[0]}"
    shutil.rmtree(stage, ignore_errors=True)
    stage.mkdir(parents=True)
    try:
        yield stage
        for name in names:
            (stage / name).replace(out_folder / name)
    finally:
        shutil.rmtree(stage)


def check_file(file: FileSpec, downloads: Path) -> None:
    """Raise UserError for a missing file, or a local file with the wrong checksum."""
    place = file.on_disk(downloads)
    if not place.is_file():
        way = "run the fetch command for it" if file.url else "put it there or correct its name in the corpus"
        raise UserError(f"{file} is not at {place}: {way}.")
    if file.path and file.sha256 and sha256_of(place) != file.sha256:
        raise UserError(f"{place} does not have the sha256 {file.sha256}: get the right file or correct the checksum.")


def write_split(stage: Path, split: str, pairs: Iterable[Pair]) -> int:
    """Write both sides of a split, one sentence per line, and return the number of pairs."""
    count = 0
    source_path, target_path = (stage / text_name(split, side) for side in SIDES)
    with (
        source_path.open("w", encoding="utf-8", newline="\n") as sources,
        target_path.open("w", encoding="utf-8", newline="\n") as targets,
    ):
        for source, target in pairs:
            sources.write(f"{source}\n")
            targets.write(f"{target}\n")
            count += 1
    return count


def check_splits(
    languages: str, hold_out: Mapping[str, int], tallies: Mapping[str, Counter[str]], filters: Sequence[str]
) -> None:
    """Raise UserError for an empty split, or for a corpus that is too small for its hold-out."""
    for split, size in hold_out.items():
        if tallies[split]["read"] < size:
            raise UserError(
                f"The {languages} corpus has too few distinct sources to hold out {size} for {split}: ask for fewer."
            )
    for split in SPLITS:
        tally = tallies[split]
        removed = {name: tally[name] for name in filters}
        if tally["read"] == sum(removed.values()):
            worst = max(removed, key=lambda name: removed[name])
            reason = f", {removed[worst]} of them by the filter {worst}" if removed[worst] else ""
            raise UserError(
                f"The {split} split of the {languages} corpus is empty: {tally['read']} pairs were read and all "
                f"were taken out{reason}; check its files and loosen cleaning."
            )
