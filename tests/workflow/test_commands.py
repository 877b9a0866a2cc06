"""Every rule passes the right files to its command: the split, the run, the seed and the settings, flag by flag.

Nothing is run. Snakemake plans the experiments and prints the commands; each is compared with a table written by hand
from the papers and the design, not from the rules. Which flags there are is what the signature of each stage says.
"""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest
import yaml
from expected_commands import (
    BY_NAME,
    CHOICES,
    COMMANDS,
    ELSEWHERE,
    EXAMPLES,
    GRAMS,
    MEASURED_IN,
    NUMBER,
    PARSED,
    PRUNED,
    READ,
    SELECTED,
    TRAINING_DATA,
    TREES,
)

from checkouts import TINY, checkout, configuration, snakemake
from heads.base.files import read_yaml, write_text
from heads.base.names import UNIT_SCOPES
from heads.cli._signature import Flag, Stage, flags_of, parser_of
from heads.config.checks import FOLDERS
from heads.config.settings import merged, resolve, stage_settings
from heads.tables.catalogue import FIGURES, TABLES, Made
from test_house import MODULES, imports, module_of

# `far`: text in files with a treebank of its own, one to learn a parser from, lines held out to be parsed and another
# domain; two seeds. `near`: only the treebank that a parser learns from, so that roles are measured on parsed dev text.
# `mine`: text in files, with trees of the grammar. `untreed`: without any.
TEXTS = {split: [{side: f"{split}.{side}" for side in ("source", "target")}] for split in ("train", "dev", "test")}
FILES = {"kind": "files", "source": "de", "target": "en", "folder": "texts", "parser_trees": "learn.conllu"}
CLEANING = {"max_words": 60, "max_length_ratio": 4.0}
FAR = {
    **FILES,
    **TEXTS,
    "cleaning": CLEANING,
    "trees": "gold.conllu",
    "alignment": {"dev": {"links": "dev.links", "source": "dev.cut"}},
    "hold_out": {"roles": 70},
    "out_of_domain": [{"source": "o.de", "target": "o.en"}],
}
MINE = {"kind": "files", "source": "en", "target": "de", "folder": "texts", **TEXTS, "cleaning": CLEANING}
# `echo`: its references are the translations of its own unpruned model.
WRITTEN = [{"distilled_by": "marian", "sentences": 5, "after": 2, "source": "unwritten"}]
LABELLED = {"kind": "grammar_pairs", "source": "en", "seed": 1, "pairs": {"train": 90, "dev": 9, "test": 9}}
SWEEP = {
    "seeds": [1, 2],
    "lambdas": {"enc_self": [0.5], "all": [0.25, 4]},
    "budgets": {"all": [3]},
    "gates_from_scratch_scopes": ["enc_self"],
    "trained_on_scopes": ["all"],
    "selection": {
        "methods": ["token", "confidence", "lrp", "ablation", "optimal", "random", "stratified"],
        "budgets": [48],
        "draws": 1,
        "fine_tuned": {"methods": ["gates", "token", "lrp", "random", "stratified", "dsp"], "budgets": [48]},
    },
}
PLANNED = {
    "run": ["tiny", "far"],
    "corpora": {
        "grounds": FAR,
        "bare": {**FILES, **TEXTS, "cleaning": CLEANING},
        "mixed": {**MINE, "trees": {"grammar": 7}},
        "woods": MINE,
        "written": {**FILES, **TEXTS, "test": WRITTEN, "cleaning": CLEANING},
        "labelled": LABELLED,
    },
    "experiments": {
        "far": {"corpus": "grounds", "roles": {"trees": ["own", "stanza", "gold"]}, "sweep": SWEEP},
        "near": {"corpus": "bare", "roles": {"trees": ["gold", "own"]}},
        "taken": {"corpus": "bare", "baseline": {"pretrained": "marian"}, "roles": {"trees": ["own"]}},
        "mine": {"corpus": "mixed", "roles": {"trees": ["gold"]}},
        "untreed": {"like": "near", "corpus": "woods"},
        "echo": {"corpus": "written", "baseline": {"pretrained": "marian"}, "roles": {"trees": ["own"]}},
        "told": {"corpus": "labelled"},
    },
}
WHOLE = resolve(merged(merged(configuration(), read_yaml(TINY)), PLANNED))
CORPORA = {"tiny": "tiny", "far": "grounds", "near": "bare", "taken": "bare", "mine": "mixed", "echo": "written"}
CORPORA |= {"told": "labelled", "untreed": "woods"}
LANGUAGES = {"tiny": "en", "far": "de", "near": "de", "taken": "de", "mine": "en", "echo": "de", "told": "en"}
LANGUAGES |= {"untreed": "en"}
MARIAN = ("config.json", "model-00001-of-00002.safetensors", "model.safetensors.index.json", "source.spm")


