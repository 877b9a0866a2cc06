"""The plan of one training, and its learning rate."""

from dataclasses import dataclass, field

import torch

from heads.config.trainings import LengthSettings, TrainingSettings
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
    keep_at: tuple[int, ...] = ()
    """Updates after which the weights are kept."""
    processes: Processes = field(default_factory=Processes)
    new: NewWeights = NO_NEW_WEIGHTS

    def rate(self, update: int) -> float:
        """The learning rate of the model's parameters in this update, counted from 1."""
        settings, before = self.training, self.updates_before
        rate = learning_rate(before + update, settings) * decay(update, self.length.updates, settings.decay_share)
        return rate * min(1.0, update / settings.rewarm_updates) if before and settings.rewarm_updates else rate


def learning_rate(update: int, settings: TrainingSettings) -> float:
    """Learning rate with linear warm-up to the peak, then inverse square root decay (Voita et al. 2019, sec. 3.2)."""
    warmup = settings.warmup_updates
    return float(settings.peak * min((warmup / update) ** 0.5, update / warmup))


def decay(update: int, updates: int, share: float) -> float:
    """Factor on the learning rate: one, then linear decay towards zero over the last `share` of all updates."""
    return min(1.0, (updates - update + 1) / (share * updates + 1)) if share else 1.0
