"""Prune one model on any text, on its own outputs for it: in closed form, then fine-tuned, or by training with gates.

No parallel text is needed: with fewer heads, the model is to give the same outputs as before.
"""

import multiprocessing
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from heads.analysis.ablation import Translate
from heads.analysis.masking import evaluation_of, read_text
from heads.analysis.masking_curve import compared
from heads.analysis.metrics import BLEU, Answers, Metric
from heads.base.files import UserError
from heads.base.names import SCOPES, SIDES
from heads.base.provenance import made_by
from heads.base.targets import CONTROL, Target
from heads.config.analyses import AblationSettings
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model
from heads.model.shape import shape_of
from heads.one_model.answering import GREEDY, UNITS
from heads.one_model.fine_tuning import fine_tune
from heads.one_model.request import GATES, SURGEON, PruningRequest
from heads.one_model.surgery import Surgery
from heads.one_model.workplace import Workplace
from heads.pruning.removal import remove_closed
from heads.training.devices import label_of, pick
from heads.training.distributed import Processes
from heads.training.job import Job, frozen_beside, pruning_of, run_job
from heads.training.training_text import read_training_text
from heads.translation.model_folder import VOCABULARIES
from heads.translation.stream import Report

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
SEARCH = AblationSettings(sentences=0, beam=1, length_penalty=0.0, batch_tokens=GREEDY.batch_tokens)


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


def heads_of(folder: Path, scope: str) -> int:
    """The number of heads in a scope of the model of a folder."""
    return len(shape_of(folder).heads(SCOPES[scope]))


def shrunk(
    place: Workplace,
    request: PruningRequest,
    splits: Mapping[str, list[str]],
    device: torch.device,
    threads: int,
    report: Report,
) -> tuple[Path, Loss, list[int]]:
    """The folder of the smallest model that fits the request, its loss on held-out sentences, and all sizes tried.

    splits: the text. Raises UserError if even the largest size that is tried loses more than allowed.
    """
    place.answer({name: splits[name] for name in request.read_first}, device, report)
    heads = heads_of(place.baseline, request.scope)
    best: tuple[Path, Loss] | None = None
    tried: list[int] = []
    surgery = Surgery(place, request, device, report) if request.by == SURGEON else None
    if surgery is not None and not (place.results / "pruned").is_dir():  # not if it was stopped after this
        for line in surgery.sizes():
            report(line)
    for kept in request.sizes(heads):
        tried.append(kept)
        target = request.target(kept)
        if surgery is not None:
            surgery.smaller(kept, run_of_target(place, "pruned", request.gated, target))
        else:
            left = [f"{kept} of {heads} heads"] * request.keeps_a_number
            left += [f"{request.units} hidden units in an average layer"] * (request.units is not None)
            report(f"training with {' and '.join(left)}{', and the control' * needs_control(place, request)}")
            _train_both(place, request, target, device, threads)
        folder = smaller(place, request.gated, target)
        lost = _loss(place, request, folder, "dev" if request.loss is not None else "test", device)
        change = f"{lost.change:+.2f} {UNITS[lost.metric]} ({lost.low:+.2f} to {lost.high:+.2f})"
        before = ", before fine-tuning" if request.minutes else ""
        size = f"{lost.kept} of {heads} heads" if request.keeps_a_number else "so small"
        report(f"{size}{before}: {change}")
        if request.loss is not None and -lost.change > request.loss:
            break
        best = folder, lost
    if best is None:
        raise UserError(
            f"Without a quarter of its heads the model loses more than {request.loss} {UNITS[lost.metric]}: "
            "raise --loss."
        )
    folder, lost = best
    if request.minutes:
        report(f"fine-tuning for {request.minutes:g} minutes, once the rest of the text is answered")
        place.answer({"train": splits["train"]}, device, report)
        fine_tune(place, folder, request.minutes, device, threads)
    if request.loss is not None or request.minutes:
        lost = _loss(place, request, folder, "test", device)
    return folder, lost, tried


def needs_control(place: Workplace, request: PruningRequest) -> bool:
    """Whether a control is fine-tuned too; without training, or if it embeds sentences, the model itself is one."""
    return request.by == GATES and not shape_of(place.baseline).embeds


