"""Prune one model on any text: train it with gates on its own outputs for the text, and a control for as long.

No parallel text is needed: with fewer heads, the model is to give the same outputs as before.
"""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import torch

from heads.analysis.ablation import Translate
from heads.analysis.masking import answers_of, read_text
from heads.analysis.masking_curve import compared
from heads.analysis.metrics import BLEU, Answers, Metric
from heads.analysis.speed import clock_of, compare, contestant
from heads.base.files import UserError
from heads.base.names import FEEDFORWARDS, SCOPES, SIDES
from heads.base.provenance import made_by
from heads.base.targets import CONTROL, Target
from heads.config.analyses import AblationSettings, SpeedSettings
from heads.config.trainings import GatesSettings, TrainingSettings
from heads.model.folder import WEIGHTS, load_model
from heads.model.shape import shape_of
from heads.one_model.answering import GREEDY, UNITS
from heads.one_model.surgery import Surgery, total_of_units
from heads.one_model.workplace import Workplace
from heads.pruning.removal import remove_closed
from heads.text.vocabulary import Tokens
from heads.training.devices import label_of, pick
from heads.training.distributed import Processes
from heads.training.job import Job, frozen_beside, pruning_of, run_job
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
SHARES = (0.75, 0.5, 0.375, 0.25, 0.125)
"""Shares of all heads to try in turn, largest first, if the flags say how much may be lost."""
GATES, SURGEON = WAYS = ("gates", "surgeon")
"""Ways to choose heads: by gates and a control that trains for as long, or in closed form without any training."""
DRAWS = 1000
SEARCH = AblationSettings(sentences=0, beam=1, length_penalty=0.0, batch_tokens=GREEDY.batch_tokens)
SPEED = SpeedSettings(batch_sizes=(1, 16), sentences=48, repeats=3, beam=1, length_penalty=0.0)


