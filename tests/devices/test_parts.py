"""Parts that commands on tiny experiments do not reach, or reach only with what others have made before."""

import pytest
import standin
import torch

from heads.model.encoder import sinusoids
from heads.translation.beam_search import CHUNK, largest


def test_signals_of_positions_are_made_where_they_are_needed_without_waiting(gpu: torch.device) -> None:
    with standin.never_waiting():
        found = sinusoids(5, 6, 2, torch.float32, gpu)
    assert found.device == gpu
    assert torch.equal(found.cpu(), sinusoids(5, 6, 2, torch.float32))


@pytest.mark.parametrize("subwords", [5, 4 * CHUNK + 3])
def test_the_largest_of_many_scores_are_found_without_waiting(gpu: torch.device, subwords: int) -> None:
    scores = torch.rand(2, subwords, generator=torch.Generator().manual_seed(subwords))
    away = scores.to(gpu)
    with standin.never_waiting():
        found = largest(away, 3)
    for one, other in zip(found, scores.topk(3, 1), strict=True):
        assert torch.equal(one.cpu(), other)
