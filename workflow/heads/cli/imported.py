"""Use an external model, such as Firefox's or OPUS-MT's, as the unpruned one: as it is, or fine-tuned first."""

import sys

from heads.base.checksums import sha256_of
from heads.base.names import TASK, TRANSLATION
from heads.cli._flags import KeptCheckpoints, Training
from heads.cli._job import job_of
from heads.config.settings import section
from heads.config.trainings import BaselineSettings, TrainingSettings
from heads.interop.families import family_of
from heads.interop.family import ImportOptions
from heads.interop.formats import format_of
from heads.interop.original import OriginalFiles
from heads.model.grown import with_self_attention
from heads.training.devices import label_of
from heads.training.job import run_job, save_untrained
from heads.training.optimizers import NO_NEW_WEIGHTS, NewWeights


def run(given: Training, checkpoints: KeptCheckpoints) -> str:
    """Read the folder that the settings name, fine-tune the model if they say so, and write it."""
    job = job_of(given, checkpoints=checkpoints)
    settings = section(BaselineSettings, given.settings["baseline"])
    training = section(TrainingSettings, given.settings["training"])
    found, folder = format_of(settings.pretrained, given.settings.get(TASK, TRANSLATION))
    languages = (settings.source_language, settings.target_language)
    theirs = family_of(found).read(OriginalFiles(folder), ImportOptions("", settings.labels, given.seed, languages))
    model = theirs.model()
    if theirs.drawn:
        print(theirs.drawn, file=sys.stderr)
    if not settings.fine_tuning_updates:
        save_untrained(job, model, training)
        return label_of(job.device)
    new = NO_NEW_WEIGHTS
    if settings.decoder:
        model, parameters = with_self_attention(model, given.seed)
        new = NewWeights(parameters, settings.new_weights_rate)
    length = settings.model_copy(update={"updates": settings.fine_tuning_updates})
    start = " ".join(["imported", *map(sha256_of, found.files(folder))])
    run_job(
        job, model, training, length, start=start, updates_before=0, checkpoint_updates=length.checkpoint_updates,
        pretrained=True, new=new,
    )  # fmt: skip
    return label_of(job.device)
