"""Convert an external model, such as Firefox's, OPUS-MT's or a BERT, to a folder that can be pruned.

heads import firefox/en-pt -o my-model
"""

import sys
from pathlib import Path
from typing import Annotated

from heads.base.outputs import NEW_FOLDER
from heads.cli._flags import Labels, Languages
from heads.cli._signature import Written
from heads.interop.downloads import fetched
from heads.interop.opening import import_any


def run(
    model: Annotated[
        str, "a folder (Marian, save_pretrained), a name on the hub, or a Firefox translator such as firefox/en-de"
    ],
    /,
    *,
    output: Annotated[
        Path | None, "-o", Written(NEW_FOLDER), "folder to write; without it, the model is only fetched"
    ] = None,
    languages: Languages,
    labels: Labels = (),
) -> None:
    """Write the folder and say how to use it, or only fetch the model."""
    if output is None:
        print(fetched(model))
        return
    options = (languages.prefix, labels, languages.pair)
    imported = import_any(model, output, *options)
    if not imported.shape.encoder_only:
        print(f"heads translate {output} < source.txt", file=sys.stderr)