@dataclass(frozen=True)
class Job:
    """A planned job as Snakemake printed it."""

    rule: str
    stage: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    log: str
    benchmark: str
    flags: Mapping[str, str]
    words: tuple[str, ...]

    @property
    def whose(self) -> dict[str, str]:
        """The wildcards in the first path of the first flag in COMMANDS."""
        first, template = next(iter(COMMANDS[self.rule].items()))
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(template.split()[0])).replace(
            "<run>[^/]+", "<run>.+"
        )
        found = re.fullmatch(pattern, self.flags.get(first, "").partition(" ")[0])
        assert found, f"{self.rule} --{first} is {self.flags.get(first)}, not of the form {template}"
        return found.groupdict()


@pytest.fixture(scope="module")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with the experiments, and nothing done."""
    folder = checkout(tmp_path_factory.mktemp("planned"))
    given = ("learn.conllu", "gold.conllu", "dev.links", "dev.cut", "o.de", "o.en", "unwritten")
    for name in (*given, *(f"{s}.{t}" for s in TEXTS for t in TEXTS["dev"][0])):
        write_text(folder / "texts" / name, "")
    for name in MARIAN:
        write_text(folder / "marian" / name, "")
    write_text(folder / "planned.yaml", yaml.safe_dump(PLANNED))
    return folder


@pytest.fixture(scope="module")
def jobs(planned: Path) -> list[Job]:
    """All jobs of two whole experiments, those of four others up to roles, and of two up to scores or maps."""
    further = [f"results/{name}/baseline/seed-1/roles.tsv" for name in ("near", "taken", "mine", "untreed")]
    further += ["results/untreed/baseline/seed-1/dynamics.tsv"]
    further += ["results/near/baseline/seed-1/cross_attention_roles.tsv"]  # without a word alignment
    further += ["results/echo/baseline/seed-1/bleu.json"]
    further += [f"results/told/baseline/seed-1/{name}" for name in ("accuracy.json", "maps.json")]
    words = ["--configfile", str(TINY), "planned.yaml", "--", "all", *further]
    done = snakemake(planned, "-n", "-p", "--forceall", *words)
    assert done.returncode == 0, done.stdout[-3000:]
    return list(jobs_in(done.stdout))


def jobs_in(said: str) -> Iterator[Job]:
    """The jobs with a command that a dry run printed."""
    for block in re.split(r"\n(?=\[.*\]\n(?:local)?rule )", said):
        head, _, rest = block.partition("Shell command: python -m heads ")
        if rest:
            lines = dict(re.findall(r"^    (\w+): (.*)$", head, re.MULTILINE))
            rule = re.findall(r"^(?:local)?rule (\w+):$", head, re.MULTILINE)[0]
            command, log = re.fullmatch(r"(.*) > (\S+) 2>&1", rest.splitlines()[0]).groups()  # type: ignore[union-attr]
            stage, *words = shlex.split(command)
            flags: dict[str, str] = {}
            name = ""  # for words before all flags, such as the model to import
            for word in words:
                if word.startswith("--"):
                    flags[name := word.removeprefix("--")] = ""
                else:
                    flags[name] = f"{flags.get(name, '')} {word}".strip()
            inputs, outputs = (tuple(lines.get(key, "").split(", ")) for key in ("input", "output"))
            given = {name: value for name, value in flags.items() if value}  # an optional flag may come without one
            yield Job(rule, stage, inputs, outputs, log, lines.get("benchmark", ""), given, (stage, *words))


def folders_of(jobs: list[Job], *patterns: str, experiments: tuple[str, ...] = ("tiny", "far")) -> set[str]:
    """The folders of all trained or pruned runs that match one of the patterns; a star is not for scopes with units."""
    made = {job.flags["model"] for job in jobs if job.rule in TRAINED}
    found = {(f, p) for f in made for e in experiments for p in patterns if fnmatch(f, f"results/{e}/{p}")}
    return {f for f, p in found if all(scope in p for scope in UNIT_SCOPES if f"/{scope}/" in f)}


TRAINED = (
    "baseline",
    "imported",
    "gates",
    "pruned",
    "scratch",
    "selected",
    "gates_from_scratch",
    "pruned_from_scratch",
)

MAKES_TEXT = ("corpus", "out_of_domain", "trees", "alignment", "parser_model", "distilled")
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


def stage_of(job: Job) -> Stage:
    """The function of a job's stage."""
    found: Stage = import_module(f"heads.cli.{job.stage}").run
    return found


