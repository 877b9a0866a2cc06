"""Fine-tune a trained model with gates on one scope of heads or hidden units, hard-concrete or for subset pruning."""

from heads.base.checksums import sha256_of
from heads.base.targets import Target
from heads.cli._flags import GatedTraining, StartModel
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model
from heads.model.shape import facts_of
from heads.training.devices import label_of
from heads.training.job import frozen_beside, pruning_of, run_job


def run(given: GatedTraining, start_model: StartModel) -> str:
    """Fine-tune with gates; the learning rate schedule continues where the start model's ended."""
    job = job_of(given, gates=given.heads, gates_log=given.gates_log)
    settings = section(GatesSettings, given.settings["gates"])
    training = section(TrainingSettings, given.settings["training"])
    model = load_model(start_model)
    before = facts_of(start_model)["total_updates"]
    start = f"gates {given.scope} {given.target} {sha256_of(start_model / WEIGHTS)}"
    target, frozen = Target.parse(given.target, by_gates=True), frozen_beside(given.scope, model)
    pruning = pruning_of(model, given.scope, target, settings, frozen)
    run_job(job, model, training, settings.length, start=start, updates_before=before, pruning=pruning)
    return label_of(job.device)
