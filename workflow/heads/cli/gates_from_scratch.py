"""Train a model from scratch with gates and their penalty (Voita et al. 2019, footnote 8)."""

import torch

from heads.base.targets import Target
from heads.cli._flags import ForItsShape, GatedTraining
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import GatesSettings, ScratchSettings, TrainingSettings
from heads.model.folder import model_of
from heads.model.shape import check_answers, shape_of
from heads.training.devices import label_of
from heads.training.job import pruning_of, run_job
from heads.training.pace import as_long


def run(given: GatedTraining, unpruned: ForItsShape) -> str:
    """Train a new model with gates for as long as models from scratch; no part is frozen."""
    job = job_of(given, gates=given.heads, gates_log=given.gates_log)
    from_scratch = section(ScratchSettings, given.settings["scratch"]).model_copy(update={"patience": 0})
    length = as_long(from_scratch, unpruned)
    settings = section(GatesSettings, given.settings["gates"]).model_copy(update={"updates": length.updates})
    training = length.trained_by(section(TrainingSettings, given.settings["training"]))
    shape = shape_of(unpruned)
    check_answers(shape, unpruned)
    torch.manual_seed(given.seed)
    model = model_of(shape)
    target = Target.parse(given.target, by_gates=True)
    pruning = pruning_of(model, given.scope, target, settings, ())
    start = f"gates {given.scope} {given.target} fresh"
    run_job(job, model, training, length, start=start, updates_before=0, pruning=pruning)
    return label_of(job.device)
