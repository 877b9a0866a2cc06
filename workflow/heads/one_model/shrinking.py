"""Prune one model on any text, on its own outputs for it: in closed form, then fine-tuned, or by training with gates.

No parallel text is needed: with fewer heads, the model is to give the same outputs as before.
"""

import multiprocessing
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heads.analysis.ablation import Translate
from heads.analysis.masking import evaluation_of
from heads.analysis.masking_curve import compared
from heads.analysis.metrics import BLEU, Answers, Found, Metric
from heads.base.files import UserError
from heads.base.names import SCOPES
from heads.base.provenance import made_by
from heads.base.targets import CONTROL, Target
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.interop.bundle import Bundle
from heads.interop.export import names_of
from heads.model.encoder import Encoder
from heads.model.folder import GATES_LOG, HEADS, WEIGHTS, load_model, model_of
from heads.model.shape import ModelShape, facts_of
from heads.one_model.answered_text import AnsweredSplits
from heads.one_model.answering import UNITS
from heads.one_model.costs import Costs
from heads.one_model.fine_tuning import fine_tune
from heads.one_model.request import GATES, SURGEON, PruningRequest
from heads.one_model.surgery import SEARCH, Surgery
from heads.one_model.working_folder import WorkingFolder
from heads.pruning.removal import remove_closed
from heads.training.devices import label_of, pick
from heads.training.distributed import Processes
from heads.training.job import Job, frozen_beside, pruning_of, run_job
from heads.training.training_text import TrainingText

TRAINING = TrainingSettings(
    batch_tokens=1024,
    micro_batch_tokens=1024,
    label_smoothing=0.0,
    learning_rate=0.0001,
    warmup_updates=50,
    decay_share=1.0,
    evaluate_every=100,
    dev_bleu_sentences=0,
)
DRAWS = 1000


@dataclass(frozen=True)
class Loss:
    """What pruning lost against the control, with its 95 % interval, and the scores of both against the model."""

    kept: int
    pruned: float
    control: float
    change: float
    low: float
    high: float
    metric: str = BLEU.name
    """For the cosine, which is in percent, the control is the model itself."""
    tokeniser: str = BLEU.tokeniser


@dataclass(frozen=True)
class Shrunk:
    """The smallest model that fits a request, what it lost, and every size that was tried on the way to it."""

    model: Bundle
    lost: Loss
    tried: Mapping[int, Path]
    """The folder of the model with each number of heads."""


