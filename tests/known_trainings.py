"""Training commands on the experiment with known answers: one call per run, with changes to the settings by section."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from known_experiment import Known, command, settings

RATE = {"learning_rate": 0.00894427}


@dataclass(frozen=True)
class Train:
    """Runs training commands, each into a folder of its own below `out`."""

    known: Known
    out: Path

    def __call__(
        self,
        name: str,
        *,
        seed: int = 1,
        start: Path | None = None,
        flags: dict[str, Any] | None = None,
        **changes: Any,
    ) -> Path:
        """Return the folder of the run; flags replace the usual ones, changes are to the settings by section."""
        out, start = self.out / f"{name}-{len(list(self.out.iterdir()))}", start or self.known.baseline
        heads = self.known.folder / "heads.tsv"
        gated = {"scope": "all", "target": "lam-0.5", "heads": out / "heads.tsv", "gates_log": out / "gates.jsonl"}
        own: dict[str, dict[str, Any]] = {
            "baseline": {"checkpoints": out / "checkpoints"},
            "gates": {"start_model": start, **gated},
            "gates_from_scratch": {"unpruned": start, **gated},
            "scratch": {"unpruned": start, "heads": heads},
            "selected": {"start_model": start, "heads": heads},
        }
        told = {"settings": settings(out / "settings.yaml", **changes), "data": self.known.bpe, "seed": seed}
        told |= {"references": self.known.text("dev", "target"), "model": out, "history": out / "train.jsonl"}
        command(name, device="cpu", **{**told, **own[name], **(flags or {})})
        return out
