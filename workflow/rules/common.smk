# What all rule files share: the resolved experiments, the names that wildcards may take, the folders of runs.
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
from heads.files import UserError, write_text

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

# The interpreter that runs Snakemake also runs the stages, unless conda gives each rule its own.
python_first = (
    ""
    if workflow.deployment_settings.deployment_method
    else f"export PATH={shlex.quote(str(Path(sys.executable).parent))}:$PATH; "
)
shell.executable("bash")
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(WORKFLOW))}; {python_first}")


wildcard_constraints:
    experiment="|".join(map(re.escape, EXPERIMENTS)),
    corpus="|".join(map(re.escape, config["corpora"])),
    split="|".join(names.SPLITS),
    side="|".join(names.SIDES),
    scope="|".join(names.SCOPES),
    lam=r"[0-9.]+",
    seed=r"[0-9]+",
    stage="|".join(settings.STAGE_SECTIONS),
    run=r"(baseline|(gates|pruned|scratch)/[a-z_]+/lam-[0-9.]+)/seed-[0-9]+",


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


rule settings:
    """The settings that one stage of an experiment is told, and nothing else."""
    output:
        "results/{experiment}/settings/{stage}.yaml",
    log:
        "results/{experiment}/settings/log/{stage}.txt",
    benchmark:
        "results/{experiment}/settings/bench/{stage}.tsv"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda wildcards: settings.stage_settings(EXPERIMENTS[wildcards.experiment], wildcards.stage),
    run:
        write_text(Path(output[0]), yaml.safe_dump(params.content, sort_keys=False))


rule corpus_settings:
    """The entry of one corpus in config.yaml."""
    output:
        "results/corpora/{corpus}/settings.yaml",
    log:
        "results/corpora/{corpus}/log/settings.txt",
    benchmark:
        "results/corpora/{corpus}/bench/settings.tsv"
    resources:
        mem_mb=200,
        runtime=5,
    params:
        content=lambda wildcards: config["corpora"][wildcards.corpus],
    run:
        write_text(Path(output[0]), yaml.safe_dump(params.content, sort_keys=False))
