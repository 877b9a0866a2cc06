"""Tests that need a GPU: its updates equal those of the CPU, wait for nothing, and resume where they were stopped."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.translation.beam_search import beam_search
from killed_trainings import weights
from trainings_elsewhere import KINDS, New, built, on, stopped_and_whole

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here, see benchmarks/gpu/README.md"),
]
GPU = torch.device("cuda")


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_of_update_waits_for_the_gpu(new_training: New, kind: str) -> None:
    training = built(new_training, GPU, kind)
    updates = training.prepared(0)
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _ in range(5):
            training.step(*next(updates))
    finally:
        torch.cuda.set_sync_debug_mode("default")
        updates.close()
    assert len(training.losses.read()) == 5


@pytest.mark.parametrize("how", [{}, {"micro_batch_tokens": 30}, {"optimizer": "muon"}], ids=str)
def test_updates_on_a_gpu_are_those_of_the_cpu_up_to_rounding(new_training: New, how: dict[str, Any]) -> None:
    """Muon's own products are in bf16, so that its weights agree only roughly."""
    found = []
    for device in (torch.device("cpu"), GPU):
        # With the usual epsilon Adam's first steps are signs, and rounding decides those of the smallest gradients.
        training = on(device, new_training(batch_tokens=90, adam_epsilon=0.01, **{"micro_batch_tokens": 90, **how}))
        for members in (np.arange(9), np.arange(20, 40)):
            training.step(members)
        found.append((training.losses.read(), weights(training)))
    assert found[1][0] == pytest.approx(found[0][0], rel=1e-3 if how.get("optimizer") else 1e-5)
    for name, value in found[0][1].items():
        tolerance = 0.02 if how.get("optimizer") else 1e-4
        torch.testing.assert_close(found[1][1][name], value, rtol=tolerance, atol=tolerance, msg=name)


def test_bf16_on_a_gpu_learns_like_fp32(new_training: New) -> None:
    """While the loss falls by a third; after some 20 updates rounding decides the rest, either way, by up to 7 %."""
    losses: list[list[float]] = []
    for precision in ("fp32", "bf16"):
        training = on(GPU, new_training(precision=precision))
        losses.append([])
        for update in range(10):
            training.step(np.arange(20) + update % 4)
            losses[-1].append(training.losses.read()[-1])
    full, half = losses
    assert full[-1] < 0.8 * full[0] and half != full
    assert half == pytest.approx(full, rel=0.005)


@pytest.mark.parametrize("target", ["", "lam-0.3", "dsp-7"])
def test_a_training_that_was_stopped_goes_on_with_the_noise_that_would_have_come(
    new_training: New, tmp_path: Path, target: str
) -> None:
    """Without the saved noise states, dropout and gates would differ, and weights by far more than rounding."""

    how = {"dropout": 0.3, "batch_tokens": 90, "plan": {"updates": 5}}
    resumed, whole = stopped_and_whole(lambda: on(GPU, new_training(**how), target), tmp_path)
    for name, value in weights(whole).items():
        torch.testing.assert_close(weights(resumed)[name], value, rtol=1e-3, atol=1e-4, msg=name)


def test_a_bad_loss_on_a_gpu_names_its_update_although_it_is_found_later(new_training: New) -> None:
    training = on(GPU, new_training())
    for update in range(6):
        if update == 3:
            with torch.no_grad():
                training.model.projection.bias[5] = torch.nan
        training.step(np.arange(9))
    with pytest.raises(FloatingPointError, match=r"the loss is nan at update 4$"):
        training.state()


def test_a_search_on_a_gpu_finds_what_it_finds_on_the_cpu(
    tiny_model: Callable[..., Transformer], tiny_batch: Batch
) -> None:
    found = []
    for device in (torch.device("cpu"), GPU):
        model, batch = tiny_model().to(device), tiny_batch.to(device)
        found.append(beam_search(model, batch.source, batch.source_mask, beam=4, length_penalty=0.6))
    assert found[0] == found[1] and any(found[0])
