"""Run a training as a job: from a model and a text to the folder of the trained model."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heads.base.columns import GATE_COLUMNS
from heads.base.files import UserError, write_lines, write_tsv
from heads.base.names import AUTO
from heads.base.provenance import provenance
from heads.base.targets import Target
from heads.config.trainings import GatesSettings, LengthSettings, TrainingSettings
from heads.model.encoder import Encoder
from heads.model.folder import save_folder
from heads.model.transformer import Transformer
from heads.pruning.gates import gate_rows
from heads.pruning.penalty import gates_and_penalty
from heads.pruning.subset_gates import SubsetGates
from heads.text.vocabulary import Vocabulary
from heads.training.checkpointing import OtherProcess, UnfinishedFolder, fingerprint
from heads.training.devices import pick
from heads.training.distributed import Processes, joined, launch
from heads.training.evaluation import classification, evaluation, fidelity
from heads.training.loop import Evaluate, Training, train
from heads.training.optimizers import NO_NEW_WEIGHTS, NewWeights
from heads.training.schedule import Pruning, TrainingPlan
from heads.training.training_text import TrainingText
from heads.translation.text_scores import tokeniser_of


@dataclass(frozen=True, slots=True)
class Job:
    """What every training needs, whatever it trains: its text, files, seed, device and processes."""

    content: Mapping[str, Any]
    """All settings of the stage: a state saved with other settings is not resumed."""
    text: TrainingText
    model: Path
    """Folder to write the model into."""
    history: Path
    """Training log to write, JSON lines."""
    seed: int
    save_every_seconds: float
    device: torch.device
    processes: Processes
    provenance: Mapping[str, Any]
    """The provenance to write into the folder of the model."""
    checkpoints: Path | None = None
    """Folder to write, with checkpoints of the training."""
    gates: Path | None = None
    """Table to write of the gates that were trained."""
    gates_log: Path | None = None
    """Log to write of the gates closing, JSON lines."""


def begin(device: str, threads: int, processes: int) -> tuple[torch.device, Processes]:
    """The device of this process, and the processes that share the training, started if necessary."""
    launch(processes, threads)
    own = pick(device, threads)
    together = joined(own)
    if together.first and together.count > 1:
        print(f"{together.count} processes share this training", file=sys.stderr, flush=True)
    return own, together


def pruning_of(
    model: Encoder, scope: str, target: Target, settings: GatesSettings, frozen: tuple[nn.Module, ...]
) -> Pruning:
    """Gates on the heads of a scope, and their penalty. Raises UserError if it has fewer heads than are to be kept."""
    updates = round(settings.updates * (1 - settings.fixed_gates_share))
    gates, penalty = gates_and_penalty(target, scope, model.shape, settings, updates)
    rate = settings.subset.learning_rate if isinstance(gates, SubsetGates) else settings.gate_learning_rate
    return Pruning(gates, penalty, rate, settings.record_every, updates, frozen)


def frozen_beside(scope: str, model: Encoder) -> tuple[nn.Module, ...]:
    """Modules frozen while a trained model is pruned: the whole decoder if only the encoder has gates."""
    if not isinstance(model, Transformer):
        return ()
    decoder = (model.target_embedding, model.decoder, model.decoder_norm, model.projection)
    # A shared embedding belongs to the decoder too.
    shared = (model.source_embedding,) if model.shape.shared_embedding else ()
    return (*decoder, *shared) if scope == "enc_self" else ()


def save_untrained(job: Job, model: Encoder, settings: TrainingSettings) -> None:
    """Write the outputs of a training of 0 updates for a model that was trained elsewhere."""
    scores = _evaluation(job, model, settings)(model.to(job.device), None)
    facts = {"updates": 0, "total_updates": 0, "pretrained": True, **scores}
    save_folder(model, job.model, facts, job.provenance)
    write_lines(job.history, [json.dumps({"update": 0, "updates": 0, **scores})])
    if job.checkpoints:
        job.checkpoints.mkdir(parents=True, exist_ok=True)


def run_job(
    job: Job,
    model: Encoder,
    settings: TrainingSettings,
    length: LengthSettings,
    *,
    start: str,
    updates_before: int,
    checkpoint_updates: tuple[int, ...] = (),
    pruning: Pruning | None = None,
    pretrained: bool = False,
    new: NewWeights = NO_NEW_WEIGHTS,
    seconds: float = 0.0,
    teacher: Encoder | None = None,
) -> None:
    """Train a model and write the job's outputs. Raises UserError if the loss is not finite.

    start: says what the training starts from. pretrained: the model was trained elsewhere, for updates that are not
    counted; its facts say so, and that it was grown if some of its weights are new. seconds: see `TrainingPlan`.
    teacher: see `Training`. Only the first process returns.
    """
    pairs = job.text.pairs("train", settings.max_subwords, labelled=model.shape.encoder_only)
    plan = TrainingPlan(
        settings, length, job.seed, updates_before, job.device, checkpoint_updates, job.processes, new, seconds
    )
    training = Training(model, pairs, plan, pruning, teacher)
    unfinished = _taken_up(job, start)
    if pairs.left_out:
        print(f"{pairs.left_out} training pairs are longer than max_subwords and are left out", flush=True)
    try:
        with unfinished.stopping_on_term():
            facts = train(training, _evaluation(job, model, settings, training.teacher), unfinished)
    except FloatingPointError as error:
        raise UserError(f"{job.model}: {error}: lower the learning rate, under training in config.yaml.") from error
    job.processes.leave()
    if not job.processes.first:
        sys.exit()  # the first process writes the remaining outputs
    came = {"pretrained": pretrained, "grown": bool(new.parameters)}
    save_folder(training.model, job.model, facts | {key: True for key, is_so in came.items() if is_so}, job.provenance)
    if job.checkpoints:
        unfinished.write_checkpoints(job.checkpoints)
    logs = {"train.jsonl": job.history}
    if pruning and job.gates and job.gates_log:
        write_tsv(job.gates, gate_rows(pruning.gates, model.shape), GATE_COLUMNS)
        logs["gates.jsonl"] = job.gates_log
    unfinished.finish(logs)


def _taken_up(job: Job, start: str) -> UnfinishedFolder:
    """The folder in which this same training may have saved its state."""
    # The device type too, as no random generator can resume from the state of another type's.
    identity = fingerprint(job.content, job.seed, start, job.text.digest, provenance()["torch"], job.device.type)
    folder = job.model / "unfinished"
    if not job.processes.first:
        return OtherProcess(folder, identity)
    return UnfinishedFolder(folder, identity, job.save_every_seconds)


def _evaluation(job: Job, model: Encoder, settings: TrainingSettings, teacher: Encoder | None = None) -> Evaluate:
    pairs = job.text.pairs("dev", settings.max_subwords, labelled=model.shape.encoder_only)
    if model.shape.embeds and teacher is not None:
        return partial(fidelity, pairs, teacher, settings, job.device)
    if model.shape.classifies:
        return partial(classification, pairs, settings, job.device)
    references, vocabulary = job.text.references, job.text.target
    assert isinstance(vocabulary, Vocabulary)
    tokeniser = tokeniser_of(references) if settings.dev_bleu_sentences else AUTO
    return partial(evaluation, pairs, references, vocabulary, settings, job.device, tokeniser=tokeniser)
