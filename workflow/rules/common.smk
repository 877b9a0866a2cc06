# Common ground of all .smk files: the resolved experiments, what wildcards may be, the folders of runs.
import re
import shlex
import sys
from pathlib import Path

WORKFLOW = Path(workflow.basedir) / "workflow"
sys.path.insert(0, str(WORKFLOW))

from snakemake.exceptions import WorkflowError

from heads.base import criteria, names
from heads.config import corpora, settings, sweep
from heads.config.corpus_parts import download_name
from heads.figures.needs import ACROSS, ANIMATED, FROM_SETTINGS
from heads.figures.needs import NEEDS as FIGURE_NEEDS
from heads.base.files import UserError, write_yaml
from heads.base.runs import SCORED, Run
from heads.base.targets import ANY, CHOSEN, CONTROL, COUNT, GATED, Target
from heads.tables.needs import CORPUS_FILES, run_of
from heads.tables.needs import NEEDS as TABLE_NEEDS

try:
    EXPERIMENTS = settings.resolve(config)
    # Every URL that a corpus names, and the checksums that config.yaml gives, by the name of the downloaded file.
    entries = config["corpora"].values()
    DOWNLOADS = {download_name(url): url for entry in entries for url in corpora.downloads_of(entry)}
    CHECKSUMS = {download_name(u): sha for entry in entries for u, sha in corpora.checksums_of(entry).items()}
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
shell.prefix(f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(WORKFLOW))}; {python_first}exec ")


wildcard_constraints:
    experiment="|".join(map(re.escape, EXPERIMENTS)),
    corpus="|".join(map(re.escape, config["corpora"])),
    split="|".join(names.SPLITS),
    side="|".join(names.SIDES),
    scope="|".join(names.SCOPES),
    target=GATED,
    choice=ANY,
    seed=COUNT,
    stage="|".join(settings.STAGE_SECTIONS),
    run=SCORED,


BPE = "results/{experiment}/bpe"
BASELINE = "results/{experiment}/baseline/seed-{seed}"
GATES = "results/{experiment}/gates/{scope}/{target}/seed-{seed}"
PRUNED = "results/{experiment}/pruned/{scope}/{target}/seed-{seed}"
SCRATCH = "results/{experiment}/scratch/{scope}/{target}/seed-{seed}"
SELECTED = f"results/{{experiment}}/selected/{names.CHOICE_SCOPE}/{{choice}}/seed-{{seed}}"
PENALTY_GATES = "results/{experiment}/penalty_gates/{scope}/{target}/seed-{seed}"
PENALTY_SCRATCH = "results/{experiment}/penalty_scratch/{scope}/{target}/seed-{seed}"
ANY_RUN = "results/{experiment}/{run}"
ABLATION_OTHER = "ablation.other.tsv"


def corpus_file(name):
    """Input function: a file of the corpus that the experiment uses."""

    def path(wildcards):
        filled = name.format(**{key: value for key, value in wildcards.items()})
        return f"results/corpora/{EXPERIMENTS[wildcards.experiment]['corpus']}/{filled}"

    return path


def folder_of(file):
    """Param: the folder of an input or output with this name; as text, for the cache writes params down as JSON."""
    return lambda wildcards, input, output: str(Path(getattr(input, file, None) or getattr(output, file)).parent)


def run_folders(experiment, kinds=("baseline", "pruned", "scratch", "selected", "penalty_scratch")):
    """Folders of an experiment's runs, in a fixed order: baselines, then by kind, scope and target."""
    swept = EXPERIMENTS[experiment]["sweep"]
    found = [Run("baseline", None, None, seed) for seed in swept["seeds"]]
    for kind in ("gates", "pruned", "scratch", "penalty_gates", "penalty_scratch"):
        for scope in names.SCOPES:
            targets = sweep.targets(EXPERIMENTS[experiment], scope)
            if "scratch" in kind or "penalty" in kind:
                # The paper's comparisons are about lambdas; with a budget they are made when asked for by path.
                scopes = swept["scratch_scopes" if kind == "scratch" else "penalty_scratch_scopes"]
                targets = [target for target in targets if target.has_price and scope in scopes]
            elif scope == names.CHOICE_SCOPE:
                targets += [choice for choice in fine_tuned(experiment) if choice.by_gates and choice not in targets]
            found += [Run(kind, scope, target, seed) for target in targets for seed in swept["seeds"]]
    choices = [*fine_tuned(experiment), *trained_on(experiment)]
    choices = [CONTROL, *choices] if choices else []
    found += [Run("selected", names.CHOICE_SCOPE, choice, seed) for choice in choices for seed in swept["seeds"]]
    return [f"results/{experiment}/{run.folder}" for run in found if run.kind in kinds]


