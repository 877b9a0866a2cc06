# Two commands: `make demo` runs the default experiment, `make test` the tests. Both set up .venv first.
PYTHON ?= python3
CORES ?= all
# Nearly all other jobs wait for the baseline, so it has several threads.
ALONE := $(shell test "$$(getconf _NPROCESSORS_ONLN)" -ge 8 && echo 4 || echo 2)
PAIR ?= en-ru
BIN := .venv/bin

.PHONY: demo demo-full firefox firefox-grown firefox-scratch paper-size bert nli multi30k news pretrained test test-all check checks quick tests format settings

demo: .venv/run-installed
	@$(BIN)/python -m heads progress --expect demo --alone $(ALONE) --cores $(CORES) -- --set-threads baseline=$(ALONE)

# The same and more models: from scratch, with given numbers of heads, and with heads chosen by other methods.
demo-full: .venv/run-installed
	@$(BIN)/python -m heads progress --expect demo --cores $(CORES) -- --configfile config/demo-full.yaml

# The other half of Michel et al.: a small model that classifies pairs of sentences that the grammar writes.
nli: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- --config 'run=[nli]'

# Text and trees on disk, which override a corpus of config.yaml; all other paths are relative to FOLDER.
comma := ,
SOURCE = $(firstword $(subst -, ,$(PAIR)))
TARGET = $(lastword $(subst -, ,$(PAIR)))
PART = [{source: "$(1).$(SOURCE).gz", target: "$(1).$(TARGET).gz"}]
ON_DISK = $(if $(FOLDER),folder: "$(FOLDER)"$(comma)) \
  $(if $(OUT_OF_DOMAIN),out_of_domain: $(call PART,$(OUT_OF_DOMAIN))$(comma)) \
  $(if $(TREES),trees: "$(TREES)"$(comma)) \
  $(if $(PARSER_TREES),parser_trees: "$(PARSER_TREES)")

multi30k: PAIR = en-de
multi30k: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- --config 'run=[multi30k]' \
	  'corpora={multi30k: {$(ON_DISK)}}'

# News Commentary, downloaded; or your own text, {train,dev,test}.{en,ru}.gz in FOLDER. PAIR=en-de is for German.
SPLITS = $(foreach split,train dev test,$(split): $(call PART,$(split)),)

news: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- --set-threads baseline=$(ALONE) --config 'run=[news-$(PAIR)]' \
	  'corpora={news-$(PAIR): {$(if $(FOLDER),$(SPLITS)) $(ON_DISK)}}'

# An external model, a folder from transformers' save_pretrained or a name on the hub, fetched once, on
# {train,dev,test}.{en,de}.gz in the folder TEXT.
KEEPS = $(if $(KEEP),sweep: {budgets: {all: [$(KEEP)]}}$(comma))
PARSED = $(if $(PARSER_TREES),roles: {trees: [gold$(comma) own]}$(comma))

LANGUAGES = $(if $(SOURCE_LANGUAGE),source_language: $(SOURCE_LANGUAGE)$(comma) target_language: $(TARGET_LANGUAGE))
pretrained: PAIR = en-de
pretrained: FOLDER = $(TEXT)
pretrained: .venv/run-installed
	@$(if $(and $(MODEL),$(TEXT)),,$(error make pretrained needs MODEL=FOLDER, the model, and TEXT=FOLDER with {train,dev,test}.{en,de}.gz))
	@test -d "$(MODEL)" || $(BIN)/python -m heads import "$(MODEL)"
	@$(BIN)/python -m heads progress --cores $(CORES) -- --config 'run=[pretrained]' \
	  'corpora={pretrained: {source: $(SOURCE), target: $(TARGET), $(SPLITS) $(ON_DISK)}}' \
	  'experiments={pretrained: {$(KEEPS) $(PARSED) baseline: {pretrained: "$(MODEL)", prefix: "$(PREFIX)", $(LANGUAGES)}}}'

# The translator in Firefox, from the package that is installed with it, fine-tuned on its own translations of the text
# SOURCE, or else of the documentation of Python packages. With {dev,test}.{en,pt}.gz, with references, in TEXT, the
# experiment is larger: six and six lambdas and two seeds.
ONE_TEXT = [{source: "$(1).$(firstword $(subst -, ,$(PAIR))).gz", target: "$(1).$(lastword $(subst -, ,$(PAIR))).gz"}]
MEASURED_ON = $(if $(TREES),trees: "$(TREES)"$(comma)) $(if $(TEXT),dev: $(call ONE_TEXT,$(TEXT)/dev)$(comma) test: $(call ONE_TEXT,$(TEXT)/test))
SOURCE_pt-en = results/corpora/firefox-en-pt/train.target.txt
READ = $(or $(SOURCE),$(SOURCE_$(PAIR)))
DISTILLED = $(if $(SOURCE)$(SENTENCES),train: [{distilled_by: "firefox/$(PAIR)"$(comma) \
  sentences: $(or $(SENTENCES),$(MANY))$(if $(READ),$(comma) source: "$(READ)")}]$(comma))

