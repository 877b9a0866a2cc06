# Shared by all .smk files: the plan, the constraints of wildcards, the folders of runs.
import json
import os
import re
import shlex
import sys
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger

if not workflow.current_basedir.is_local:
    raise WorkflowError("This workflow brings a package with it: clone it and name the clone's workflow/Snakefile.")
WORKFLOW = Path(str(workflow.current_basedir)).parent
sys.path.insert(0, str(WORKFLOW))

from heads.base import names
from heads.base.executors import check_executor
from heads.base.files import UserError
from heads.base.modules import reached
from heads.base.runs import SCORED_RUN
from heads.base.targets import ANY, COUNT, GATED, Target
from heads.config.checks import check_target
from heads.config.plan import Plan
from heads.config.settings import stage_settings

# Files of the workflow are inputs too: with paths from the folder in which Snakemake runs, if they are below it.
HERE = WORKFLOW.relative_to(Path.cwd()) if WORKFLOW.is_relative_to(Path.cwd()) else WORKFLOW
CODE = f"{HERE}/heads"
REFERENCE = f"{HERE}/heads/tables/reference"
# Packages and modules that measure, make tables and draw.
COMPUTING = (
    *("analysis", "analysis.lrp", "syntax", "tables", "figures", "explore"),
    *(
        "base.bootstrap",
        "pruning.selection",
        "pruning.rungs",
        "pruning.ladders",
        "pruning.closed_form",
        "pruning.surgeon",
    ),
)


def code_of(stage, *functions):
    """The modules that a stage computes with, so that its rule reruns if one is edited; trainings list none.

    functions: those that the stage calls by name, such as `tables.units.units_table`.
    """
    modules = [f"cli.{stage}", *(name.rpartition(".")[0] for name in functions)]
    return [f"{CODE}/{name.replace('.', '/')}.py" for name in reached(modules, COMPUTING)]


# The priority of long jobs, except trainings, and of the jobs they wait for: left for the end, one of them would keep a
# core busy while the others have nothing to do.
FIRST = 10


def one_sentence(question):
    """The same function, whose errors Snakemake reports as its own: one message, no traceback."""

    def asked(*words):
        try:
            return question(*words)
        except UserError as error:
            raise WorkflowError(str(error)) from None

    return asked


def in_sentences(plan):
    """A plan, or a part of it, with methods that report errors in one sentence."""
    for name in dir(plan):
        if not name.startswith("_") and callable(method := getattr(plan, name)):
            setattr(plan, name, one_sentence(method))
    return plan


PLAN = in_sentences(one_sentence(Plan)(config))
RUN = PLAN.run
# Once: a job in its own process reads this file again.
if workflow.is_main_process:
    for note in PLAN.notes():
        logger.warning(note)

ENVIRONMENT = {"PYTHONPATH": str(WORKFLOW)}
# The interpreter that runs Snakemake also runs the stages, unless conda brings its own.
if not workflow.deployment_settings.deployment_method:
    ENVIRONMENT["PATH"] = str(Path(sys.executable).parent)
IS_MODULE = not workflow.modifier.is_main_snakefile()
if IS_MODULE:
    # A prefix of shell commands would apply to all workflows, so the environment is set instead.
    for name, folder in ENVIRONMENT.items():
        others = [other for other in os.environ.get(name, "").split(os.pathsep) if other not in ("", folder)]
        os.environ.update({name: os.pathsep.join([folder, *others])})
else:
    # What a variable already names comes after ours; Snakemake formats the prefix, hence the doubled braces.
    exports = [
        f"export {name}={shlex.quote(folder)}${{{{{name}:+:${name}}}}}; " for name, folder in ENVIRONMENT.items()
    ]
    shell.executable("bash")
    # With exec, a signal reaches the training, which saves its state; an older bash would keep it to itself.
    shell.prefix(f"set -euo pipefail; {''.join(exports)}exec ")


def any_of(experiments):
    """The constraint of rules for these experiments only; a rule derived from such a rule sets its own."""
    return "|".join(map(re.escape, experiments)) or "(?!)"


