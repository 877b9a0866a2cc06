"""Run folders with made-up but plausible numbers, so that tables and figures are tested without training anything."""

import itertools
import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from heads.__main__ import main
from heads.analysis.attention_maps import packed
from heads.analysis.cross_attention_roles import ROLES as CROSS_ROLES
from heads.base.columns import ALIGNMENT_COLUMNS, CROSS_ATTENTION_COLUMNS
from heads.base.files import read_json, read_lines, read_tsv, write_json, write_lines, write_tsv
from heads.base.names import ATTENTIONS, NO_TREES, REFERENCES, SCOPES
from heads.base.runs import Run
from heads.base.targets import Target
from heads.translation.bleu import STATISTICS, bleu_of
from shape_facts import facts_with_shape

RELATIONS = ("nsubj", "obj", "amod", "advmod")
DIRECTIONS = ("dependent-to-head", "head-to-dependent")
MEASURED = ("accuracy", "baseline", "cases", "holds", "low", "high", "excess_low", "excess_high", "reaches")
ROLE_COLUMNS = ("trees", "layer", "head", "role", "name", *MEASURED)
ALIGNMENT = {"trees": "gold", "sentences": 100, "measured": 98, "tree_words": 900, "aligned_words": 900}
RULES = ("plain", "z-plus")
LRP_COLUMNS = ("rule", "attention", "layer", "head", "relevance", "relevance_of_sums", "relevance_absolute", "steps")
SENTENCE = (
    ("the", "det", 3), ("old", "amod", 3), ("farmers", "nsubj", 4), ("sold", "root", 0), ("their", "nmod", 7),
    ("excellent", "amod", 7), ("tools", "obj", 4), ("yesterday", "advmod", 4), (".", "punct", 4),
)  # fmt: skip
GATE_COLUMNS = ("attention", "layer", "head", "log_alpha", "p_open", "open", "strictly_between")
TREE_FILES = ("roles.tsv", "coverage.tsv", "positions.tsv", "dynamics.tsv")
"""What is measured with trees."""
Row = dict[str, Any]
Live = dict[str, list[list[int]]]


@dataclass(frozen=True)
class World:
    """A made-up experiment: its sizes and number of runs."""

    layers: int = 3
    heads: int = 4
    lams: tuple[str, ...] = ("0.003", "0.01", "0.03", "0.1", "0.3")
    seeds: tuple[int, ...] = (1,)
    scratch: bool = True
    trees: bool = True
    driven: bool = False
    """Whether gates were also driven to the numbers of heads that the penalties leave."""
    against: str = REFERENCES


def table_of(name: str, runs: Sequence[Path], *flags: str) -> list[dict[str, str]]:
    """The rows of a table as its command writes them."""
    with TemporaryDirectory() as folder:
        out = Path(folder, "t.tsv")
        assert main(["table", "--name", name, "--runs", *map(str, runs), *flags, "--out", str(out)]) == 0
        return read_tsv(out)


def take_trees(runs: Sequence[Path]) -> None:
    """Leave in runs only what is measured on sentences without trees: nothing about relations."""
    for path in (run / name for run in runs for name in TREE_FILES):
        if path.exists():
            rows, [columns] = read_tsv(path), [line.split("\t") for line in read_lines(path)[:1]]
            kept = [
                row | ({"trees": NO_TREES} if "trees" in row else {}) for row in rows if row.get("role") != "syntactic"
            ]
            write_tsv(path, [] if path.name == "positions.tsv" else kept, columns)


def write_results(folder: Path, world: World) -> list[Path]:
    """Write every run of an experiment below `folder`, whose name is the experiment's, and return their folders."""
    made, runs = _once(world)
    shutil.copytree(made.name, folder, copy_function=shutil.copyfile, dirs_exist_ok=True)
    return [folder / run for run in runs]


@cache
def _once(world: World) -> tuple[TemporaryDirectory[str], list[Path]]:
    """A folder of a world's runs, which have the same numbers anywhere, only to be copied, and their places in it."""
    made = TemporaryDirectory(prefix="world")
    return made, [run.relative_to(made.name) for run in _written(Path(made.name), world)]


