# From text to the tables and figures of Voita et al. 2019 and Michel et al. 2019. Settings: config.yaml; how to run: profiles/.
from snakemake.utils import min_version

min_version("9.0")


configfile: "config.yaml"


include: "workflow/rules/common.smk"
include: "workflow/rules/config.smk"
include: "workflow/rules/corpus.smk"
include: "workflow/rules/bpe.smk"
include: "workflow/rules/models.smk"
include: "workflow/rules/analyses.smk"
include: "workflow/rules/selection.smk"
include: "workflow/rules/parser.smk"
include: "workflow/rules/tables.smk"
include: "workflow/rules/figures.smk"


report: "workflow/report/workflow.rst"


localrules:
    all,
    tables,
    figures,
    models,
    settings,
    corpus_settings,
    other_settings,
    trees_settings,


rule all:
    """All tables and figures of the experiments that `run` names in config.yaml."""
    default_target: True
    input:
        rules.tables.input,
        rules.figures.input,


rule models:
    """Every trained model of these experiments, with its score, and nothing after them."""
    input:
        [f"{folder}/bleu.json" for name in RUN for folder in run_folders(name)],


# Snakemake gives no benchmark to what may come out of a cache, and refuses a rule that has both.
if CACHED:
    for cached in [made for made in workflow.rules if made.cache.output]:
        cached._benchmark = None