def fine_tuned(experiment):
    """The choices of heads, such as `random2-12`, that are cut out of the baseline, which is then trained on."""
    return sweep.choices(EXPERIMENTS[experiment], fine_tuned=True)


def trained_on(experiment):
    """The lambdas whose heads are treated likewise, as targets."""
    if names.CHOICE_SCOPE not in EXPERIMENTS[experiment]["sweep"]["trained_on_scopes"]:
        return []
    targets = sweep.targets(EXPERIMENTS[experiment], names.CHOICE_SCOPE)
    return [target for target in targets if target.has_price]


def entry_without(corpus, *keys):
    """The entry of a corpus without some of its keys, so that a change of those reruns nothing that is not given them."""
    return {key: value for key, value in config["corpora"][corpus].items() if key not in keys}


def corpus_entry(corpus):
    """What a corpus is made of: neither treebanks nor the test set of another domain are a part of it."""
    return entry_without(corpus, "trees", "parser_trees", names.OTHER)


def other_entry(corpus):
    """The entry of a corpus with the test set of another domain."""
    if names.OTHER not in config["corpora"][corpus]:
        raise WorkflowError(f"corpora.{corpus} has no test set of another domain: name its parts under {names.OTHER}.")
    return entry_without(corpus, "trees", "parser_trees")


def treebank_entry(corpus, split):
    """The entry of a corpus with the one treebank that stands in the place of a split's trees."""
    return entry_without(corpus, "trees" if split == "train" else "parser_trees", names.OTHER)


def files_of(entry):
    """Local files and downloads that an entry names."""
    downloads = [f"results/downloads/{download_name(url)}" for url in corpora.downloads_of(entry)]
    return downloads + [str(path) for path in corpora.local_files_of(entry)]


def has_gold(experiment):
    """Whether the experiment's corpus brings trees: the grammar's own, or a treebank."""
    entry = config["corpora"][EXPERIMENTS[experiment]["corpus"]]
    return entry["kind"] == "grammar" or "trees" in entry


def has_trees(experiment):
    """Whether there is anything to measure roles on."""
    return has_gold(experiment) or "stanza" in EXPERIMENTS[experiment]["roles"]["trees"]


def has_other(experiment):
    """Whether the experiment's corpus has a test set of another domain."""
    return names.OTHER in config["corpora"][EXPERIMENTS[experiment]["corpus"]]


def lacking(experiment):
    """The optional files that the runs of an experiment do not have: what needs trees, or another domain."""
    return [*([] if has_trees(experiment) else ["roles.tsv"]), *([] if has_other(experiment) else [ABLATION_OTHER])]


def tree_files(wildcards):
    """The trees that roles are measured on, by source, the one that decides first; gold ones where the corpus has any."""
    experiment = EXPERIMENTS[wildcards.experiment]
    if not has_trees(wildcards.experiment):
        raise WorkflowError(
            f"corpora.{experiment['corpus']} has no trees: name a treebank there under trees, or stanza under "
            f"experiments.{wildcards.experiment}.roles.trees."
        )
    files = {"stanza": f"results/{wildcards.experiment}/parser/parsed.conllu"}
    if has_gold(wildcards.experiment):
        files["gold"] = corpus_file("dev.conllu")(wildcards)
    return {name: files[name] for name in experiment["roles"]["trees"] if name in files}