def _written(folder: Path, world: World) -> list[Path]:
    runs = []
    for seed in world.seeds:
        rng = np.random.default_rng(seed)
        weight = {a: rng.gamma(1.0, size=(world.layers, world.heads)) for a in ATTENTIONS}
        full = {a: [list(range(world.heads))] * world.layers for a in ATTENTIONS}
        runs.append(_model(folder, Run("baseline", None, None, seed), full, 92.0, world, weight, rng))
        for scope in SCOPES:
            for lam in ("0", *world.lams):
                limit = float(lam) * (12 if scope == "all" else 25)
                live = {a: [[h for h in range(world.heads) if a not in SCOPES[scope] or row[h] > limit]
                            for row in weight[a]] for a in ATTENTIONS}  # fmt: skip
                left = sum(len(row) for a in SCOPES[scope] for row in live[a])
                target = Target.of_choice("gates", left) if world.driven and lam != "0" else Target.of_penalty(lam)
                closed = 1 - sum(len(row) for a in ATTENTIONS for row in live[a]) / (3 * world.layers * world.heads)
                bleu = 92.3 - 6 * closed**4 + float(rng.normal(0, 0.15))
                runs.append(_gates(folder, Run("gates", scope, target, seed), live, rng, world))
                runs.append(_model(folder, Run("pruned", scope, target, seed), live, bleu, world, weight, rng))
                if world.scratch and scope == "all" and lam != "0":
                    again = Run("scratch", scope, target, seed)
                    own = np.random.default_rng([seed, 9])
                    runs.append(_model(folder, again, live, bleu - 1.5 * closed, world, weight, own))
    return runs


def _curve(path: Path, updates: Sequence[int], *, last_fall: float) -> None:
    """Three dev set losses, the last two of them a tenth of all updates apart."""
    losses = (1.5, 1.0, 1.0 - last_fall)
    lines = [json.dumps({"update": n, "dev_loss": loss}) for n, loss in zip(updates, losses, strict=True)]
    write_lines(path / "train.jsonl", lines)


def _bleu(run: Path, bleu: float, against: str, rng: np.random.Generator) -> None:
    """BLEU of about this score, from sentences of ten words with a matching share of correct n-grams."""
    total = np.array([10, 9, 8, 7])
    counts = np.c_[np.full((500, 2), 10), rng.binomial(total, bleu / 100, (500, 4)), np.tile(total, (500, 1))]
    facts: Row = {"bleu": float(bleu_of(counts.sum(0))), "signature": "nrefs:1|tok:13a", "split": "test"}
    facts |= {"sentences": 500}
    chrf = {"chrf": 40 + facts["bleu"] / 2, "chrf_signature": "nrefs:1|nc:6"}
    write_json(run / "bleu.json", {**facts, **chrf, "against": against})
    write_tsv(run / "bleu_statistics.tsv", [dict(zip(STATISTICS, row, strict=True)) for row in counts], STATISTICS)


