"""The training loop for baselines, fine-tuning with gates, and training a pruned shape from scratch.

Loss = mean label-smoothed cross-entropy per target token in nats + lambda * sum over heads of P(gate > 0), so lambda is
in nats per target token per head (Voita et al. 2019, sec. 6.1, with the sum over heads as in the paper).

A training can be killed at any time: its state is in a folder `unfinished` beside its outputs and, on the CPU, a
resumed run ends with the same weights, bit for bit, as one that was never stopped.
"""

import math
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heads.base.pool import ahead
from heads.model.encoder import Encoder
from heads.model.sublayers import Gates
from heads.text.batches import Batch, Pairs, cut
from heads.text.packed import Packed
from heads.training.checkpointing import UnfinishedFolder
from heads.training.cross_entropy import smoothed_cross_entropy
from heads.training.devices import SUBWORDS_MULTIPLE, products_dtype
from heads.training.half import HALF, HalfCopy, halved
from heads.training.losses import Losses, distance, states_and_answers, teacher_of
from heads.training.optimizers import Optimizers
from heads.training.pace import TimeLimit
from heads.training.schedule import Pruning, TrainingPlan, averaged

Update = tuple[NDArray[np.int64], list[Batch | Packed]]
"""The pairs of an update, and the micro-batches of this process, on the CPU."""
Row = dict[str, float | Tensor]
"""What an update logs; a tensor [] may not have been computed yet."""
AHEAD = 2
"""Number of updates whose batches are prepared while a GPU works on another one."""
Evaluate = Callable[[Encoder, Gates | None], dict[str, float]]
"""Scores a model, with binary gates if it has any, on held-out data; must return `dev_loss`."""


