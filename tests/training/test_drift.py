"""An encoder is trained towards the vectors that it started with, however often it is resumed."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from bert_models import EXAMPLES, save_bert, save_tokeniser
from heads.config.trainings import LengthSettings, TrainingSettings
from heads.interop.bert.importing import EMBEDDING
from heads.interop.opening import import_any
from heads.model.encoder_only import SentenceEncoder
from heads.model.folder import load_encoder_only
from heads.text.batches import Examples
from heads.text.encoding import encode_file, vocabulary_or_labels
from heads.text.vocabulary import Tokens
from heads.training.evaluation import fidelity
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan

CPU = torch.device("cpu")


@pytest.fixture
def training(tmp_path: Path, training_settings: Callable[..., TrainingSettings]) -> Training:
    """A training of a tiny encoder without dropout, on the sentences of the examples."""
    save_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs", "BertModel", hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    texts = {"source": [line.split("\t")[0] for line in EXAMPLES], "target": [*EMBEDDING] * len(EXAMPLES)}
    for side, lines in texts.items():
        (tmp_path / f"{side}.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        vocabulary = vocabulary_or_labels(tmp_path / "ours" / f"{side}.model")
        encode_file(tmp_path / f"{side}.txt", vocabulary, tmp_path / f"{side}.safetensors")
    source, target = (Tokens(tmp_path / f"{side}.safetensors") for side in texts)
    settings = training_settings(batch_tokens=15, micro_batch_tokens=15, learning_rate=0.0707107, warmup_updates=2)
    plan = TrainingPlan(settings, LengthSettings(updates=4, patience=0, average_last=1, average_every=1), 7, 0, CPU)
    return Training(load_encoder_only(tmp_path / "ours"), Examples(source, target, 40), plan)


def gates_with(open_heads: list[list[float]]) -> dict[str, list[torch.Tensor]]:
    return {"enc_self": [torch.tensor(layer) for layer in open_heads], "dec_self": [], "dec_enc": []}


def slow(training: Training, gates: dict[str, list[torch.Tensor]] | None) -> list[float]:
    """One minus the cosine for each sentence, one after another and unpadded."""
    assert isinstance(training.teacher, SentenceEncoder)
    found = []
    with torch.no_grad():
        for ids in (training.pairs.source[number] for number in range(len(training.pairs.source.lengths))):
            source = torch.tensor([ids.tolist()])
            mask = torch.ones_like(source, dtype=torch.bool)
            one = training.model(source, mask, None, gates)[0, 0].numpy()
            other = training.teacher(source, mask)[0, 0].numpy()
            found.append(1 - float(one @ other / np.linalg.norm(one) / np.linalg.norm(other)))
    return found


def test_the_loss_is_one_minus_the_cosine_with_the_vectors_of_the_first_model(training: Training) -> None:
    members = np.arange(len(training.pairs.index))
    batch = training.pairs.batch(members)
    assert training.loss_sum(batch, None).item() == pytest.approx(0, abs=1e-5)
    gates = gates_with([[1.0, 0.0], [0.5, 1.0], [0.0, 0.0]])
    expected = slow(training, gates)
    assert max(expected) > 0.001
    assert training.loss_sum(batch, gates).item() == pytest.approx(sum(expected), rel=1e-4)


def test_what_is_aimed_at_stays_while_the_model_moves_and_is_taken_up_again(training: Training) -> None:
    members = training.pairs.index[:3]
    gates = gates_with([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    assert training.teacher is not None
    before = {name: value.clone() for name, value in training.teacher.state_dict().items()}
    for _ in range(2):
        training.cross_entropy(members, training.prepare(members)[1], gates)
        training.optimizers.step(0.01)
    training.restore(*training.state())
    weights = training.model.state_dict()
    assert all(torch.equal(value, before[name]) for name, value in training.teacher.state_dict().items())
    assert not all(torch.equal(value, before[name]) for name, value in weights.items())


def test_dev_loss_is_its_mean_and_the_cosine_is_told_in_percent(training: Training) -> None:
    gates = gates_with([[1.0, 0.0], [1.0, 1.0], [1.0, 0.0]])
    assert training.teacher is not None
    scores = fidelity(training.pairs, training.teacher, training.plan.training, CPU, training.model.eval(), gates)
    expected = float(np.mean(slow(training, gates)))
    assert scores["dev_loss"] == pytest.approx(expected, rel=1e-4)
    assert scores["dev_cosine"] == pytest.approx(100 * (1 - expected), abs=0.006)