@cache
def flags_by_name(stage: Stage) -> dict[str, Flag]:
    """The flags of a stage, each under its name without hyphens before it; words without a flag are left out."""
    return {flag.words[-1][2:]: flag for flag in flags_of(stage) if flag.words[-1].startswith("--")}


def expected(job: Job, jobs: list[Job]) -> dict[str, str]:
    """Every flag of a job with its value, by COMMANDS and otherwise by name."""
    whose, flags, said = job.whose, flags_by_name(stage_of(job)), COMMANDS[job.rule]
    templates = {**{name: BY_NAME[name] for name in flags if name in BY_NAME}, **said}
    silent = {name for name, flag in flags.items() if flag.keywords.get("required")} - {*templates}
    assert not silent, f"{job.rule} has new flags: say in COMMANDS what {', '.join(silent)} is to be"
    whose |= {"rule": job.rule, "folder": next(iter(said.values())).rpartition("/")[0].format(**whose)}
    experiment = whose.get("experiment", next((e for e, c in CORPORA.items() if c == whose.get("corpus")), ""))
    whose |= {"corpus": CORPORA.get(experiment, ""), "language": LANGUAGES.get(experiment, "")}
    told = {name: template.format(**whose, **runs_told(job, jobs, whose)) for name, template in templates.items()}
    return {name: value for name, value in told.items() if value}


def drawn_by(*experiments: str) -> str:
    """The distribution of gates that config.yaml gives these experiments."""
    return json.dumps({name: WHOLE[name].written["gates"]["hard_concrete"] for name in experiments}, sort_keys=True)