class Shrinking:
    """The pruning of one model to the sizes of a request."""

    def __init__(
        self,
        whole: Bundle,
        texts: AnsweredSplits,
        request: PruningRequest,
        folder: WorkingFolder,
        threads: int,
    ) -> None:
        """whole: the model, on the device of the texts. folder: for what a later attempt needs."""
        self.whole, self.texts, self.request, self.folder = whole, texts, request, folder
        self.threads, self.device, self.report = threads, texts.device, texts.report
        self.heads, self.costs = heads_in(whole, request), Costs(whole, texts, request)
        self.control_scores: dict[str, Found] = {}
        """By split, for all sizes: what the control scores in every draw of sentences."""

    def shrunk(self) -> Shrunk:
        """Prune to one size after the other. Raises UserError if even the largest one loses more than allowed."""
        request, fitting = self.request, None
        tried: dict[int, Path] = {}
        surgery = Surgery(self.costs) if request.by == SURGEON else None
        if surgery is not None and not self.folder.has_pruned:
            for line in surgery.sizes():
                self.report(line)
        for kept in request.sizes(self.heads):
            tried[kept] = self.folder.pruned(request.target(kept))
            if surgery is not None:
                surgery.smaller(kept, tried[kept])
            else:
                self.by_gates(kept)
            model = self.pruned(tried[kept])
            lost = self.loss(model, "dev" if request.loss is not None else "test")
            self.report(self.in_words(lost))
            if request.loss is not None and -lost.change > request.loss:
                break
            fitting = kept, model, lost
        if fitting is None:
            most = f"{request.loss} {UNITS[lost.metric]}"
            raise UserError(f"Without a quarter of its heads the model loses more than {most}: raise --loss.")
        kept, model, lost = fitting
        if request.minutes:
            self.report(f"fine-tuning for {request.minutes:g} minutes, once the rest of the text is answered")
            text, out = self.texts.for_training(self.whole), self.folder.fine_tuned
            fine_tune(model, self.whole.model, text, out, request.minutes, self.device, self.threads)
            tried[kept], model = out, self.pruned(out)
        if request.loss is not None or request.minutes:
            lost = self.loss(model, "test")
        return Shrunk(model, lost, tried)

    def in_words(self, lost: Loss) -> str:
        """What a size lost."""
        change = f"{lost.change:+.2f} {UNITS[lost.metric]} ({lost.low:+.2f} to {lost.high:+.2f})"
        before = ", before fine-tuning" if self.request.minutes else ""
        size = f"{lost.kept} of {self.heads} heads" if self.request.keeps_a_number else "so small"
        return f"{size}{before}: {change}"

    @property
    def needs_control(self) -> bool:
        """Whether a control is fine-tuned too; else, or if the model embeds sentences, the model itself is one."""
        return self.request.by == GATES and not self.whole.shape.embeds

    def by_gates(self, kept: int) -> None:
        """Train the control, if needed, and the model with gates, and remove the heads whose gates closed."""
        request, target = self.request, self.request.target(kept)
        left = [f"{kept} of {self.heads} heads"] * request.keeps_a_number
        left += [f"{request.units} hidden units in an average layer"] * (request.units is not None)
        self.report(f"training with {' and '.join(left)}{', and the control' * self.needs_control}")
        targets = [CONTROL] * self.needs_control + [target]
        self.train([one for one in targets if not (self.folder.with_gates(one) / HEADS).is_file()])
        for one in targets:
            start, out = self.folder.with_gates(one), self.folder.pruned(one)
            if not (out / WEIGHTS).is_file():
                out.mkdir(parents=True, exist_ok=True)
                remove_closed(start, start / HEADS, out, out / HEADS)

    def train(self, targets: Sequence[Target]) -> None:
        """Train with gates towards each target, in parallel if there are two threads of a CPU."""
        if not targets:
            return
        # A second process would wait for the GPU that this one holds.
        apart = self.threads > 1 and len(targets) > 1 and self.device.type == "cpu"
        threads, text = self.threads // len(targets) if apart else self.threads, self.texts.for_training(self.whole)
        given = [
            (text, self.request, target, self.folder.with_gates(target), self.device, threads) for target in targets
        ]
        if not apart:
            for one in given:
                train_one(self.whole.model, *one)
            return
        # As arrays, which need no shared memory, of which a container may have little.
        weights = {name: value.numpy() for name, value in self.whole.model.state_dict().items()}
        with ProcessPoolExecutor(len(given), mp_context=multiprocessing.get_context("spawn")) as pool:
            for done in [pool.submit(_train_apart, self.whole.shape, weights, *one) for one in given]:
                done.result()

    def pruned(self, folder: Path) -> Bundle:
        """The pruned model of a folder, on the device."""
        model, facts = load_model(folder).to(self.device), facts_of(folder)
        return replace(self.whole, place=folder, model=model, facts=facts, run=self.name_of(model))

    def name_of(self, smaller: Encoder) -> tuple[str, str]:
        """What a pruned model is called in its README: as the model, and how many of its heads are left, chosen how."""
        whole, how = self.texts.model, "by gates" if self.request.by == GATES else "in closed form"
        names = names_of(whole)
        left, of = len(smaller.shape.heads()), len(whole.shape.heads())
        heads = f"{left} of {of} heads chosen {how}" if left < of else f"all {of} heads left"
        return names["experiment"], f"{names['run']}, {heads}"

    def loss(self, smaller: Bundle, split: str) -> Loss:
        """The loss of a pruned model against the control, on a held-out split."""
        answer, wanted, metric = self.evaluation(smaller, split)
        if split not in self.control_scores:
            known = wanted  # the model's own answers, which it would give once more
            if self.needs_control:
                control = replace(self.whole, model=load_model(self.folder.with_gates(CONTROL)).to(self.device))
                known = self.evaluation(control, split)[0](None)
            self.control_scores[split] = metric.drawn(known, wanted, DRAWS)
        unpruned = self.control_scores[split]
        pruned = metric.drawn(answer(None), wanted, DRAWS)
        change = compared(pruned, unpruned)
        kept = heads_in(smaller, self.request)
        return Loss(kept, pruned[0], unpruned[0], *change, metric.name, metric.tokeniser)

    def evaluation(self, model: Bundle, split: str) -> tuple[Translate, Answers, Metric]:
        """What gives a model's answers to a split, what they are compared with, and by which measure."""
        return evaluation_of(model.model, self.device, self.texts.encoded(split, model), SEARCH)


def heads_in(model: Bundle, request: PruningRequest) -> int:
    """The number of heads that a model has in the scope of a request."""
    return len(model.shape.heads(SCOPES[request.scope]))


def train_one(
    whole: Encoder,
    text: TrainingText,
    request: PruningRequest,
    target: Target,
    out: Path,
    device: torch.device,
    threads: int,
) -> None:
    """Fine-tune a copy of the model with gates; an interrupted training resumes. May run in a process of its own."""
    own = pick("cpu", threads) if device.type == "cpu" else device
    settings = GatesSettings(
        updates=request.updates, average_last=1, gate_learning_rate=0.1, record_every=20, fixed_gates_share=0.34
    )
    job = Job(
        content={"training": TRAINING.model_dump(), "gates": settings.model_dump(), "task": "translation"},
        text=text,
        model=out,
        history=out / "train.jsonl",
        seed=1,
        save_every_seconds=60,
        device=own,
        processes=Processes(),
        provenance=made_by(seed=1, device=label_of(own), threads=threads, processes=1),
        gates=out / HEADS,
        gates_log=out / GATES_LOG,
    )
    model = deepcopy(whole)
    pruning = pruning_of(model, request.gated, target, settings, frozen_beside(request.gated, model))
    run_job(job, model, TRAINING, settings.length, start=str(target), updates_before=0, pruning=pruning)


def _train_apart(shape: ModelShape, weights: Mapping[str, np.ndarray], *given: Any) -> None:
    """`train_one` with a model whose weights come from another process."""
    whole = model_of(shape)
    whole.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    train_one(whole, *given)
