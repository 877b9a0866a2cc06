# Two commands: `make demo` tells the whole story on two cores, `make test` guards it. Both set up .venv by themselves.
PYTHON ?= python3
CORES ?= 2
FOLDER ?= data/multi30k_en-de
TREES ?= ../ud_english_ewt/en_ewt-ud-train.conllu.gz
BIN := .venv/bin
ONE_THREAD := OMP_NUM_THREADS=1

.PHONY: demo demo-full multi30k test format settings

demo: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES)

# The same models and more of them: from scratch, at given numbers of heads, chosen by other means.
demo-full: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- --configfile config/demo-full.yaml

multi30k: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- --config 'run=[multi30k]' \
	  'corpora={multi30k: {folder: "$(FOLDER)", parser_trees: "$(TREES)"}}'

test: .venv/test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile workflow/rules
	$(BIN)/mypy
	$(BIN)/snakemake --lint
	$(ONE_THREAD) $(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

format: .venv/test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt Snakefile workflow/Snakefile workflow/rules

# What is written from the models of settings: defaults in config.yaml, and the schema that editors read.
settings: .venv/run-installed
	$(BIN)/python -m heads.config.written

# The package itself is installed as it stands here, so that the command of any job can be pasted: python -m heads STAGE.
.venv/run-installed: envs/requirements.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check -r envs/requirements.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $@

.venv/test-installed: .venv/run-installed envs/dev.txt envs/dev-alone.txt
	$(BIN)/pip install --quiet --disable-pip-version-check -r envs/dev.txt
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps -r envs/dev-alone.txt
	touch $@