def runs_told(job: Job, jobs: list[Job], whose: Mapping[str, str]) -> dict[str, str]:
    """The flags that name several runs, choices or trees."""
    experiment, seed = whose.get("experiment", ""), whose.get("seed", "")
    trees = TREES.get(experiment, "")
    own, of_tiny = {"experiments": (experiment,)}, {"experiments": ("tiny",)}
    reads = READ.get(whose.get("name", ""), ())
    parsed = PARSED.get((experiment, whose.get("parsed", "")), "")
    pruned = ["pruned/all/lam-*", "pruned/all/keep-*"]
    aligned = {"source_words": "source.words", "target_words": "target.words", "links": "alignment"}
    linked = f"results/corpora/{whose['corpus']}/dev.{{}}.txt" if experiment in ("tiny", "far") else ""
    return {
        **{flag: linked.format(name) for flag, name in aligned.items()},
        "trees": trees,
        "untreed": "results/corpora/woods/dev.source.txt" if experiment == "untreed" else "",
        "against": "unpruned model" if experiment == "echo" else "references",
        "chosen_heads": chosen_heads(whose),
        "grams": GRAMS.format(**whose) if by_surgeon(job, whose) else "",
        "shown": EXAMPLES[0] if experiment == "told" else trees.split(" ")[0].partition("=")[2],
        "shown_labels": EXAMPLES[1] if experiment == "told" else "",
        "shown_trees": EXAMPLES[2] if experiment == "told" else "",
        "parsed_trees": parsed if parsed.endswith(".conllu") else "",
        "parsed_text": parsed if parsed.endswith(".txt") else "",
        "choices": " ".join(CHOICES.get(experiment, ())),
        "timed": " ".join(sorted(folders_of(jobs, *(f"{p}/seed-{seed}" for p in pruned), **own))),
        "compared": " ".join(
            sorted(folders_of(jobs, *(f"{kind}/all/*/seed-{seed}" for kind in ("pruned", "selected")), **own))
        ),
        "tabled": " ".join(sorted(folders_of(jobs, *reads, **(of_tiny if whose.get("name") == "units" else {})))),
        "drawn_by": drawn_by(experiment) if whose.get("name") == "hard_concrete" else "",
        "drawn": " ".join(sorted(folders_of(jobs, *reads, **own))),
    }


def by_surgeon(job: Job, whose: Mapping[str, str]) -> bool:
    """Whether the surgeon chose some of the heads that a command is told."""
    chosen = CHOICES.get(whose.get("experiment", ""), ()) if job.rule == "masked" else (whose.get("target", ""),)
    return any(choice.startswith("surgeon-") for choice in chosen)


def chosen_heads(whose: Mapping[str, str]) -> str:
    """The table that says which heads are cut out: chosen by gates, or otherwise by a measure."""
    by_gates = whose.get("target", "").startswith(("lam-", "keep-", "dsp-"))
    folder = PRUNED if by_gates else SELECTED
    return f"{folder}/heads.tsv".format(**whose) if "target" in whose else ""


def compared(job: Job, name: str, value: str) -> bool:
    """Whether a flag has this value; the order of runs does not matter."""
    given = job.flags.get(name, "")
    if name == "settings" and value != ELSEWHERE:
        experiment, stage = value.split(": ")
        return bool(json.loads(given) == stage_settings(WHOLE[experiment], stage))
    if value == NUMBER:
        return bool(re.fullmatch(r"[1-9][0-9]*", given))
    return value == ELSEWHERE or (sorted(given.split()) == sorted(value.split()) if name == "runs" else given == value)


def test_each_flag_of_every_command_is_the_file_or_word_that_the_table_says(jobs: list[Job]) -> None:
    wrong = []
    for job in jobs:
        assert job.rule in COMMANDS, f"the rule {job.rule} is new: say in COMMANDS what its command is to be told"
        name = job.whose.get("name", "corpus")
        assert name in {*READ, "corpus", "parser"}, f"the table or figure {name} is new: say in READ what runs it reads"
        told = expected(job, jobs)
        wrong += [
            f"{job.rule} --{n} is {job.flags.get(n)}, not {v}" for n, v in told.items() if not compared(job, n, v)
        ]
        wrong += [f"{job.rule} has --{n} {job.flags[n]}" for n in set(job.flags) - set(told)]
    assert not wrong, "\n".join(wrong)
    assert {job.rule for job in jobs} >= set(COMMANDS) - {"fetch"}


def test_every_command_is_one_that_its_stage_takes(jobs: list[Job], planned: Path) -> None:
    """A flag may come without a value, as Snakemake writes an empty text as nothing."""
    done = snakemake(planned, "-n", "-p", "results/corpora/news-en-ru/train.source.txt")
    downloads = [job for job in jobs_in(done.stdout) if job.rule == "fetch"]
    assert downloads and {"fetch", "distilled"} <= {job.rule for job in (*downloads, *jobs)}
    for job in (*downloads, *jobs):
        parser_of(stage_of(job), job.stage, "").parse_args(job.words[1:])


