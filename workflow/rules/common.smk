# Common ground of all .smk files: the resolved experiments, what wildcards may be, the folders of runs.
import re
import shlex
import sys
from pathlib import Path

import yaml

WORKFLOW = Path(workflow.basedir) / "workflow"
sys.path.insert(0, str(WORKFLOW))

from snakemake.exceptions import WorkflowError

from heads import names, settings
from heads.corpus import sources
from heads.figures.needs import ANIMATED
from heads.figures.needs import NEEDS as FIGURE_NEEDS
from heads.files import UserError, write_text
from heads.tables.needs import CORPUS_FILES, run_of
from heads.tables.needs import NEEDS as TABLE_NEEDS

try:
    EXPERIMENTS = settings.resolve(config)
    # Every URL that a corpus names, and the checksums that config.yaml gives, by the name of the downloaded file.
    entries = config["corpora"].values()
    DOWNLOADS = {sources.download_name(url): url for entry in entries for url in sources.downloads_of(entry)}
    CHECKSUMS = {sources.download_name(u): sha for entry in entries for u, sha in sources.checksums_of(entry).items()}
except UserError as error:
    # Told as Snakemake tells its own errors: one message, no traceback.
    raise WorkflowError(str(error)) from None

RUN = config["run"]
CODE = "workflow/heads"

# The interpreter that runs Snakemake also runs the stages, unless conda brings its own.
python_first = (
    ""
    if workflow.deployment_settings.deployment_method
    else f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
)
shell.executable("bash")
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(WORKFLOW))}; {python_first}")


# One way to write a number, as heads.names.number_text does: 0.05 and not .05, 0.050 or 5e-2.
LAM = r"(?:0|[1-9][0-9]*)(?:\.[0-9]*[1-9])?"
SEED = r"0|[1-9][0-9]*"


wildcard_constraints:
    experiment="|".join(map(re.escape, EXPERIMENTS)),
    corpus="|".join(map(re.escape, config["corpora"])),
    split="|".join(names.SPLITS),
    side="|".join(names.SIDES),
    scope="|".join(names.SCOPES),
    lam=LAM,
    seed=SEED,
    stage="|".join(settings.STAGE_SECTIONS),
    # Not gates: such a model has all its heads, open or closed; its score is that of the pruned one.
    run=rf"(baseline|(pruned|scratch)/(enc_self|all)/lam-({LAM}))/seed-({SEED})",


BPE = "results/{experiment}/bpe"
BASELINE = "results/{experiment}/baseline/seed-{seed}"
GATES = "results/{experiment}/gates/{scope}/lam-{lam}/seed-{seed}"
PRUNED = "results/{experiment}/pruned/{scope}/lam-{lam}/seed-{seed}"
SCRATCH = "results/{experiment}/scratch/{scope}/lam-{lam}/seed-{seed}"
ANY_RUN = "results/{experiment}/{run}"


def corpus_file(name):
    """Input function: a file of the corpus that the experiment uses."""

    def path(wildcards):
        filled = name.format(**{key: value for key, value in wildcards.items()})
        return f"results/corpora/{EXPERIMENTS[wildcards.experiment]['corpus']}/{filled}"

    return path


def run_folders(experiment, kinds=("baseline", "pruned", "scratch")):
    """Folders of an experiment's runs, in a fixed order: baselines, then by scope and lambda."""
    sweep = EXPERIMENTS[experiment]["sweep"]
    runs = [names.Run("baseline", None, None, seed) for seed in sweep["seeds"]]
    for kind in names.KINDS[1:]:
        for scope in names.SCOPES:
            lams = settings.lambdas(EXPERIMENTS[experiment], scope)
            if kind == "scratch":
                lams = [lam for lam in lams if lam != "0" and scope in sweep["scratch_scopes"]]
            runs += [names.Run(kind, scope, lam, seed) for lam in lams for seed in sweep["seeds"]]
    return [f"results/{experiment}/{run.folder}" for run in runs if run.kind in kinds]


def corpus_entry(corpus):
    """What a corpus is made of: its entry without the treebank, which is no part of it."""
    return {key: value for key, value in config["corpora"][corpus].items() if key != "trees"}


def files_of(entry):
    """Local files and downloads that an entry names."""
    downloads = [f"results/downloads/{sources.download_name(url)}" for url in sources.downloads_of(entry)]
    return downloads + [str(path) for path in sources.local_files_of(entry)]


def has_trees(experiment):
    """Whether the experiment's corpus has gold trees for its dev sentences, or a treebank."""
    entry = config["corpora"][EXPERIMENTS[experiment]["corpus"]]
    return entry["kind"] == "grammar" or "trees" in entry


def runs_read(need, experiments):
    """Folders of the runs that a table or figure reads; none of an experiment without trees if it needs them."""
    needs_trees = {"roles.tsv", "maps.json"} & {name for files in need.files.values() for name in files}
    readable = [e for e in experiments if has_trees(e) or not needs_trees]
    folders = [folder for e in readable for folder in run_folders(e, names.KINDS)]
    return [folder for folder in folders if need.wants(run_of(folder)[1])]
