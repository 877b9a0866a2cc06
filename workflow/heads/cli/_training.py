"""What the three training commands share: their flags, data, evaluation and outputs."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F

from heads.base.files import UserError, read_lines
from heads.base.names import SIDES
from heads.base.provenance import made_by, provenance
from heads.base.seals import sha256_of
from heads.config.trainings import TrainingSettings
from heads.model.folder import save_folder
from heads.model.transformer import Gates, Transformer
from heads.text.batches import Pairs
from heads.text.vocabulary import Tokens, Vocabulary
from heads.training.checkpointing import Follower, Unfinished, fingerprint
from heads.training.devices import add_device_arguments, pick
from heads.training.distributed import Processes, joined, launch
from heads.training.loop import Evaluate, Training, train
from heads.translation.beam_search import bleu, translate_pairs


def add_training_arguments(parser: argparse.ArgumentParser) -> None:
    """Flags of every training."""
    parser.add_argument("--settings", type=Path, required=True, help="settings of the stage, YAML")
    parser.add_argument("--data", type=Path, required=True, help="folder of the bpe stage")
    parser.add_argument("--references", type=Path, required=True, help="plain text of the dev targets, for BLEU")
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--model", type=Path, required=True, help="folder to write the model into")
    parser.add_argument("--history", type=Path, required=True, help="training log to write, JSON lines")
    parser.add_argument(
        "--save-every-seconds", type=float, default=60.0, help="how much work a killed training loses at most"
    )
    parser.add_argument(
        "--processes", type=int, default=1, help="processes that share the training, each with a GPU of its own"
    )
    add_device_arguments(parser)


def begin(arguments: argparse.Namespace) -> tuple[torch.device, Processes]:
    """The device of this process, and the processes that share the training, which are started if need be."""
    launch(arguments.processes, arguments.threads)
    device = pick(arguments)
    processes = joined(device)
    if processes.first and processes.count > 1:
        print(f"{processes.count} processes share this training", file=sys.stderr, flush=True)
    return device, processes


def read_pairs(data: Path, split: str, max_pieces: int) -> Pairs:
    """The encoded pairs of a split.

    Raises UserError when none is short enough.
    """
    sides = [Tokens(data / f"{split}.{side}.safetensors") for side in ("source", "target")]
    pairs = Pairs(sides[0], sides[1], max_pieces)
    if not len(pairs.index):
        raise UserError(f"{data}/{split} has no pair of at most {max_pieces} pieces: raise training.max_pieces.")
    return pairs


def evaluation(arguments: argparse.Namespace, settings: TrainingSettings, device: torch.device) -> Evaluate:
    """A function that gives dev loss (nats a token, not smoothed) and BLEU of greedy translations."""
    pairs = read_pairs(arguments.data, "dev", settings.max_pieces)
    references = read_lines(arguments.references)
    vocabulary = Vocabulary(arguments.data / "target.model")

    @torch.no_grad()
    def evaluate(model: Transformer, gates: Gates | None) -> dict[str, float]:
        total, tokens = 0.0, 0
        for _, batch in pairs.in_order(settings.micro_batch_tokens):
            batch = batch.to(device)
            states = model(batch.source, batch.source_mask, batch.target_input, gates)
            logits = model.projection(states[batch.target_mask])
            total += float(F.cross_entropy(logits, batch.target_output[batch.target_mask], reduction="sum"))
            tokens += int(batch.target_mask.sum())
        scores = {"dev_loss": total / tokens}
        if settings.dev_bleu_sentences:
            numbers, texts = translate_pairs(
                model,
                pairs,
                vocabulary,
                device,
                batch_tokens=settings.micro_batch_tokens,
                beam=1,
                length_penalty=0.0,
                limit=settings.dev_bleu_sentences,
                gates=gates,
            )
            scores["dev_bleu"] = round(bleu(texts, [references[i] for i in numbers])["bleu"], 2)
        return scores

    return evaluate


def run_training(
    training: Training, arguments: argparse.Namespace, content: Mapping[str, Any], start: str
) -> Unfinished:
    """Train, then write the model; `start` tells what the training began from.

    Returns the folder of the unfinished training, to be finished when the caller has written its own outputs too.
    """
    plan = training.plan
    # The dev set too: the best dev loss so far and what the log tells are of that one.
    files = [arguments.data / f"{split}.{side}.safetensors" for split in ("train", "dev") for side in SIDES]
    data = [sha256_of(path) for path in (*files, arguments.references)]
    identity = fingerprint(content, arguments.seed, start, data, provenance()["torch"])
    folder = arguments.model / "unfinished"
    first = plan.processes.first
    unfinished = Unfinished(folder, identity, arguments.save_every_seconds) if first else Follower(folder, identity)
    if training.pairs.left_out:
        print(f"{training.pairs.left_out} training pairs are longer than max_pieces and left out", flush=True)
    try:
        with unfinished.stopping_on_term():
            facts = train(training, evaluation(arguments, plan.training, plan.device), unfinished)
    except FloatingPointError as error:
        raise UserError(f"{arguments.model}: {error}: lower training.learning_rate_scale in config.yaml.") from error
    plan.processes.leave()
    if not first:
        sys.exit()  # the first process writes what is left to write
    save_folder(training.model, arguments.model, facts, made_by(arguments))
    return unfinished
