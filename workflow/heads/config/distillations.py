"""The distilled parts of corpora: their files, and the pretrained models that translate them.

The rules use it through `heads.config.plan.Plan`, so that nothing heavy is imported.
"""

from collections.abc import Mapping
from pathlib import Path

from heads.base.files import UserError
from heads.base.names import BESIDE, REFERENCES, UNPRUNED
from heads.base.packaged import slug
from heads.config.corpora import AnyCorpus
from heads.config.corpus_entries import distilled_of
from heads.config.corpus_parts import Distilled
from heads.config.experiment import Experiment
from heads.interop.formats import format_of


class Distillations:
    """The distilled parts of corpora by the name of their files, and their models by the name of a folder."""

    def __init__(self, corpora: Mapping[str, AnyCorpus]) -> None:
        """corpora: by name.

        Raises UserError if a model would have the folder of another or of logs, and as `writer_of_test` does.
        """
        self.writers = {name: writer_of_test(name, corpus) for name, corpus in corpora.items()}
        self.parts = {name: part for corpus in corpora.values() for name, part in distilled_of(corpus).items()}
        self.models: dict[str, str] = {}
        for part in self.parts.values():
            name = slug(part.distilled_by)
            if name in BESIDE:
                raise UserError(
                    f"distilled_by: {part.distilled_by} would lie in results/models/{name}, which has another use: "
                    "rename it."
                )
            other = self.models.setdefault(name, part.distilled_by)
            if other != part.distilled_by:
                raise UserError(
                    f"distilled_by: {other} and {part.distilled_by} would share a folder: rename one of the two."
                )

    def files_of_model(self, model: str) -> list[str]:
        """The files that a model is imported from, by the name of its folder in results/models.

        Raises UserError if there is no such model.
        """
        try:
            found, folder = format_of(self.models[model])
        except UserError as error:
            raise UserError(f"distilled_by: {error}") from None
        return [str(path) for path in found.files(folder)]

    def model_of(self, part: str) -> str:
        """The folder of the model that translates a part."""
        return f"results/models/{slug(self.parts[part].distilled_by)}"

    def text_of(self, part: str) -> list[str]:
        """The file of the sentences to translate, local or downloaded; empty if they are documentation."""
        source = self.parts[part].source
        return [] if source is None else [str(source.on_disk(Path("results/downloads")))]

    def member_of(self, part: str) -> str:
        """The name of the sentences' file in an archive; empty if it is in none."""
        source = self.parts[part].source
        return (source and source.member) or ""

    def against(self, experiment: Experiment) -> str:
        """What a resolved experiment is scored against: references, or the model that wrote the targets of test."""
        writer = self.writers[experiment.corpus]
        if not writer:
            return REFERENCES
        return UNPRUNED if writer == experiment.baseline.pretrained else f"model {writer}"


def writer_of_test(name: str, corpus: AnyCorpus) -> str:
    """The model that wrote the targets of a test set, which may be cut from train; "" if people did.

    Raises UserError if there are several writers, since a score would be against all of them at once.
    """
    tested = corpus.parts["test"] or corpus.parts["train"]
    writers = {part.distilled_by if isinstance(part, Distilled) else "" for part in tested}
    if len(writers) > 1:
        raise UserError(
            f"corpora.{name}.test has targets by several writers, so a score would measure neither quality nor "
            "fidelity: name parts there that are all distilled_by one model, or none of them (without any, test is cut "
            "from train)."
        )
    return min(writers, default="")