# The same with self-attention grown into its decoder, and models trained on its translations from scratch: on more text.
FIREFOX = firefox firefox-grown firefox-scratch
$(FIREFOX): PAIR = en-pt
$(FIREFOX): SOURCE =
$(FIREFOX): MANY = 40000
$(FIREFOX): CORPUS = firefox-long
firefox: MANY = 18000
firefox: CORPUS = firefox
firefox: AT_LENGTH = $(if $(TEXT),--configfile config/firefox-full.yaml)
$(FIREFOX): .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- $(AT_LENGTH) --config 'run=[$@-$(PAIR)]' \
	  'corpora={$(CORPUS)-$(PAIR): {$(DISTILLED) $(MEASURED_ON)}}'

# On a GPU, a Transformer of the paper's size, trained on Firefox's translations of 600,000 sentences of SOURCE, made in
# eight parts so that several can be made at once; or on those in TRANSLATED.en.gz and TRANSLATED.pt.gz. With HOURS=0.3,
# the unpruned model is trained for a third of that time; else for UPDATES.
paper-size: PAIR = en-pt
paper-size: UPDATES = $(if $(HOURS),200000,5700)
PIECE = {distilled_by: firefox/$(PAIR)$(comma) sentences: $(2)$(comma) after: $(shell echo $$(($(1) * $(2))))$(comma) source: "$(SOURCE)"}
PIECES = $(foreach part,0 1 2 3 4 5 6 7,$(call PIECE,$(part),$(shell echo $$(($(or $(SENTENCES),600000) / 8))))$(comma))
IN_PARTS = $(if $(TRANSLATED),train: $(call ONE_TEXT,$(TRANSLATED))$(comma),$(if $(SOURCE),train: [$(PIECES)]$(comma)))
# A file, as all numbers inside braces of --config are text.
paper-size: .venv/run-installed
	@mkdir -p results
	@echo '{run: [paper-size-$(PAIR)], corpora: {firefox-big-$(PAIR): {$(IN_PARTS) $(MEASURED_ON)}}, \
	  experiments: {paper-size-$(PAIR): {baseline: {updates: $(UPDATES)$(if $(HOURS),$(comma) minutes: $(shell awk 'BEGIN {printf "%.2f", 20 * $(HOURS)}'))}, \
	  scratch: {updates: $(shell echo $$(($(UPDATES) + 600)))}}}}' | tr -d '\\\n' > results/paper-size.yaml
	@$(BIN)/python -m heads progress --expect paper-size-$(PAIR) --needs-gpu --alone $(ALONE) --cores $(CORES) -- \
	  --profile profiles/gpu --configfile results/paper-size.yaml

# MiniLM, a pretrained BERT of 72 heads, from the package that is installed with it: fine-tuned and pruned on the
# grammar's pairs; on SICK's, with {train,dev,test}.tsv.gz in the folder TEXT; with TASK=grammar-sick on the grammar's,
# and tested on SICK's too; or on those of another task by name, such as TASK=mnli.
TASK = $(if $(TEXT),sick)
TSV = $(2): [{table: "$(TEXT)/$(1).tsv.gz"}]
OF_TEXT = $(if $(TEXT),columns: {label: entailment_judgment}$(comma) $(1)$(comma)) $(if $(TREES),trees: "$(TREES)")
SICK = $(call OF_TEXT,$(call TSV,train,train)$(comma) $(call TSV,dev,dev)$(comma) $(call TSV,test,test))

bert: .venv/run-installed
	@$(BIN)/python -m heads progress --cores $(CORES) -- --config 'run=[minilm$(if $(TASK),-$(TASK))]' \
	  'corpora={sick: {$(SICK)}, grammar-sick: {$(call OF_TEXT,$(call TSV,test,out_of_domain))}}'

# All checks, and all tests that are not marked as slow: 4 minutes on two cores of a Xeon with AMX, 7 to 9 on
# two threads of one core of an AMD EPYC with AVX2 alone.
test: .venv/test-installed
	@$(MAKE) --no-print-directory -j 2 checks tests

# What `make test` leaves out: tests marked as slow, and of the planted errors a tenth, drawn anew for each commit.
test-all: .venv/test-installed
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder -m slow
	$(BIN)/python tests/mutations/run.py --share 10

checks: .venv/test-installed
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/snakefmt --check Snakefile workflow/Snakefile workflow/rules
	$(BIN)/mypy
	$(BIN)/snakemake --lint

# To run before each commit: all checks, and the tests of packages that train nothing.
QUICK := base config interop/test_marian_*.py model syntax text test_house.py test_cited_numbers.py
check: .venv/test-installed
	@$(MAKE) --no-print-directory -j 2 checks quick

quick: .venv/test-installed
	$(BIN)/python -m pytest -q -n 2 --dist loadfile -m 'not slow' $(addprefix tests/,$(QUICK))

tests: .venv/test-installed
	$(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder -m 'not slow'

format: .venv/test-installed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
	$(BIN)/snakefmt Snakefile workflow/Snakefile workflow/rules

# Files generated from the models of settings: defaults in config.yaml, and the schema that editors read.
settings: .venv/run-installed
	$(BIN)/python -m heads.config.written

# The package itself is installed as editable, so that the command of any job can be pasted: python -m heads STAGE.
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