def _model(
    folder: Path, run: Run, live: Live, bleu: float, world: World, weight: Any, rng: np.random.Generator
) -> Path:
    path = folder / run.folder
    shape = facts_with_shape(live, original_heads=world.heads)
    updates = {"baseline": 3000, "pruned": 3300, "scratch": 3300}[run.kind]
    write_json(path / "model.json", {"shape": shape, "dev_loss": float(1 + rng.random()), "total_updates": updates})
    if run.kind != "pruned":
        _curve(path, (2000, 2700, 3000), last_fall=0.05 if run.kind == "baseline" else 0.005)
    # From a separate generator, so that the numbers in other files stay the same.
    _bleu(path, bleu, world.against, np.random.default_rng([run.seed, *run.folder.encode()]))
    lrp, confidence, signs = [], [], np.random.default_rng([run.seed, 7, *run.folder.encode()])
    for a in ATTENTIONS:
        for layer, heads in enumerate(live[a]):
            for head in heads:
                where = {"attention": a, "layer": layer, "head": head}
                total = sum(weight[a][layer][h] for h in heads)
                share = float(weight[a][layer][head] / total)
                for rule, relevance in zip(RULES, (share, rng.dirichlet([1.0, 2.0])[0]), strict=True):
                    signed = {"relevance": relevance - signs.random(), "relevance_of_sums": relevance * signs.random()}
                    lrp.append({"rule": rule, **where, **signed, "relevance_absolute": relevance, "steps": 50})
                confidence.append({**where, "confidence": float(rng.beta(4, 2)), "tokens": 900})
    write_tsv(path / "lrp.tsv", sorted(lrp, key=lambda row: RULES.index(row["rule"])), LRP_COLUMNS)
    write_tsv(path / "confidence.tsv", confidence, ("attention", "layer", "head", "confidence", "tokens"))
    write_tsv(path / "roles.tsv", _roles(live["enc_self"], world, rng), ROLE_COLUMNS)
    write_tsv(path / "coverage.tsv", [ALIGNMENT], tuple(ALIGNMENT))
    stand = [
        {"trees": "gold", "relation": relation, "position": position, "arcs": (40 + 9 * index) // abs(position)}
        for index, relation in enumerate(RELATIONS if world.trees else ())
        for position in (-9, -2, -1, 1, 2, 3)
    ]
    write_tsv(path / "positions.tsv", stand, ("trees", "relation", "position", "arcs"))
    # From a separate generator, as above.
    _alignment(path, live["dec_enc"], np.random.default_rng([run.seed, 6, *run.folder.encode()]))
    _cross_attention(path, live["dec_enc"], np.random.default_rng([run.seed, 7, *run.folder.encode()]))
    if run.kind in ("baseline", "pruned"):
        # From a separate generator, as above.
        _maps(path, live, np.random.default_rng([run.seed, 5, *run.folder.encode()]))
    if run.kind == "baseline":
        _speed(path, run, world)
        _masking(path, world, weight, rng)
        _dynamics(path, world)
        _selection(path, world, run.seed)
    return path


def _roles(live: list[list[int]], world: World, rng: np.random.Generator) -> list[Row]:
    rows: list[Row] = []

    def add(layer: int, head: int, role: str, name: str, values: tuple[Any, ...]) -> None:
        accuracy, *_, holds = values
        ends: tuple[float | None, ...] = (None,) * 4
        if accuracy is not None:
            excess = accuracy - (0.9 if role.startswith("positional") else (values[1] or 0.4) + 0.1)
            ends = (0.9 * accuracy, 1.1 * accuracy, excess - 0.04, excess + 0.04)
        rows.append(dict(zip(ROLE_COLUMNS, ("gold", layer, head, role, name, *values, *ends, holds), strict=True)))

    for layer, heads in enumerate(live):
        for head in heads:
            for offset in ("-2", "-1", "0", "+1", "+2"):
                chosen = offset == ("-1", "+1")[head % 2] and layer == 1 and head < 2
                accuracy = 0.95 if chosen else float(rng.uniform(0, 0.5))
                add(layer, head, "positional", offset, (accuracy, None, 1300, int(chosen)))
                add(layer, head, "positional_words", offset, (accuracy - 0.01 * head, None, 900, 0))
            for index, name in enumerate(f"{relation} {way}" for relation in RELATIONS for way in DIRECTIONS):
                accuracy, baseline = float(rng.beta(1.2, 3)), 0.35 + 0.05 * index
                measured = (accuracy, baseline, 120, int(accuracy > baseline + 0.1))
                add(layer, head, "syntactic", name, measured if world.trees else (None, None, 0, 0))
            rare = layer == 0 and head == 2
            add(layer, head, "rare", "rarest", (0.5 if rare else 0.1, None, 200, 0))
            add(layer, head, "rare", "one of two rarest", (0.6 if rare else 0.2, None, 200, int(rare)))
    return rows


def _alignment(path: Path, live: list[list[int]], rng: np.random.Generator) -> None:
    """The second layer's even heads align; the input step has a lower error rate than the output step."""
    rows: list[Row] = []
    for step, better in (("output", 0.0), ("input", 0.05)):
        for layer, heads in enumerate(live):
            for head in heads:
                aligns = layer == 1 and head % 2 == 0
                aer = float(rng.uniform(0.2, 0.4) if aligns else rng.uniform(0.6, 1)) - better
                ends = {"aer_low": aer - 0.02, "aer_high": aer + 0.02, "precision": 0.98 - aer, "recall": 1.02 - aer}
                gain = {"gain": 0.55 - aer, "gain_low": 0.53 - aer, "gain_high": 0.57 - aer}
                where = {"step": step, "layer": layer, "head": head, "aer": aer, **ends, "offset": -1}
                counts = {"links": 900, "target_words": 950, "pairs": 100, "aligns": int(aligns)}
                rows.append({**where, "offset_aer": 0.55, **gain, **counts})
    write_tsv(path / "alignment_heads.tsv", rows, ALIGNMENT_COLUMNS)


def _cross_attention(path: Path, live: list[list[int]], rng: np.random.Generator) -> None:
    """The first layer's first head attends to what was written last, later layers' heads to what is being written."""
    rows: list[Row] = []
    for role in CROSS_ROLES:
        for layer, heads in enumerate(live):
            for head in heads:
                holds = role == ("written last" if (layer, head) == (0, 0) else "being written" if layer else "")
                share = float(rng.uniform(0.5, 0.9) if holds else rng.uniform(0.0, 0.25))
                ends = {"low": share - 0.02, "high": share + 0.02, "offset": 0, "offset_share": 0.2}
                gain = {"gain_low": share - 0.22, "gain_high": share - 0.18, "cases": 900, "pairs": 100}
                told = {"linked_by": "1.0 being written", "information": 2.5, "holds": int(holds)}
                rows.append({"layer": layer, "head": head, "role": role, "share": share, **ends, **gain, **told})
    write_tsv(path / "cross_attention_roles.tsv", rows, CROSS_ATTENTION_COLUMNS)


def _maps(path: Path, live: Live, rng: np.random.Generator) -> None:
    """Two sentences, the first of them with a tree, the last with markup; each word is one subword."""
    words, relations, tree_heads = (list(column) for column in zip(*SENTENCE, strict=True))
    written = ["\u2581крестья", "не", "\u2581продали", "\u2581<b>"]
    sizes = {"enc_self": (len(words) + 1,) * 2, "dec_self": (len(written) + 1,) * 2}
    sizes["dec_enc"] = (len(written) + 1, len(words) + 1)
    sentences = []
    for number, forms in enumerate((words, [*words[:-1], "<script>alert(1)</script>"])):
        counts = {kind: sum(len(heads) for heads in live[kind]) for kind in sizes}
        weights = {kind: packed(rng.dirichlet([0.15] * keys, size=(counts[kind], queries)))
                   for kind, (queries, keys) in sizes.items()}  # fmt: skip
        sentence = {"number": 3 * number, "words": forms, "relations": relations if not number else ["dep"] * 9}
        sentence |= {"tree_heads": tree_heads, "subwords": ["\u2581" + word for word in forms]}
        sentence |= {"membership": [[[word, 1.0]] for word in range(9)], "weights": weights}
        sentences.append({**sentence, "translation": "крестьяне продали <b>", "target_subwords": written})
    write_json(path / "maps.json", sentences)


def _selection(path: Path, world: World, seed: int) -> None:
    """After fine-tuning, chosen heads hardly beat random ones at 9 heads, but do at 4; when heads are only masked,
    importance is best. Gates and subset pruning score lower straight after their own training."""
    of = 3 * world.layers * world.heads
    masked, tuned = [], []
    for kept, gap in ((9, 0.0), (4, 5.0)):
        for draw in range(1, 4):
            masked.append((f"random{draw}-{kept}", kept, 10.0 + draw + kept))
            tuned.append((f"selected/all/random{draw}-{kept}", kept, 80.0 + draw + kept))
            masked.append((f"stratified{draw}-{kept}", kept, 20.0 + 2 * draw + kept))
            tuned.append((f"selected/all/stratified{draw}-{kept}", kept, 82.0 + draw / 2 + kept))
        tuned.append((f"selected/all/example_layer-{kept}", kept, 83.0 + kept + gap))
        masked += [(f"{name}-{kept}", kept, 30.0 + kept) for name in ("example_layer", "token", "optimal", "reversed")]
        tuned += [(f"selected/all/{name}-{kept}", kept, 82.5 + kept + gap) for name in ("lrp", "dsp")]
        tuned.append((f"selected/all/keep-{kept}", kept, 81.5 + kept + 2 * gap))
        tuned += [(f"pruned/all/{name}-{kept}", kept, 75.0 + kept) for name in ("keep", "dsp")]
    tuned += [("selected/all/lam-0", of, 93.5), ("pruned/all/lam-0", of, 93.0), ("pruned/all/lam-0.1", 9, 70.0)]

    def facts(bleu: float) -> Row:
        return {"bleu": bleu + seed, "bleu_change": bleu - 92, "p_value": 0.001 if abs(bleu - 92) > 1 else 0.4}

    rows = [{"target": target, "kept": kept, "of": of, **facts(bleu)} for target, kept, bleu in masked]
    write_tsv(path / "masked.tsv", rows, ("target", "kept", "of", "bleu", "bleu_change", "p_value"))
    told = {"of": of, "updates": 800}
    rows = [{"run": f"{run}/seed-{seed}", "kept": kept, **told, **facts(bleu)} for run, kept, bleu in tuned]
    write_tsv(path / "compared.tsv", rows, ("run", "kept", "of", "updates", "bleu", "bleu_change", "p_value"))


def _speed(path: Path, run: Run, world: World) -> None:
    rows = []
    for size in (1, 5, 64):
        for timed in (run, *(Run("pruned", "all", Target.of_penalty(lam), run.seed) for lam in world.lams)):
            gain = (timed.target and timed.target.lam) or 0.0
            ratio = {"ratio": 1 + gain, "ratio_low": 1 + gain / 2, "ratio_high": 1 + 2 * gain}
            rate = {"examples_per_second": 20 * size * (1 + gain), "examples_per_second_sd": 0.5}
            facts = {"repeats": 6, "sentences": 64, "subwords_per_example": 14.5, "heads": 16, "of": 36}
            memory = {"parameters": 7000, "disk_mb": 2.5, "peak_memory_mb": 300.0, "device": "CPU, 1 threads"}
            rows.append({"run": timed.folder, "batch_sentences": size, **rate, **ratio, **facts, **memory})
    write_tsv(path / "speed.tsv", rows, tuple(rows[0]))


def _masking(path: Path, world: World, weight: Any, rng: np.random.Generator) -> None:
    _heads_masked(path, world, weight, rng)
    layers: list[Row] = []
    for kind, layer in itertools.product(ATTENTIONS, range(world.layers)):
        chosen = {"head_chosen": 0, "bleu": 90.0 - layer, "bleu_change": -2.0 - layer, "p_value": 0.02}
        oracle = {"head_oracle": 1, "bleu_oracle": 91.0, "bleu_change_oracle": -1.0, "p_value_oracle": 0.001}
        layers.append({"attention": kind, "layer": layer, "heads": world.heads, **chosen, **oracle})
    write_tsv(path / "layers_to_one.tsv", layers, tuple(layers[0]))
    _masked_in_steps(path)


def _heads_masked(path: Path, world: World, weight: Any, rng: np.random.Generator) -> None:
    """The importance of each head, and the model's score without it."""
    places = itertools.product(ATTENTIONS, range(world.layers), range(world.heads))
    heads: list[Row] = [{"attention": a, "layer": layer, "head": head} for a, layer, head in places]
    cost = [float(weight[h["attention"]][h["layer"]][h["head"]]) for h in heads]
    forms = [
        {**h, "form": form, "importance": c + 0.1 * rng.random(), "importance_normalised": c / 3}
        for form in ("example", "token", "batch", "signed")
        for h, c in zip(heads, cost, strict=True)
    ]
    write_tsv(path / "importance.tsv", forms, tuple(forms[0]))
    causal = [{**h, "causal_gate": c / 9, "effect": "facilitates" if c > 1 else "irrelevant"} for h, c in
              zip(heads, cost, strict=True)]  # fmt: skip
    write_tsv(path / "causal.tsv", causal, tuple(causal[0]))
    for name in ("ablation.tsv", "ablation.dev.tsv"):
        changes = [round(0.4 - c + float(rng.normal(0, 0.1)), 3) for c in cost]
        found = zip(heads, changes, strict=True)
        rows = [{**h, "bleu": 92 + c, "bleu_change": c, "p_value": 0.1 ** (1 - c)} for h, c in found]
        write_tsv(path / name, rows, tuple(rows[0]))


def _masked_in_steps(path: Path) -> None:
    """Curves that fall more steeply for later orders; for the first order, also those of a model in training."""
    orders = ("example", "token", "batch", "signed", "ablation", "ablation_oracle", "random-1")
    walks = [*((order, "all") for order in orders), *(("example", kind) for kind in ATTENTIONS)]
    curves: list[Row] = []
    for (fall, (order, a)), k in itertools.product(enumerate(walks, start=1), range(5)):
        lost, behind = fall * k**2, (fall - 1) * k**2
        where = {"order": order, "attention": a, "masked": k, "of": 4, "share": k / 4}
        change = {"bleu": 92 - lost, "bleu_change_low": -lost - k, "bleu_change_high": -lost + k}
        kept = {"bleu_kept_low": max(0, 1 - (lost + k) / 92), "bleu_kept_high": max(0, 1 - (lost - k) / 92)}
        ends = {"bleu_behind_low": behind - k, "bleu_behind_high": behind + k}
        curves.append({**where, **change, **kept, "bleu_behind": behind, **ends})
    write_tsv(path / "masking_curve.tsv", curves, tuple(curves[0]))
    checkpoints = []
    for update, row in itertools.product((0, 10, 30), curves[:5]):
        when = {"update": update, "epoch": update / 4, "finished": int(update == 30)}
        same = {name: row[name] for name in row if name != "bleu" and "behind" not in name}
        checkpoints.append({**when, **same, "bleu": row["bleu"] * update / 30})
    write_tsv(path / "checkpoints.tsv", checkpoints, tuple(checkpoints[0]))


def _dynamics(path: Path, world: World) -> None:
    """Measures that rise with the updates and with the head's number."""
    measured = [("confidence", ""), ("positional", "-1"), ("positional", "+1"), ("positional_words", "-1")]
    measured += [("syntactic", f"nsubj {way}") for way in ("dependent-to-head", "head-to-dependent")]
    measured += [("rare", "rarest"), ("rare", "one of two rarest")]
    rows: list[Row] = []
    for update, layer, head in itertools.product((2, 10, 30), range(world.layers), range(world.heads)):
        for number, (role, name) in enumerate(measured):
            share = round((update + head + number + layer) / 50, 4)
            where: Row = {"update": update, "finished": int(update == 30), "layer": layer, "head": head}
            spread: Row = {"low": share - 0.02, "high": share + 0.02} if name else {"low": None, "high": None}
            baseline = 0.3 if role == "syntactic" else None
            rows.append({**where, "role": role, "name": name, "accuracy": share, **spread, "baseline": baseline})
    write_tsv(path / "dynamics.tsv", rows, tuple(rows[0]))


def _gates(folder: Path, run: Run, live: Live, rng: np.random.Generator, world: World) -> Path:
    path = folder / run.folder
    assert run.scope is not None
    rows: list[Row] = []
    for a in SCOPES[run.scope]:
        for layer, heads in enumerate(live[a]):
            for head in range(world.heads):
                is_open, between = int(head in heads), int(rng.random() < 0.1)
                values = (a, layer, head, 5.0 * is_open - 2, 0.01 + 0.98 * is_open, is_open, between)
                rows.append(dict(zip(GATE_COLUMNS, values, strict=True)))
    write_tsv(path / "heads.tsv", rows, GATE_COLUMNS)
    lines = []
    for update in range(30, 310, 30):
        done = update / 300
        gates = {a: [[0.94 + (0.05 if h in heads else -0.93) * done for h in range(world.heads)]
                     for heads in live[a]] for a in SCOPES[run.scope]}  # fmt: skip
        lines.append(json.dumps({"update": update, "p_open": gates}))
    write_lines(path / "gates.jsonl", lines)
    full = {a: [list(range(world.heads))] * world.layers for a in ATTENTIONS}
    shape = facts_with_shape(full, original_heads=world.heads)
    write_json(path / "model.json", {"shape": shape, "dev_loss": 1.0, "total_updates": 3300})
    _curve(path, (100, 200, 300), last_fall=0.005 if run.scope == "all" else 0.05)
    return path


def write_results_without(folder: Path, kinds: Sequence[str]) -> list[Path]:
    """Results of models that never had some kinds of attention."""
    runs = write_results(folder, World(layers=2, heads=3, lams=("0.01", "0.1")))
    for run in runs:
        facts = read_json(run / "model.json")
        live = facts["shape"]["live_heads"]
        facts["shape"]["live_heads"] = {kind: [] if kind in kinds else layers for kind, layers in live.items()}
        if kinds == ("dec_self",):
            facts["shape"]["decoder_past"] = "ssru"
        write_json(run / "model.json", facts)
        for path in run.glob("*.tsv"):
            rows = read_tsv(path)
            if rows and "attention" in rows[0]:
                write_tsv(path, [row for row in rows if row["attention"] not in kinds], tuple(rows[0]))
        if "dec_enc" in kinds:
            (run / "alignment_heads.tsv").unlink(missing_ok=True)
    return runs
