"""Files cut off or with a single bit flipped: detected and named, never trusted."""

import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from test_killed_trainings import same
from workshop import Command, Fault, training_words

from heads.base.files import UserError
from heads.model.checkpoint import load_tensors
from heads.model.folder import load_folder
from heads.model.shape import facts_of
from heads.text.vocabulary import Tokens, Vocabulary


def damaged(content: bytes, *, most: int = 150) -> Iterator[bytes]:
    """Copies of a file, each cut off or with one bit flipped, at places all over it."""
    chance = random.Random(len(content))
    places = sorted({0, 1, len(content) - 1, *(chance.randrange(len(content)) for _ in range(most))})
    for place in places:
        yield content[:place]
        flipped = bytearray(content)
        flipped[place] ^= 1 << chance.randrange(8)
        yield bytes(flipped)


def never_believed(path: Path, read: Callable[[], dict[str, Any]]) -> int:
    """Damage a file in many ways; reading it must raise a one-line UserError that names it, or give what it gave.

    More may be read: if a bit of the name of a checksum flips, it is one more fact. Return the number of errors.
    """
    whole, expected, errors = path.read_bytes(), read(), 0
    for content in damaged(whole):
        path.write_bytes(content)
        try:
            found = read()
        except UserError as told:
            error = str(told)
        else:
            assert found | expected == found, content
            continue
        assert str(path.parent) in error and path.name in error and "\n" not in error
        errors += 1
    path.write_bytes(whole)
    return errors


@pytest.fixture
def copied(results: Path, undisturbed: Path, tmp_path: Path) -> Path:
    """A folder with one file of each kind, which a test may damage."""
    shutil.copytree(undisturbed, tmp_path, dirs_exist_ok=True)
    for name in ("bpe/source.model", "bpe/source.json", "bpe/train.source.safetensors"):
        shutil.copy(results / "tiny" / name, tmp_path)
    return tmp_path


def vocabulary(folder: Path) -> dict[str, Any]:
    """What is read of a SentencePiece model."""
    return {"model": Vocabulary(folder / "source.model").processor.serialized_model_proto()}


def tokens(folder: Path) -> dict[str, Any]:
    """What is read of a shard of a corpus."""
    found = Tokens(folder / "train.source.safetensors")
    return {"ids": found.ids.tobytes(), "offsets": found.offsets.tobytes()}


def weights(folder: Path) -> dict[str, Any]:
    """What is read of a model."""
    return {name: value.numpy().tobytes() for name, value in load_folder(folder).state_dict().items()}


@pytest.mark.parametrize(
    ("name", "read", "errors"),
    [
        ("source.model", vocabulary, 150),
        ("source.json", vocabulary, 150),
        ("train.source.safetensors", tokens, 200),
        ("model.safetensors", weights, 200),
        ("model.json", facts_of, 200),
    ],
)
def test_a_damaged_file_is_named_or_as_it_was(
    copied: Path, name: str, read: Callable[[Path], dict[str, Any]], errors: int
) -> None:
    assert never_believed(copied / name, lambda: read(copied)) > errors


@pytest.mark.parametrize("gone", ["source.model", "source.json"])
def test_a_sentencepiece_model_is_nothing_without_its_checksum(copied: Path, gone: str) -> None:
    assert len(Vocabulary(copied / "source.model")) == 120
    (copied / gone).unlink()
    with pytest.raises(UserError, match=r"source\.model .* source\.json beside it .*: delete both and run the stage"):
        Vocabulary(copied / "source.model")


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.001, 0.7])
@pytest.mark.parametrize("name", ["state", "snapshot-00000009"])
@pytest.mark.parametrize("flip", [False, True])
def test_a_training_whose_state_or_snapshot_is_damaged_says_so_and_starts_over_to_the_same_bits(
    results: Path, undisturbed: Path, tmp_path: Path, name: str, share: float, *, flip: bool
) -> None:
    words, state = (
        training_words("baseline", results, tmp_path / "run"),
        tmp_path / f"run/unfinished/{name}.safetensors",
    )
    assert Command(words, tmp_path / "said.txt", Fault(kill_before=11)).end()[0] == -signal.SIGKILL
    content = bytearray(state.read_bytes())
    place = int(share * len(content))
    content[place] ^= 4
    state.write_bytes(content if flip else content[:place])
    status, said = Command(words, tmp_path / "said.txt").end()
    assert status == 0 and f"a file in {state.parent} is damaged: the training starts over\n" in said
    same(undisturbed, tmp_path / "run")


@pytest.mark.slow
def test_a_training_names_the_damaged_file_that_it_reads(results: Path, tmp_path: Path) -> None:
    copy = shutil.copytree(results, tmp_path / "results")
    words = training_words("baseline", copy, tmp_path / "run")
    for name in ("bpe/target.model", "bpe/train.source.safetensors"):
        path = copy / "tiny" / name
        whole = path.read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
        status, said = Command(words, tmp_path / "said.txt").end()
        assert status == 1 and re.fullmatch(rf"error: \S*{name} .*\n", said), said
        path.write_bytes(whole)


def test_weights_kept_from_a_moment_are_checked_as_a_model_is(copied: Path) -> None:
    path = next((copied / "checkpoints").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"\x01")
    with pytest.raises(UserError, match=r"point-00000004\.safetensors is missing or damaged .its checksum is wrong"):
        load_tensors(path)
