"""The folder in which one model is pruned: a later attempt does not make again what it holds."""

import json
import shutil
from collections.abc import Mapping
from pathlib import Path

from heads.base.files import UserError, read_json, write_json
from heads.base.targets import Target

REQUEST = "request.json"


class WorkingFolder:
    """The folder of one pruning, with its request, the answered text, and every model that was made on the way."""

    def __init__(self, folder: Path, request: Mapping[str, object]) -> None:
        """request: all that the pruning depends on. Raises UserError if another request left the folder."""
        self.folder = folder
        self.texts = folder / "texts"
        self.smaller_vocabulary = folder / "smaller_vocabulary"
        self.fine_tuned = folder / "fine_tuned"
        self.exported = folder / "exported"
        """The model in the format that was asked for; each attempt writes it anew."""
        wanted, path = json.loads(json.dumps(request)), folder / REQUEST
        if folder.is_dir() and any(folder.iterdir()) and not (path.is_file() and read_json(path) == wanted):
            raise UserError(
                f"{folder} was left by a pruning of another model, text, language or size, by another way, or by "
                "another version of heads: finish that one, or delete the folder."
            )
        shutil.rmtree(self.exported, ignore_errors=True)
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, wanted)

    def with_gates(self, target: Target) -> Path:
        """The folder of the model that was trained with gates on its way to a target."""
        return self.folder / "with_gates" / str(target)

    def pruned(self, target: Target) -> Path:
        """The folder of the pruned model of a target."""
        return self.folder / "pruned" / str(target)

    @property
    def has_pruned(self) -> bool:
        """Whether a model was pruned before this attempt."""
        return (self.folder / "pruned").is_dir()

    def finish(self, out: Path) -> None:
        """Put the exported model where it belongs, and delete the folder with all else."""
        self.exported.rename(out)
        shutil.rmtree(self.folder)
