"""How far a model's answers move if each layer has fewer heads and these make up for the others, in closed form."""

from pathlib import Path
from typing import Annotated

from heads.base.files import write_tsv
from heads.cli._flags import Measure, OutFile
from heads.config.analyses import SurgeonSettings
from heads.config.settings import section
from heads.model.folder import load_model
from heads.pruning.closed_form import BATCH_TOKENS, Surgeon, gram_matrices, output_maps, save_grams
from heads.pruning.ladders import LADDER_COLUMNS, HeldOut, compared_on, every_number, ladder_rows, ladders_of
from heads.text.batches import measured_pairs
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick


def run(
    given: Measure,
    train_source: Annotated[Path, "token file of the training sentences"],
    train_target: Annotated[Path, "token file of their translations, or labels"],
    grams: Annotated[OutFile, "file to write, with which heads make up for others"],
) -> str:
    """Read training pairs, compare answers to dev, and write both files."""
    settings = section(SurgeonSettings, given.settings["surgeon"])
    device = pick(given.device, given.threads)
    model = load_model(given.model).to(device)
    train, dev = (
        measured_pairs(Tokens(source), Tokens(target), labelled=model.shape.encoder_only)
        for source, target in ((train_source, train_target), (given.source, given.target))
    )
    read = train.drawn(settings.subwords).in_order(BATCH_TOKENS)
    found = gram_matrices(model, (batch.to(device) for _, batch in read), model.shape.kinds)
    surgeon = Surgeon(model, output_maps(model, found))
    held_out = HeldOut(model, compared_on(dev, device, settings.sentences or None))
    ladders = ladders_of(surgeon, held_out, every_number)
    save_grams(grams, found)
    write_tsv(given.out, [*ladder_rows(surgeon, ladders)], LADDER_COLUMNS)
    return label_of(device)