@dataclass(frozen=True)
class Wish:
    """The size asked for: `keep` heads of a scope, or the fewest that lose at most `loss` against the control."""

    scope: str
    keep: int | None
    loss: float | None
    updates: int
    by: str = GATES
    """GATES, or SURGEON, in closed form."""
    units: int | None = None
    """Hidden units to keep in an average feed-forward network; None: all."""

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of attention, and the feed-forward stacks, that lose heads or units."""
        of_heads = SCOPES[self.scope] if self.keep is not None or self.loss is not None else ()
        return (*of_heads, *(FEEDFORWARDS if self.units is not None else ()))

    def sizes(self, heads: int) -> list[int]:
        """The numbers of heads to try, largest first. Raises UserError unless a head stays and another one goes."""
        if heads < 2:
            raise UserError("The model has fewer than two heads in that scope: give one with a head that can go.")
        if self.keep is None and self.loss is None:
            return [heads]
        if self.keep is None:
            return [*dict.fromkeys(min(heads - 1, max(1, round(share * heads))) for share in SHARES)]
        if not 0 < self.keep < heads:
            raise UserError(
                f"--keep {self.keep} is not possible, as of the {heads} heads in that scope at least one has to stay "
                f"and one has to go: give 1 to {heads - 1}."
            )
        return [self.keep]


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


def check_units(folder: Path, wish: Wish) -> None:
    """Raise UserError if the layers of the model of a folder cannot have as few or as many units as asked for."""
    if wish.units is not None:
        total_of_units([units for stack in FEEDFORWARDS for units in shape_of(folder).units(stack)], wish.units)


def heads_of(folder: Path, scope: str) -> int:
    """The number of heads in a scope of the model of a folder."""
    return len(shape_of(folder).heads(SCOPES[scope]))


def shrunk(
    place: Workplace, wish: Wish, device: torch.device, threads: int, report: Report
) -> tuple[Path, Loss, list[int]]:
    """The folder of the smallest model that fits the wish, its loss on held-out sentences, and all sizes tried.

    Raises UserError if even the largest size that is tried loses more than allowed.
    """
    heads = heads_of(place.baseline, wish.scope)
    best: tuple[Path, Loss] | None = None
    tried: list[int] = []
    surgery = Surgery(place, wish.kinds, device, report) if wish.by == SURGEON else None
    for kept in wish.sizes(heads):
        tried.append(kept)
        target = Target.of_choice("gates", kept)
        if surgery is not None:
            surgery.smaller(kept, wish.units, run_of_target(place, "pruned", wish.scope, target))
        else:
            report(f"training with {kept} of {heads} heads{', and the control' * needs_control(place, wish)}")
            _train_both(place, wish, target, device, threads)
        folder = smaller(place, wish.scope, target)
        lost = _loss(place, wish, folder, kept, "dev" if wish.loss is not None else "test", device)
        report(
            f"{kept} of {heads} heads: {lost.change:+.2f} {UNITS[lost.metric]} ({lost.low:+.2f} to {lost.high:+.2f})"
        )
        if wish.loss is not None and -lost.change > wish.loss:
            break
        best = folder, lost
    if best is None:
        raise UserError(
            f"Without a quarter of its heads the model loses more than {wish.loss} {UNITS[lost.metric]}: raise --loss."
        )
    folder, lost = best
    if wish.loss is not None:
        lost = _loss(place, wish, folder, lost.kept, "test", device)
    return folder, lost, tried


def needs_control(place: Workplace, wish: Wish) -> bool:
    """Whether a control is fine-tuned too; without training, or if it embeds sentences, the model itself is one."""
    return wish.by == GATES and not shape_of(place.baseline).embeds


def _train_both(place: Workplace, wish: Wish, target: Target, device: torch.device, threads: int) -> None:
    """Train the control, if needed, and the model with gates, in parallel if there are two threads of a CPU."""
    trained = [CONTROL] * needs_control(place, wish) + [target]
    waiting = [one for one in trained if not (run_of_target(place, "gates", wish.scope, one) / "heads.tsv").is_file()]
    # A second process would wait for the GPU that this one holds.
    apart = threads > 1 and len(waiting) > 1 and device.type == "cpu"
    each = threads // len(waiting) if apart else threads
    asked = [(place.folder, place.results, wish, str(one), device, each) for one in waiting]
    if not apart:
        for one in asked:
            train_one(*one)
        return
    with ProcessPoolExecutor(len(asked), mp_context=multiprocessing.get_context("spawn")) as pool:
        for done in [pool.submit(train_one, *one) for one in asked]:
            done.result()


def train_one(folder: Path, results: Path, wish: Wish, asked: str, device: torch.device, threads: int) -> None:
    """Fine-tune the model with gates; an interrupted training resumes. May run in a process of its own on a CPU."""
    own = pick("cpu", threads) if device.type == "cpu" else device
    target = Target.parse(asked, by_gates=True)
    settings = GatesSettings(
        updates=wish.updates, average_last=1, gate_learning_rate=0.1, record_every=20, settled_share=0.34
    )
    out = results / "gates" / wish.scope / str(target) / "seed-1"
    job = Job(
        content={"training": TRAINING.model_dump(), "gates": settings.model_dump(), "task": "translation"},
        data=results / "bpe",
        references=results / "bpe/dev.target.txt",
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
    pruning = pruning_of(model, wish.scope, target, settings, frozen_beside(wish.scope, model))
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


def _loss(place: Workplace, wish: Wish, folder: Path, kept: int, split: str, device: torch.device) -> Loss:
    """The loss of a pruned model against the control, on a held-out split."""
    control = run_of_target(place, "gates", wish.scope, CONTROL) if needs_control(place, wish) else place.baseline
    (whole, wanted, metric), (smaller, _, _) = (answering(place, one, split, device) for one in (control, folder))
    pruned, unpruned = (metric.drawn(answer(None), wanted, DRAWS) for answer in (smaller, whole))
    return Loss(kept, pruned[0], unpruned[0], *compared(pruned, unpruned), metric.name, metric.tokeniser)


def answering(place: Workplace, folder: Path, split: str, device: torch.device) -> tuple[Translate, Answers, Metric]:
    """A function that gives a model's answers for a split, the reference answers, and the metric."""
    paths = place.tokens(split, SIDES[0]), place.text(split, SIDES[1]), place.bpe / VOCABULARIES[1]
    text = read_text(*paths, place.tokeniser)
    return answers_of(load_model(folder).to(device), device, text, SEARCH)


def speed_won(place: Workplace, folder: Path, device: torch.device) -> dict[int, tuple[float, float, float]]:
    """The smaller model's speed relative to the original, by batch size: median and range of three rounds."""
    source = place.tokens("test", SIDES[0])
    most = len(Tokens(source).lengths)
    sizes = tuple(size for size in SPEED.batch_sizes if size <= most)
    settings = SPEED.model_copy(update={"batch_sizes": sizes, "sentences": min(most, SPEED.sentences)})
    folders = {"model": place.baseline, "smaller": folder}
    contestants = {name: contestant(one, source, settings, device) for name, one in folders.items()}
    with torch.inference_mode():
        rows = compare(contestants, Tokens(source), settings, device, clock_of(device))
    return {
        int(str(row["batch_sentences"])): tuple(float(str(row[f"ratio{end}"])) for end in ("", "_low", "_high"))  # type: ignore[misc]
        for row in rows
        if row["run"] == "smaller"
    }
