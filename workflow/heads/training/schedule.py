"""The plan of one training, its learning rate, and what pruning adds to it."""

from dataclasses import dataclass, field

import torch
from torch import nn

from heads.config.trainings import LengthSettings, TrainingSettings
from heads.pruning.gates import TrainableGates
from heads.pruning.penalty import Penalty
from heads.training.distributed import Processes
from heads.training.optimizers import NO_NEW_WEIGHTS, NewWeights


@dataclass(frozen=True, slots=True)
class TrainingPlan:
    """One training: settings, length, seed, and the number of updates that its schedule has already done."""

    training: TrainingSettings
    length: LengthSettings
    seed: int
    updates_before: int
    device: torch.device
    checkpoint_updates: tuple[int, ...] = ()
    """Updates after which the weights are kept."""
    processes: Processes = field(default_factory=Processes)
    new: NewWeights = NO_NEW_WEIGHTS
    seconds: float = 0.0
    """The time that it may take, which then decides how many of the updates are made; 0: any."""

    def rate(self, update: int) -> float:
        """The learning rate of the model's parameters in this update, counted from 1."""
        settings, before = self.training, self.updates_before
        rate = learning_rate(before + update, settings) * decay(update, self.length.updates, settings.decay_share)
        return rate * min(1.0, update / settings.rewarm_updates) if before and settings.rewarm_updates else rate


@dataclass(frozen=True, slots=True)
class Pruning:
    """What fine-tuning with gates adds to a training."""

    gates: TrainableGates
    penalty: Penalty
    learning_rate: float
    record_every: int
    updates: int
    """Number of updates in which the gates learn; afterwards they are those of the finished model."""
    frozen: tuple[nn.Module, ...]
    """Parts of the model that do not learn: all of the decoder when only the encoder is pruned."""


def learning_rate(update: int, settings: TrainingSettings) -> float:
    """Learning rate with linear warm-up to the peak, then inverse square root decay (Voita et al. 2019, sec. 3.2)."""
    warmup = settings.warmup_updates
    return float(settings.peak * min((warmup / update) ** 0.5, update / warmup))


def decay(update: int, updates: int, share: float) -> float:
    """Factor on the learning rate: one, then linear decay towards zero over the last `share` of all updates."""
    return min(1.0, (updates - update + 1) / (share * updates + 1)) if share else 1.0


def averaged(update: int, length: LengthSettings) -> bool:
    """Whether weights after an update may be among the last snapshots, which are averaged; a stop may come early."""
    every, last = length.average_every, length.average_last
    return last > 1 and update % every == 0 and (length.patience > 0 or update > length.updates - last * every)
