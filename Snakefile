# For running `snakemake` in this folder: the workflow is workflow/Snakefile, its settings are config.yaml.
include: "workflow/Snakefile"


# An included file sets no default target.
workflow.default_target = "all"
