"""An update of a training waits for nothing on its device, and one that was stopped goes on as it would have."""

from pathlib import Path

import pytest
import standin
import torch

from heads.model.encoder import to_attention
from heads.training import cross_entropy
from killed_trainings import assert_same
from slow_ones import slow_but
from trainings_elsewhere import KINDS, New, built, on, stopped_and_whole


@pytest.mark.parametrize("kind", slow_but(["bf16", "gates", "budgets", "straight"], KINDS))
def test_no_kind_of_update_waits_for_the_device(
    new_training: New, gpu: torch.device, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cross_entropy, "LEAST_TOKENS", 8)  # so that there are several chunks
    monkeypatch.setitem(cross_entropy.CHUNK, gpu.type, 100)
    training = built(new_training, gpu, kind)
    updates, before = training.prepared(0), standin.operations
    with standin.never_waiting():
        for _ in range(4):  # in the fourth, gates have settled
            row = training.step(*next(updates))
    updates.close()
    assert standin.operations > before + 1000
    assert {row[name].device for name in row if name != "learning_rate"} == {gpu}  # type: ignore[union-attr]
    assert len(training.losses.unread) == 4
    losses = training.losses.read()
    assert len({*losses}) == 4 and all(0 < loss < 9 for loss in losses)


def test_a_padded_batch_is_not_asked_what_is_padded(gpu: torch.device) -> None:
    whole = torch.ones(2, 3, dtype=torch.bool, device=gpu)
    with standin.never_waiting():
        mask = to_attention(whole)
    assert mask is not None and mask.shape == (2, 1, 1, 3)


@pytest.mark.parametrize("target", slow_but(["lam-0.3"], ["lam-0.3", "dsp-7"]))
def test_a_training_that_was_stopped_goes_on_with_the_noise_that_would_have_come(
    new_training: New, gpu: torch.device, tmp_path: Path, target: str
) -> None:
    how = {"dropout": 0.3, "batch_tokens": 90, "plan": {"updates": 5}}
    assert_same(*stopped_and_whole(lambda: on(gpu, new_training(**how), target), tmp_path))