def test_every_file_that_a_command_is_told_is_an_input_or_output_of_its_rule(jobs: list[Job]) -> None:
    """Otherwise a job starts before the file exists, and does not run again when it changes."""
    wrong = []
    for job in jobs:
        declared = {*job.inputs, *job.outputs, "results/downloads"}
        folders = {str(parent) for path in declared for parent in Path(path).parents}
        for name, value in job.flags.items():
            told = [word.rpartition("=")[2] for word in value.split() if "results/" in word and name not in ("url",)]
            wrong += [f"{job.rule} --{name} {path}" for path in told if path not in declared | folders]
    assert not wrong, "\n".join(wrong)


def test_a_rule_reruns_if_a_module_is_edited_that_its_command_computes_with(jobs: list[Job]) -> None:
    for job in jobs:
        if job.rule not in (*TRAINED, *MAKES_TEXT):
            modules = {name.removeprefix("workflow/") for name in job.inputs if name.endswith(".py")}
            assert modules == {f"heads/{name.replace('.', '/')}.py" for name in computing(job.stage, *called(job))}, (
                job.rule
            )


def called(job: Job) -> list[str]:
    """The module of the function that the job's command calls by name."""
    made: Mapping[str, Mapping[str, Made]] = {"table": TABLES, "figure": FIGURES}
    found = made.get(job.stage, {}).get(job.flags.get("name", ""))
    return [found.function.rpartition(".")[0]] if found else []


@cache
def computing(stage: str, *called: str) -> set[str]:
    """The modules that measure, make tables or draw, among all that the interpreter imports for a stage."""
    found: set[str] = set()
    waiting = {f"cli.{stage}", *called}
    while waiting:
        module = waiting.pop()
        found.add(module)
        waiting |= ({module_of(name) for name in imports(MODULES[module])} & {*MODULES}) - found
    return {name for name in found if name in COMPUTING or name.rpartition(".")[0] in COMPUTING}


def test_a_command_that_is_told_the_folder_of_a_model_waits_for_its_weights_and_its_facts(jobs: list[Job]) -> None:
    """Commands that read only the shape wait for that file alone, so they do not run again for other weights."""
    whole, wrong = ("model.safetensors", "model.json"), []
    read = {"model": whole, "start-model": whole, "unpruned": whole[1:]}
    for job in jobs:
        if job.rule in ("bpe", "parser_model", "parser", "distilled"):
            continue
        files = {f"{job.flags[flag]}/{name}" for flag, names in read.items() if flag in job.flags for name in names}
        of_models = {path for path in (*job.inputs, *job.outputs) if Path(path).name in whole}
        if files and files != of_models:
            wrong.append(f"{job.rule}: {sorted(files ^ of_models)}")
    assert not wrong, "\n".join(wrong)


def test_whatever_a_rule_writes_lies_in_its_experiment_or_where_no_experiment_may_be(jobs: list[Job]) -> None:
    files = [path for job in jobs for path in (*job.outputs, job.log, job.benchmark) if path]
    assert {path.split("/")[0] for path in files} == {"results"}
    assert {path.split("/")[1] for path in files} - {*FOLDERS} == {*CORPORA}


OF_TRANSLATORS = {
    "score": "bleu.json",
    **{rule: f"{rule}.tsv" for rule in ("causal", "alignment_heads", "cross_attention_roles")},
}
"""Rules for models that translate, and the file that each is known by."""