def runs_read(need, experiments):
    """Folders of the runs that a table or figure reads; none of an experiment without trees if it needs them."""
    files = {name for names_of_kind in need.files.values() for name in names_of_kind}
    needs_trees = {"roles.tsv", "alignment.tsv", "positions.tsv", "maps.json"} & files - set(need.optional)
    readable = [e for e in experiments if has_trees(e) or not needs_trees]
    folders = [folder for e in readable for folder in run_folders(e, names.KINDS)]
    return [folder for folder in folders if need.wants(run_of(folder)[1])]


def inputs_read(need, experiments):
    """The files that a table or figure reads; what needs trees or another domain is left out where there is none."""
    return [path for e in experiments for path in need.inputs(runs_read(need, [e]), without=lacking(e))]


def timed_with(wildcards):
    """Folders of the runs pruned from a baseline in the widest scope that is swept: those that are timed beside it."""
    folders = run_folders(wildcards.experiment, ("pruned",))
    pruned = [(folder, run_of(folder)[1]) for folder in folders]
    mine = [(f, run) for f, run in pruned if str(run.seed) == wildcards.seed and run.target.hard_concrete]
    whole = [folder for folder, run in mine if run.scope == "all"]
    return whole or [folder for folder, _ in mine]


def parsed_experiments(experiments):
    """Those whose parser is scored: they measure roles on parsed trees and have gold ones of the same sentences."""
    return [e for e in experiments if has_gold(e) and {"gold", "stanza"} <= {*EXPERIMENTS[e]["roles"]["trees"]}]


def parser_models(wildcards):
    """Input function: the folder of Stanza models that the settings name, or the one to be trained."""
    return EXPERIMENTS[wildcards.experiment]["parser"]["model"] or f"results/{wildcards.experiment}/parser/model"


def learnt_trees(wildcards):
    """Input function: the treebank that the parser learns from."""
    corpus = EXPERIMENTS[wildcards.experiment]["corpus"]
    entry = config["corpora"][corpus]
    if entry["kind"] != "grammar" and "parser_trees" not in entry:
        raise WorkflowError(
            f"corpora.{corpus} has no treebank to train a parser on: name one under parser_trees, "
            f"or a folder of Stanza models under experiments.{wildcards.experiment}.parser.model."
        )
    return f"results/corpora/{corpus}/train.conllu"


def parsed_words(wildcards):
    """Input function: the gold trees that roles are measured on as well, to be scored; without them lines of the corpus.

    Those that it holds out for roles, else its dev text.
    """
    if parsed_experiments([wildcards.experiment]):
        return corpus_file("dev.conllu")(wildcards)
    held_out = config["corpora"][EXPERIMENTS[wildcards.experiment]["corpus"]].get("hold_out", {})
    return corpus_file(f"{names.ROLES if names.ROLES in held_out else 'dev'}.source.txt")(wildcards)


def all_choices(wildcards):
    """Every choice of heads that is scored without updates."""
    return sweep.choices(EXPERIMENTS[wildcards.experiment], fine_tuned=False)


def measures_of(choices, wildcards):
    """The files of a baseline that choices of heads are made from."""
    return [f"{BASELINE.format(**wildcards)}/{name}" for name in criteria.files_of(choice.method for choice in choices)]


def compared_with(wildcards):
    """Folders of the runs with fewer heads, of all kinds of attention, that came from a baseline by fine-tuning."""
    folders = run_folders(wildcards.experiment, ("pruned", "selected"))
    fewer = [(folder, run_of(folder)[1]) for folder in folders]
    return [f for f, run in fewer if run.scope == names.CHOICE_SCOPE and str(run.seed) == wildcards.seed]


def heads_to_keep(wildcards):
    """Input function: the table of the heads that a choice keeps, by gates or by a measure."""
    by_gates = Target.parse(wildcards.choice).by_gates
    table = f"{PRUNED if by_gates else SELECTED}/heads.tsv"
    return table.format(scope=names.CHOICE_SCOPE, target=wildcards.choice, **wildcards)
