"""The one training loop: baseline, fine-tuning with gates, and training a pruned shape from scratch.

Loss = mean label-smoothed cross-entropy of a target token in nats + lambda * sum over heads of P(gate > 0), so lambda
is in nats per target token per head (Voita et al. 2019, sec. 6.1, with the sum over heads as the paper writes it).

A training can be killed at any moment: its state lies in a folder `unfinished` beside its outputs and, on the CPU, a
resumed run ends with the same weights, bit for bit, as one that was never stopped.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heads.base.pool import ahead
from heads.config.trainings import LengthSettings
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.pruning.gates import TrainableGates
from heads.pruning.penalty import Penalty
from heads.text.batches import Batch, Pairs, cut, moved
from heads.training.checkpointing import Unfinished
from heads.training.cross_entropy import smoothed_cross_entropy
from heads.training.devices import LENGTH_MULTIPLE, products_dtype
from heads.training.drift import beginning, drift
from heads.training.losses import Losses
from heads.training.optimizers import Optimizers
from heads.training.schedule import TrainingPlan

Update = tuple[NDArray[np.int64], list[Batch]]
"""The pairs of an update, and the micro-batches of this process, on the CPU."""
Row = dict[str, float | Tensor]
"""What an update logs; a tensor [] may still be on its way."""
AHEAD = 2
"""Updates whose batches are made while a GPU works on another."""
Evaluate = Callable[[Encoder, Gates | None], dict[str, float]]
"""Scores a model, with binary gates if it has any, on held-out data; must return `dev_loss`."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """What fine-tuning with gates adds to a training."""

    gates: TrainableGates
    penalty: Penalty
    learning_rate: float
    record_every: int
    updates: int
    """In which gates learn; after them they are those of the finished model."""
    frozen: tuple[nn.Module, ...]
    """Parts of the model that do not learn: all of the decoder when only the encoder is pruned."""


class Training:
    """A model being trained; everything that a resumed run needs is in `state`."""

    def __init__(self, model: Encoder, pairs: Pairs, plan: TrainingPlan, pruning: Pruning | None = None) -> None:
        self.model, self.pairs, self.plan, self.pruning = model.to(plan.device), pairs, plan, pruning
        self.update, self.best, self.waited, self.losses = 0, math.inf, 0, Losses()
        # What a GPU found is read no sooner than it is needed; it goes on with the next update meanwhile.
        self.waits = plan.device.type == "cpu"
        # Another stream than dropout's, which starts from the seed itself.
        self.generator = torch.Generator(plan.device).manual_seed(plan.seed + 1_000_003)
        self.seed_dropout()
        settings = plan.training
        self.dtype = products_dtype(settings.precision, plan.device)
        if pruning:
            pruning.gates.to(plan.device)
            pruning.penalty.to(plan.device)
            for module in pruning.frozen:
                module.requires_grad_(requires_grad=False)
        gates, gate_rate = (pruning.gates.parameters(), pruning.learning_rate) if pruning else ((), 0.0)
        self.first = beginning(self.model, plan.device)
        self.optimizers = Optimizers(model, settings, gates, gate_rate, self.dtype, plan.new)

    def seed_dropout(self) -> None:
        """Noise of its own for each process, since they see different sentences."""
        torch.manual_seed(self.plan.seed + 1_000_033 * (self.update + 1) * self.plan.processes.rank)

    def updates(self, first: int) -> Iterator[NDArray[np.int64]]:
        """The pairs of each update from number `first` on, epoch after epoch, the same for the same seed."""
        epoch, skip = 0, first
        while True:
            order = self.pairs.epoch(self.plan.training.batch_tokens, self.plan.seed, epoch)
            yield from order[skip:]
            skip, epoch = max(0, skip - len(order)), epoch + 1

    def prepared(self, first: int) -> Generator[Update]:
        """What `step` is given for each update from number `first` on; close it when no more are wanted."""
        updates = self.updates(first)
        # A thread of its own gains nothing where it takes its time from the processor that does the updates.
        yield from map(self.prepare, updates) if self.waits else ahead(self.prepare, updates, AHEAD)

    def prepare(self, members: NDArray[np.int64]) -> Update:
        """The update on these pairs."""
        settings, processes = self.plan.training, self.plan.processes
        part_tokens = processes.part_tokens(settings.batch_tokens, settings.micro_batch_tokens)
        parts = processes.share(cut(members, self.pairs.source.lengths, part_tokens))
        multiple = LENGTH_MULTIPLE[self.plan.device.type]
        return members, [self.pairs.batch(part, multiple) for part in parts]

    def step(self, members: NDArray[np.int64], batches: Sequence[Batch] | None = None, /) -> Row:
        """One update on these pairs; returns the cross-entropy in nats a target token and what else is logged.

        The objective is cross-entropy + penalty: the first of the model with one sample of the gates, in micro-batches,
        the second of the gates alone, so it is added once. Both leave their gradients with the parameters.
        batches: of these pairs, where they were prepared. Raises FloatingPointError for a loss that is no number: on a
        CPU before any weight has changed, on a GPU when the losses are next read.
        """
        pruning, rate = self.pruning, self.plan.rate(self.update + 1)
        settled = pruning is not None and self.update >= pruning.updates
        self.optimizers.zero_grad()
        gates = None
        if pruning:
            gates = pruning.gates.binary() if settled else pruning.gates.sampled(self.generator)
        loss = self.cross_entropy(members, self.prepare(members)[1] if batches is None else batches, gates)
        row: Row = {"loss": loss, "learning_rate": rate}
        if pruning:
            if not settled:
                pruning.penalty(pruning.gates).backward()
            row["expected_open_heads"] = pruning.gates.expected_open().detach()
        self.losses.add(self.update + 1, loss)
        if self.waits:
            self.losses.read()
        self.optimizers.step(rate)
        self.update += 1
        if pruning and not settled:
            pruning.penalty.adjust(pruning.gates, self.update / pruning.updates)
        return row

    def cross_entropy(self, members: NDArray[np.int64], batches: Sequence[Batch], gates: Gates | None) -> Tensor:
        """The mean [] over target tokens of these pairs in nats, its gradient added to the parameters."""
        processes = self.plan.processes
        answers = self.pairs.answers(members)
        total = torch.zeros((), device=self.plan.device)
        for number, batch in enumerate(batches):
            loss = self.loss_sum(batch, gates) / answers
            # The gates' graph is shared by all micro-batches, so it must outlive all but the last.
            loss.backward(retain_graph=gates is not None and number < len(batches) - 1)
            total += loss.detach()
        processes.sum_gradients(self.optimizers.parameters())
        return processes.sum(total)

    def loss_sum(self, batch: Batch, gates: Gates | None) -> Tensor:
        """Label-smoothed cross-entropy in nats, summed over the real target tokens of a batch on the CPU.

        Of a model that embeds sentences it is how far their vectors moved, as nothing else is known of them.
        """
        model, device, smoothing = self.model, self.plan.device, self.plan.training.label_smoothing
        if self.first is not None:
            return drift(model, self.first, batch.to(device), gates).sum()
        # Where the real tokens stand is asked of the CPU: a GPU would have to be waited for.
        real = batch.target_mask.flatten().nonzero()[:, 0]
        targets = moved(batch.target_output.flatten()[real], device)
        batch = batch.to(device)
        with torch.autocast(device.type, torch.bfloat16, enabled=self.dtype is torch.bfloat16):
            states = model(batch.source, batch.source_mask, batch.target_input, gates)
        states = states.flatten(0, 1).index_select(0, moved(real, device))
        return smoothed_cross_entropy(
            states.float(), model.projection.weight, model.projection.bias, targets, smoothing, self.dtype
        )

    def stop_early(self, dev_loss: float) -> bool:
        """Whether the dev loss has not improved for as many evaluations as the settings allow (0: never stop)."""
        self.waited = 0 if dev_loss < self.best else self.waited + 1
        self.best = min(self.best, dev_loss)
        return 0 < self.plan.length.patience <= self.waited

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain facts from which `restore` goes on exactly here.

        Raises FloatingPointError when there is no number in a loss or weight, so that the last good state is kept.
        """
        self.losses.read()
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"optimizer.{name}": value for name, value in self.optimizers.state().items()}
        if self.pruning:
            tensors |= {f"gates.{name}": value for name, value in self.pruning.gates.state_dict().items()}
            tensors |= {f"penalty.{name}": value for name, value in self.pruning.penalty.state_dict().items()}
        if not all(value.isfinite().all() for value in tensors.values()):
            raise FloatingPointError(f"a weight or its moment is no finite number after update {self.update}")
        tensors["random.gates"], tensors["random.cpu"] = self.generator.get_state(), torch.get_rng_state()
        if self.plan.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.plan.device)
        best = None if math.isinf(self.best) else self.best
        return tensors, {"update": self.update, "best": best, "waited": self.waited}

    def fits(self, tensors: dict[str, Tensor]) -> bool:
        """Whether a state has the parameters of this training: another version of the code may have others."""
        return {*_part(tensors, "model.")} == {*self.model.state_dict()} and self.optimizers.fits(
            _part(tensors, "optimizer.")
        )

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Go back to a state that `state` gave."""
        self.model.load_state_dict(_part(tensors, "model."))
        if self.pruning:
            self.pruning.gates.load_state_dict(_part(tensors, "gates."))
            self.pruning.penalty.load_state_dict(_part(tensors, "penalty."))
        self.optimizers.load(_part(tensors, "optimizer."))
        self.generator.set_state(tensors["random.gates"])
        torch.set_rng_state(tensors["random.cpu"])
        if self.plan.device.type == "cuda":
            torch.cuda.set_rng_state(tensors["random.cuda"], self.plan.device)
        self.update, self.waited = facts["update"], facts["waited"]
        self.best = math.inf if facts["best"] is None else facts["best"]
        if not self.plan.processes.first:  # the state that was saved is the first one's
            self.seed_dropout()


def train(training: Training, evaluate: Evaluate, unfinished: Unfinished) -> dict[str, Any]:
    """Train to the end, going on from `unfinished` if there is anything, and average the last snapshots.

    Writes a line of the log for every evaluation. Returns how many updates there were and how the final weights
    score; the model is left with them in evaluation mode.
    """
    plan, pruning = training.plan, training.pruning
    if plan.processes.first:
        unfinished.resume(training)
    plan.processes.broadcast(0.0)  # until here the others wait: the first one may have cleaned up
    if not plan.processes.first:
        unfinished.resume(training)
    clock, tokens = time.monotonic(), 0
    stopped = training.update >= plan.length.updates or 0 < plan.length.patience <= training.waited
    scores: dict[str, float] = {}
    with closing(training.prepared(training.update)) as updates:
        while not stopped:
            training.model.train()
            members, batches = next(updates)
            row = training.step(members, batches)
            tokens += int(training.pairs.source.lengths[members].sum()) + len(members)
            number, last = training.update, training.update == plan.length.updates
            if pruning and (number % pruning.record_every == 0 or number == 1 or last):
                unfinished.record_gates(number, pruning.gates, pruning.penalty.lam.tolist())
            if number % plan.training.evaluate_every == 0 or last:
                row["loss"] = float(np.mean(training.losses.take()))  # waits for a GPU, so that its time is measured
                row["source_tokens_per_second"] = round(tokens / (time.monotonic() - clock))
                numbers = {name: value.item() if isinstance(value, Tensor) else value for name, value in row.items()}
                scores = evaluate_once(training, evaluate)
                unfinished.log({"update": number, "updates": plan.length.updates, **numbers, **scores})
                stopped = training.stop_early(scores["dev_loss"]) or last
                clock, tokens = time.monotonic(), 0
            keep(training, unfinished)
    if plan.length.average_last > 1:
        unfinished.load_average(training.model)
        scores = {}
    # A training ends with an evaluation, which is of the very weights that are left unless they are averaged now.
    final = scores or evaluate_once(training, evaluate)
    return {"updates": training.update, "total_updates": plan.updates_before + training.update, **final}


def keep(training: Training, unfinished: Unfinished) -> None:
    """Keep on disk what is due after an update, once its losses are known to be numbers.

    That are weights to be averaged, weights of a moment that was asked for, and the state to go on from.
    """
    plan, number = training.plan, training.update
    if averaged(number, plan.length):
        training.losses.read()
        unfinished.snapshot(number, training.model, plan.length.average_last)
    if number in plan.keep_at:
        training.losses.read()
        unfinished.keep_moment(number, training.model)
    unfinished.save_when_due(training)


def averaged(update: int, length: LengthSettings) -> bool:
    """Whether the weights after an update may be among the last ones: any may, where a stop can come early."""
    every, last = length.average_every, length.average_last
    return last > 1 and update % every == 0 and (length.patience > 0 or update > length.updates - last * every)


def evaluate_once(training: Training, evaluate: Evaluate) -> dict[str, float]:
    """Scores of the model as it would be left; the first process evaluates and sends the others its dev loss."""
    processes, pruning = training.plan.processes, training.pruning
    training.model.eval()
    scores = {"dev_loss": 0.0}
    if processes.first:
        scores = evaluate(training.model, pruning.gates.binary() if pruning else None)
    dev_loss = processes.broadcast(scores["dev_loss"])
    if not math.isfinite(dev_loss):
        raise FloatingPointError(f"the dev loss is {dev_loss} after update {training.update}")
    return scores | {"dev_loss": dev_loss}


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): tensor for name, tensor in tensors.items() if name.startswith(prefix)}