@pytest.mark.slow
def test_each_rule_is_planned_for_an_experiment_that_classifies_or_refused_before_anything_runs(
    jobs: list[Job], planned: Path
) -> None:
    """It is asked for whatever is made for an experiment that translates."""
    made: dict[str, str] = {}
    for job in jobs:
        if (path := job.outputs[0]).startswith("results/tiny/") and "keep-1-" not in path:
            made.setdefault(job.rule, path.replace("/tiny/", "/told/").replace("/enc_self/", "/all/"))
    assert {*OF_TRANSLATORS, *TRAINED} - {"imported"} <= {*made} and len(made) > 28
    able = {rule: path for rule, path in made.items() if rule not in OF_TRANSLATORS}
    words = ["-n", "--forceall", "--configfile", str(TINY), "planned.yaml", "--"]
    done = snakemake(planned, *words, *able.values())
    assert done.returncode == 0, done.stdout[-2000:]
    assert {*able} <= {*re.findall(r"^(?:local)?rule (\w+):$", done.stdout, re.MULTILINE)}
    said = {
        made[rule]: f"{name} is of models that translate, but those of told classify: ask"
        for rule, name in OF_TRANSLATORS.items()
    }
    said["results/tiny/baseline/seed-1/accuracy.json"] = "accuracy.json is of models that classify, but those of tiny"
    for path, sentence in said.items():
        done = snakemake(planned, *words, path)
        assert done.returncode == 1 and sentence in done.stdout, path


def test_every_output_of_a_rule_is_told_to_its_command(jobs: list[Job]) -> None:
    for job in jobs:
        told = [word for value in job.flags.values() for word in value.split()]
        told += [word.replace(".model", ".json") for word in told if word.endswith(".model")]  # written beside it
        assert all(any(out == word or out.startswith(f"{word}/") for word in told) for out in job.outputs), job


def test_a_training_waits_for_the_subwords_of_train_and_dev_and_for_nothing_of_the_test_set(jobs: list[Job]) -> None:
    trainings = [job for job in jobs if "data" in job.flags]
    assert len(trainings) > 20
    for job in trainings:
        read = {Path(path).name for path in job.inputs if path.startswith(job.flags["data"])}
        assert read == TRAINING_DATA | ({"source.model"} if job.rule == "baseline" else set()), job
        assert not [path for path in job.inputs if "/test." in path], job


def test_heads_are_chosen_from_measures_that_never_saw_the_test_set(jobs: list[Job]) -> None:
    choosing = [
        job for job in jobs if job.rule in ("selection", "selection_of_choice") and "far" in job.whose["experiment"]
    ]
    assert len(choosing) == 2 + 2 * 4
    for job in choosing:
        files = " ".join(MEASURED_IN[choice.removesuffix("-48")] for choice in job.flags["targets"].split())
        read = {Path(path).name for path in job.inputs if path.startswith(job.flags["baseline"])}
        assert read == {"model.json", *files.split()}, job


def test_a_command_is_given_what_config_yaml_says_of_its_stage_or_corpus(jobs: list[Job]) -> None:
    aside = ("trees", "parser_trees", "alignment", "out_of_domain")
    grounds = {key: value for key, value in FAR.items() if key not in aside}
    expected = {
        "results/far/baseline/seed-1/masked.tsv": {
            name: WHOLE["far"].written[name] for name in ("translate", "selection")
        },
        "results/tiny/gates/all/lam-0/seed-1/heads.tsv": {
            name: WHOLE["tiny"].written[name] for name in ("training", "gates")
        },
        "results/corpora/grounds/filters.tsv": grounds,
        "results/corpora/grounds/out_of_domain.source.txt": {**grounds, "out_of_domain": FAR["out_of_domain"]},
        "results/corpora/grounds/dev.conllu": {**grounds, "trees": "gold.conllu"},
        "results/corpora/grounds/train.conllu": {**grounds, "parser_trees": "learn.conllu"},
        "results/corpora/mixed/filters.tsv": MINE,
        "results/corpora/mixed/dev.conllu": {**MINE, "trees": {"grammar": 7}},
        "results/corpora/grounds/dev.alignment.txt": {**grounds, "alignment": FAR["alignment"]},
    }
    given = {out: job.flags["settings"] for job in jobs for out in job.outputs if out in expected}
    assert {out: json.loads(settings) for out, settings in given.items()} == expected
    (page,) = [job for job in jobs if job.rule == "explore"]
    assert page.flags["gates"] == drawn_by("tiny", "far")