class Training:
    """A model being trained; everything that a resumed run needs is in `state`."""

    def __init__(
        self,
        model: Encoder,
        pairs: Pairs,
        plan: TrainingPlan,
        pruning: Pruning | None = None,
        teacher: Encoder | None = None,
    ) -> None:
        """teacher: a model whose outputs, in place of the references, are learnt; see `teacher_of`."""
        self.model, self.pairs, self.plan, self.pruning = model.to(plan.device), pairs, plan, pruning
        self.update, self.best, self.waited, self.losses = 0, math.inf, 0, Losses()
        # A GPU's results are read only when they are needed, so that it can start the next update meanwhile.
        self.waits = plan.device.type == "cpu"
        # A different random stream from dropout's, which starts from the seed itself.
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
        self.teacher = teacher_of(self.model, teacher, plan.device)
        by_half = self.dtype is HALF and plan.device.type != "cpu" and self.teacher is None
        self.half = HalfCopy(self.model) if by_half else None
        self.optimizers = Optimizers(model, settings, gates, gate_rate, self.dtype, plan.new)

    def seed_dropout(self) -> None:
        """Give each process its own dropout noise, as they see different sentences."""
        torch.manual_seed(self.plan.seed + 1_000_033 * (self.update + 1) * self.plan.processes.rank)

    def updates(self, first: int) -> Iterator[NDArray[np.int64]]:
        """The pairs of each update from number `first` on, epoch after epoch, the same for the same seed."""
        epoch, skip = 0, first
        while True:
            order = self.pairs.epoch(self.plan.training.batch_tokens, self.plan.seed, epoch)
            yield from order[skip:]
            skip, epoch = max(0, skip - len(order)), epoch + 1

    def prepared(self, first: int) -> Generator[Update]:
        """The arguments of `step` for each update from number `first` on; to be closed when no more are needed."""
        updates = self.updates(first)
        # A separate thread gains nothing if it takes time from the processor that computes the updates.
        yield from map(self.prepare, updates) if self.waits else ahead(self.prepare, updates, AHEAD)

    def prepare(self, members: NDArray[np.int64]) -> Update:
        """These pairs, and the micro-batches of an update on them."""
        settings, processes = self.plan.training, self.plan.processes
        part_tokens = processes.part_tokens(settings.batch_tokens, settings.micro_batch_tokens)
        parts = processes.share(cut(members, self.pairs.source.lengths, part_tokens))
        multiple = SUBWORDS_MULTIPLE[self.plan.device.type]
        return members, [self.pairs.unpadded(part, multiple) for part in parts]

    def step(self, members: NDArray[np.int64], batches: Sequence[Batch | Packed] | None = None, /) -> Row:
        """Make one update on these pairs; returns the cross-entropy in nats per target token and other values to log.

        The objective is cross-entropy + penalty. The cross-entropy is computed in micro-batches with one sample of the
        gates; the penalty depends on the gates alone, so it is added once. Both add their gradients to the parameters.
        batches: of these pairs, if they were prepared. Raises FloatingPointError if the loss is not finite: on a CPU
        before any weight has changed, on a GPU when the losses are next read.
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
            row |= pruning.gates.counts()
        self.losses.add(self.update + 1, loss)
        if self.waits:
            self.losses.read()
        self.optimizers.step(rate)
        self.update += 1
        if pruning and not settled:
            pruning.penalty.adjust(pruning.gates, self.update / pruning.updates)
        return row

    def cross_entropy(
        self, members: NDArray[np.int64], batches: Sequence[Batch | Packed], gates: Gates | None
    ) -> Tensor:
        """Mean cross-entropy [] in nats per target token of these pairs; adds its gradient to the parameters."""
        processes = self.plan.processes
        answers = self.pairs.answers(members)
        total = torch.zeros((), device=self.plan.device)
        if self.half:
            self.half.refresh()
            gates = halved(gates)
        for number, batch in enumerate(batches):
            loss = self.loss_sum(batch, gates) / answers
            # The gates' graph is shared by all micro-batches, so it must outlive all but the last.
            loss.backward(retain_graph=gates is not None and number < len(batches) - 1)
            total += loss.detach()
            if self.half:
                self.half.give_gradients()
        processes.sum_gradients(self.optimizers.parameters())
        return processes.sum(total)

    def loss_sum(self, batch: Batch | Packed, gates: Gates | None) -> Tensor:
        """Label-smoothed cross-entropy in nats, summed over the answers of a batch on the CPU.

        With a teacher it is the `distance` from it.
        """
        model, smoothing, batch = self.model, self.plan.training.label_smoothing, batch.to(self.plan.device)
        # A processor that has bf16 is fast in products alone.
        with torch.autocast("cpu", HALF, enabled=self.dtype is HALF and self.half is None):
            if self.teacher is not None:
                return distance(model, self.teacher, batch, gates)
            states, wanted = states_and_answers(self.half.model if self.half else model, batch, gates)
        return smoothed_cross_entropy(
            states.float(), model.projection.weight, model.projection.bias, wanted, smoothing, self.dtype
        )

    def end_at(self, updates: int) -> None:
        """End after this many updates; a learning rate that falls until the end falls faster."""
        self.plan = replace(self.plan, length=self.plan.length.model_copy(update={"updates": updates}))

    def stop_early(self, dev_loss: float) -> bool:
        """Whether the dev loss has not improved for as many evaluations as the settings allow (0: never stop)."""
        self.waited = 0 if dev_loss < self.best else self.waited + 1
        self.best = min(self.best, dev_loss)
        return 0 < self.plan.length.patience <= self.waited

    def state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain facts from which `restore` resumes at exactly this point.

        Raises FloatingPointError if a loss or weight is not finite, so that the last good state is kept.
        """
        self.losses.read()
        tensors = {f"model.{name}": value for name, value in self.model.state_dict().items()}
        tensors |= {f"optimizer.{name}": value for name, value in self.optimizers.state().items()}
        if self.pruning:
            tensors |= {f"gates.{name}": value for name, value in self.pruning.gates.state_dict().items()}
            tensors |= {f"penalty.{name}": value for name, value in self.pruning.penalty.state_dict().items()}
        if not all(value.isfinite().all() for value in tensors.values()):
            raise FloatingPointError(f"a weight or its moment is not finite after update {self.update}")
        tensors["random.gates"], tensors["random.cpu"] = self.generator.get_state(), torch.get_rng_state()
        if self.plan.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.plan.device)
        best = None if math.isinf(self.best) else self.best
        end = self.plan.length.updates
        return tensors, {"update": self.update, "updates": end, "best": best, "waited": self.waited}

    def fits(self, tensors: dict[str, Tensor]) -> bool:
        """Whether a state has the parameters of this training; one from another version of the code may not."""
        return {*_part(tensors, "model.")} == {*self.model.state_dict()} and self.optimizers.fits(
            _part(tensors, "optimizer.")
        )

    def restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Restore what `state` returned."""
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
        self.end_at(facts.get("updates", self.plan.length.updates))
        self.best = math.inf if facts["best"] is None else facts["best"]
        if not self.plan.processes.first:  # the saved state is the first process's
            self.seed_dropout()


def train(training: Training, evaluate: Evaluate, unfinished: UnfinishedFolder) -> dict[str, Any]:
    """Train to the end, resuming from `unfinished` if it has a state, and average the last snapshots.

    Writes a log line for every evaluation. Returns the number of updates and the scores of the final weights, with
    which the model is left in evaluation mode.
    """
    plan, pruning, limit = training.plan, training.pruning, TimeLimit(training.plan.seconds)
    if plan.processes.first:
        unfinished.resume(training)
    plan.processes.broadcast(0.0)  # the others wait until here: the first one may have cleaned up
    if not plan.processes.first:
        unfinished.resume(training)
    clock, tokens = time.monotonic(), 0
    stopped = training.update >= training.plan.length.updates or 0 < plan.length.patience <= training.waited
    scores: dict[str, float] = {}
    with closing(training.prepared(training.update)) as updates:
        while not stopped:
            training.model.train()
            members, batches = next(updates)
            row = training.step(members, batches)
            tokens += int(training.pairs.source.lengths[members].sum()) + len(members)
            if (left := limit.updates_left(training.update, training.losses)) is not None:
                fitting = training.update + int(plan.processes.broadcast(left))
                training.end_at(min(plan.length.updates, fitting))
            end = training.plan.length.updates
            number, last = training.update, training.update == end
            if pruning and (number % pruning.record_every == 0 or number == 1 or last):
                unfinished.record_gates(number, pruning.gates, pruning.penalty.lam.tolist())
            if number % plan.training.evaluate_every == 0 or last:
                row["loss"] = float(np.mean(training.losses.take()))  # waits for a GPU, so that its time is measured
                row["source_tokens_per_second"] = round(tokens / (time.monotonic() - clock))
                numbers = {name: value.item() if isinstance(value, Tensor) else value for name, value in row.items()}
                scores = evaluate_once(training, evaluate)
                unfinished.log({"update": number, "updates": end, **numbers, **scores})
                stopped = training.stop_early(scores["dev_loss"]) or last
                clock, tokens = time.monotonic(), 0
            keep(training, unfinished)
    if plan.length.average_last > 1:
        unfinished.load_average(training.model)
        scores = {}
    # A training ends with an evaluation, which is of its final weights unless they are averaged now.
    final = scores or evaluate_once(training, evaluate)
    facts = {"updates": training.update, "total_updates": plan.updates_before + training.update, **final}
    cut = plan.length.updates - training.plan.length.updates
    return facts | ({"updates_cut": cut} if cut else {})


def keep(training: Training, unfinished: UnfinishedFolder) -> None:
    """Save a snapshot, a checkpoint or the state if due after an update, once its losses are known to be finite."""
    plan, number = training.plan, training.update
    if averaged(number, plan.length):
        training.losses.read()
        unfinished.snapshot(number, training.model, plan.length.average_last)
    if number in plan.checkpoint_updates:
        training.losses.read()
        unfinished.keep_moment(number, training.model)
    unfinished.save_when_due(training)


def evaluate_once(training: Training, evaluate: Evaluate) -> dict[str, float]:
    """Scores of the model with binary gates; the first process evaluates and sends the others its dev loss."""
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
