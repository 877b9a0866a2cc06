"""Made-up results of a classifier: a translator's results in a classifier's files, with encoder heads only."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from fake_results import World, write_results
from heads.analysis.attention_maps import SIGNS, packed
from heads.base.files import read_json, read_jsonl, read_tsv, write_json, write_lines, write_tsv
from heads.text.special_ids import BOS, EOS
from shape_facts import facts_with_shape

LABELS = ("contradiction", "entailment", "neutral")
PREMISE, HYPOTHESIS = ("old", "farmers", "sold", "tools", "."), ("farmers", "<script>alert(1)</script>", "tools")
WORDS = (SIGNS[BOS], *PREMISE, SIGNS[EOS], *HYPOTHESIS, SIGNS[EOS])
MAJORITY = 40.0


def write_told(folder: Path, world: World) -> list[Path]:
    """Write every run of a classification experiment below `folder`, and return their folders."""
    runs = write_results(folder, world)
    shutil.rmtree(folder / "gates/enc_self")
    shutil.rmtree(folder / "pruned/enc_self")
    kept = [run for run in runs if run.exists()]
    for run in kept:
        _converted(run, world)
    return kept


def _converted(run: Path, world: World) -> None:
    facts = read_json(run / "model.json")
    live = facts["shape"]["live_heads"]
    heads = {**{kind: [] for kind in live}, "enc_self": live["enc_self"]}
    shape = facts_with_shape(heads, original_heads=world.heads, labels=3, target_subwords=3)
    write_json(run / "model.json", {**facts, "shape": shape})
    (run / "alignment_heads.tsv").unlink(missing_ok=True)
    for path in run.glob("*.tsv"):
        if path.name != "bleu_statistics.tsv":
            _told(path)
    if (run / "bleu.json").exists():
        score = read_json(run / "bleu.json")["bleu"]
        (run / "bleu.json").unlink()
        facts = {"accuracy": score, "matthews": score / 100, "majority": MAJORITY, "examples": 500}
        write_json(run / "accuracy.json", facts)
    if (run / "maps.json").exists():
        write_json(run / "maps.json", _maps(run, sum(map(len, heads["enc_self"]))))
    if (run / "gates.jsonl").exists():
        lines = [
            {**line, "p_open": {"enc_self": line["p_open"]["enc_self"]}} for line in read_jsonl(run / "gates.jsonl")
        ]
        write_lines(run / "gates.jsonl", map(json.dumps, lines))


def _told(path: Path) -> None:
    """Keep the rows of the encoder or of all kinds, with accuracy instead of BLEU."""
    rows: list[dict[str, Any]] = [
        {name.replace("bleu", "accuracy"): cell for name, cell in row.items()}
        for row in read_tsv(path)
        if row.get("attention", "all") in ("enc_self", "all")
    ]
    if path.name.startswith("ablation"):
        beside = {"matthews": 0.7, "matthews_change": 0.01}
        rows = [{**row, **beside, "matthews_p_value": 0.001 if row["head"] == "0" else 0.5} for row in rows]
    write_tsv(path, rows, tuple(rows[0]))


def _maps(run: Path, heads: int) -> list[dict[str, Any]]:
    """Two examples with one subword per word and an arc in either sentence; the second is classified wrongly."""
    rng = np.random.default_rng([*str(run.name).encode(), heads])
    tree_heads = [0] * len(WORDS)
    tree_heads[2], tree_heads[9] = 4, 9
    read = {
        "words": list(WORDS),
        "relations": ["nsubj" if head else "root" for head in tree_heads],
        "tree_heads": tree_heads,
        "subwords": [f"\u2581{word}" for word in WORDS],
        "membership": [[[place, 1.0]] for place in range(len(WORDS))],
    }
    return [
        {
            "number": 4 * number,
            **read,
            "wanted": LABELS[number],
            "label": LABELS[2 * number],
            "weights": {"enc_self": packed(rng.dirichlet([0.15] * len(WORDS), size=(heads, len(WORDS))))},
        }
        for number in (0, 1)
    ]