def test_settings_are_written_in_one_order_for_other_text_is_another_parameter(jobs: list[Job]) -> None:
    """Snakemake may read a configuration in another order when it is handed on, and would train again."""
    given = [job.flags["settings"] for job in jobs if job.flags.get("settings", "").startswith("{")]
    assert len(given) > 100
    assert given == [json.dumps(json.loads(settings), sort_keys=True) for settings in given]


def test_no_two_jobs_write_one_log_and_each_log_is_its_jobs_own(jobs: list[Job]) -> None:
    logs = [job.log for job in jobs]
    assert len(set(logs)) == len(logs) > 200
    for job in jobs:
        seeds = {seed for path in (job.log, *job.outputs) for seed in re.findall(r"seed-\d+", path)}
        assert len(seeds) < 2, job


def test_the_benchmark_of_a_job_has_the_name_of_its_log_by_which_its_cost_is_found(jobs: list[Job]) -> None:
    assert [job.benchmark for job in jobs] == [
        job.log.replace("/log/", "/bench/").removesuffix(".txt") + ".tsv" for job in jobs
    ]


def test_every_trained_model_is_scored_once_but_for_those_whose_gates_are_still_there(jobs: list[Job]) -> None:
    scored = sorted(job.flags["model"] for job in jobs if job.rule == "score")
    trained = sorted(job.flags["model"] for job in jobs if job.rule in TRAINED)
    apart = ("gates/", "gates_from_scratch/", "/near/", "/taken/", "/mine/", "/untreed/", "/told/")
    assert scored == [model for model in trained if not any(word in model for word in apart)]


def test_a_model_of_others_takes_the_place_of_vocabularies_and_training_and_of_nothing_else(jobs: list[Job]) -> None:
    mine = {job.rule: job for job in jobs if any(path.startswith("results/taken/") for path in job.outputs)}
    assert not {"bpe", "baseline"} & mine.keys() and {"imported_bpe", "imported", "encode", "roles"} <= mine.keys()
    for rule in ("imported_bpe", "imported"):
        assert mine[rule].stage == rule
        assert {f"marian/{name}" for name in MARIAN} <= {*mine[rule].inputs}, "it is read again when a file changes"
    trained_here = {job.rule for job in jobs if any(path.startswith("results/near/") for path in job.outputs)}
    assert {"bpe", "baseline"} <= trained_here and not {"imported_bpe", "imported"} & trained_here


@pytest.mark.slow
def test_a_folder_that_is_not_there_is_one_sentence_that_says_what_to_fetch(planned: Path) -> None:
    said = {}
    for name in ("Helsinki-NLP/opus-mt-en-de", "/data/opus"):
        taken = {"experiments": {"taken": {"baseline": {"pretrained": name}}}}
        write_text(planned / "elsewhere.yaml", yaml.safe_dump(taken))
        words = ("--configfile", str(TINY), "planned.yaml", "elsewhere.yaml", "--", "results/taken/bpe/source.model")
        said[name] = snakemake(planned, "-n", *words).stdout
    fetched = (
        "experiments.taken.baseline.pretrained: Helsinki-NLP/opus-mt-en-de is no folder: where there is a network run "
    )
    assert fetched in said["Helsinki-NLP/opus-mt-en-de"]
    assert (
        "from https://huggingface.co/Helsinki-NLP/opus-mt-en-de/tree/main into it."
        in said["Helsinki-NLP/opus-mt-en-de"]
    )
    assert "/data/opus is no folder: give one as save_pretrained writes it" in said["/data/opus"]