def _train_both(place: Workplace, request: PruningRequest, target: Target, device: torch.device, threads: int) -> None:
    """Train the control, if needed, and the model with gates, in parallel if there are two threads of a CPU."""
    trained = [CONTROL] * needs_control(place, request) + [target]
    waiting = [
        one for one in trained if not (run_of_target(place, "gates", request.gated, one) / "heads.tsv").is_file()
    ]
    # A second process would wait for the GPU that this one holds.
    apart = threads > 1 and len(waiting) > 1 and device.type == "cpu"
    each = threads // len(waiting) if apart else threads
    asked = [(place.folder, place.results, request, str(one), device, each) for one in waiting]
    if not apart:
        for one in asked:
            train_one(*one)
        return
    with ProcessPoolExecutor(len(asked), mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(train_one, *one) for one in asked]:
            done.result()


def train_one(
    folder: Path, results: Path, request: PruningRequest, asked: str, device: torch.device, threads: int
) -> None:
    """Fine-tune the model with gates; an interrupted training resumes. May run in a process of its own on a CPU."""
    own = pick("cpu", threads) if device.type == "cpu" else device
    target = Target.parse(asked, by_gates=True)
    settings = GatesSettings(
        updates=request.updates, average_last=1, gate_learning_rate=0.1, record_every=20, settled_share=0.34
    )
    out = results / "gates" / request.gated / str(target) / "seed-1"
    job = Job(
        content={"training": TRAINING.model_dump(), "gates": settings.model_dump(), "task": "translation"},
        text=read_training_text(results / "bpe", results / "bpe/dev.target.txt"),
        model=out,
        history=out / "train.jsonl",
        seed=1,
        save_every_seconds=60,
        device=own,
        processes=Processes(),
        provenance=made_by(seed=1, device=label_of(own), threads=threads, processes=1),
        gates=out / "heads.tsv",
        gates_log=out / "gates.jsonl",
    )
    model = load_model(results / "baseline" / "seed-1")
    pruning = pruning_of(model, request.gated, target, settings, frozen_beside(request.gated, model))
    start = f"{folder.name} {target}"
    run_job(job, model, TRAINING, settings.length, start=start, updates_before=0, pruning=pruning)


def run_of_target(place: Workplace, kind: str, scope: str, target: Target) -> Path:
    """The folder of a run of the given kind, such as gates or pruned."""
    return place.results / kind / scope / str(target) / "seed-1"


def smaller(place: Workplace, scope: str, target: Target) -> Path:
    """The folder of the trained model without the heads whose gates closed, made if it does not exist."""
    gates, out = (run_of_target(place, kind, scope, target) for kind in ("gates", "pruned"))
    if not (out / WEIGHTS).is_file():
        out.mkdir(parents=True, exist_ok=True)
        remove_closed(gates, gates / "heads.tsv", out, out / "heads.tsv")
    return out


def _loss(place: Workplace, request: PruningRequest, folder: Path, split: str, device: torch.device) -> Loss:
    """The loss of a pruned model against the control, on a held-out split."""
    trained = place, run_of_target(place, "gates", request.gated, CONTROL)
    control = trained if needs_control(place, request) else (place.original, place.original.baseline)
    (whole, wanted, metric), (smaller, _, _) = (answering(*one, split, device) for one in (control, (place, folder)))
    pruned, unpruned = (metric.drawn(answer(None), wanted, DRAWS) for answer in (smaller, whole))
    kept = heads_of(folder, request.scope)
    return Loss(kept, pruned[0], unpruned[0], *compared(pruned, unpruned), metric.name, metric.tokeniser)


def answering(place: Workplace, folder: Path, split: str, device: torch.device) -> tuple[Translate, Answers, Metric]:
    """A function that gives a model's answers for a split, the reference answers, and the metric."""
    paths = place.tokens(split, SIDES[0]), place.text(split, SIDES[1]), place.bpe / VOCABULARIES[1]
    text = read_text(*paths, place.tokeniser, place.metric)
    return evaluation_of(load_model(folder).to(device), device, text, SEARCH)
