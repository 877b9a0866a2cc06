"""Parts that commands on tiny experiments do not reach, or reach only with what others have made before."""

from collections.abc import Callable

import pytest
import standin
import torch

from heads.model.encoder import sinusoids
from heads.model.shape import LEARNED
from heads.model.transformer import Transformer
from heads.text.batches import Batch
from heads.translation.beam_search import CHUNK, NEVER, beam_search, largest
from slow_ones import slow_but


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


OF_MANY_LANGUAGES = {"positions": LEARNED, "max_positions": 9, "start_subword": 2, "first_subword": 7}
"""What models of many languages have that others do not."""


@pytest.mark.parametrize("early_stopping", slow_but([False], [NEVER, False, True]))
@pytest.mark.parametrize("shape", [{}, OF_MANY_LANGUAGES], ids=["plain", "many languages"])
def test_a_search_finds_what_it_finds_on_the_cpu(
    gpu: torch.device,
    tiny_model: Callable[..., Transformer],
    tiny_batch: Batch,
    shape: dict[str, object],
    early_stopping: object,
) -> None:
    found = []
    for device in (torch.device("cpu"), gpu):
        model, batch = tiny_model(**shape).to(device), tiny_batch.to(device)
        how = {"beam": 3, "length_penalty": 1.2, "length_offset": 0, "early_stopping": early_stopping}
        found.append(beam_search(model, batch.source, batch.source_mask, **how))  # type: ignore[arg-type]
    assert found[0] == found[1] and any(found[0])