wildcard_constraints:
    experiment=any_of(PLAN.experiments),
    corpus="|".join(map(re.escape, PLAN.corpora)),
    split="|".join(names.SPLITS),
    side="|".join(names.SIDES),
    scope="|".join(names.GATED_SCOPES),
    target=GATED,
    choice=ANY,
    seed=COUNT,
    trees="|".join(names.PARSED_TREES),
    run=SCORED_RUN,


IMPORTED = any_of(PLAN.imported())
TRAINED_HERE = any_of([name for name in PLAN.experiments if name not in PLAN.imported()])
SCOPES_OF_HEADS = "|".join(names.SCOPES)
BPE = "results/{experiment}/bpe"
BASELINE = "results/{experiment}/baseline/seed-{seed}"
GATES = "results/{experiment}/gates/{scope}/{target}/seed-{seed}"
PRUNED = "results/{experiment}/pruned/{scope}/{target}/seed-{seed}"
SCRATCH = "results/{experiment}/scratch/{scope}/{target}/seed-{seed}"
SELECTED = f"results/{{experiment}}/selected/{names.CHOICE_SCOPE}/{{choice}}/seed-{{seed}}"
GATES_FROM_SCRATCH = "results/{experiment}/gates_from_scratch/{scope}/{target}/seed-{seed}"
PRUNED_FROM_SCRATCH = "results/{experiment}/pruned_from_scratch/{scope}/{target}/seed-{seed}"
ANY_RUN = "results/{experiment}/{run}"
MODEL = ("model.safetensors", "model.json")


def corpus_file(name):
    """Input function: a file of the corpus that the experiment uses."""
    return lambda wildcards: f"{PLAN.corpus_of(wildcards.experiment)}/{name.format(**dict(wildcards.items()))}"


class ExistingFiles:
    """Files that a corpus names; if one is missing, iterating over them raises an error of one sentence.

    Snakemake would add a traceback to an error raised by the input function itself.
    """

    def __init__(self, corpus, paths):
        self.corpus, self.paths = corpus, paths

    def __iter__(self):
        # Rules of a workflow that uses this one may make the file too; by now all rules are known.
        PLAN.check_there(self.corpus, self.paths, lambda path: any(rule.is_producer(path) for rule in workflow.rules))
        return iter(self.paths)


def there(files, made):
    """Input function: files that a corpus names, as `ExistingFiles`; if `made` exists, they may be missing."""

    def asked(wildcards):
        paths = files(wildcards)
        return (
            paths if Path(made.format(**dict(wildcards.items()))).exists() else ExistingFiles(wildcards.corpus, paths)
        )

    return asked


def written(settings):
    """Settings as JSON with sorted keys, because Snakemake compares params as text."""
    return json.dumps(settings, sort_keys=True)


def settings_of(stage):
    """Param: only the settings of one stage, as JSON, so that a change elsewhere does not rerun it."""
    return lambda wildcards: written(stage_settings(PLAN.experiments[wildcards.experiment], stage))


def gates_of(experiments):
    """Param: the hard-concrete settings of each of these experiments, as JSON."""
    return written({name: PLAN.experiments[name].written["gates"]["hard_concrete"] for name in experiments})


def fitting(files):
    """Input function: these files, once the target in the path is checked against the model's heads."""

    def asked(wildcards):
        words = dict(wildcards.items())
        target = Target.parse(words.get("target") or words["choice"])
        one_sentence(check_target)(
            PLAN.experiments[words["experiment"]], words.get("scope", names.CHOICE_SCOPE), target
        )
        return files(wildcards) if callable(files) else files.format(**words)

    return asked


def scored_model(name):
    """Inputs: a scored model, once it is known that the runs of its experiment have the file that is made from it."""

    def asked(wildcards):
        PLAN.check_made(wildcards.experiment, name)
        return f"{ANY_RUN}/model.safetensors".format(**dict(wildcards.items()))

    return {"model": asked, "shape": f"{ANY_RUN}/model.json"}


def growing(amount):
    """Resource: this amount, and as much again each time that a job is tried again."""
    return lambda wildcards, attempt: attempt * amount
