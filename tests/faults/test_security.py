"""Nothing that is read is ever run: no pickle, no archive member outside its folder, no shell, no markup."""

import ast
import base64
import io
import pickle
import re
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from stanza.models.depparse import trainer as parser_trainer
from stanza.models.pos import trainer as tagger_trainer
from workshop import config

from checkouts import ROOT, checkout, snakemake
from heads.base.fetch import open_bytes
from heads.base.files import UserError, read_json, read_lines, read_yaml, write_json, write_text
from heads.config.settings import merged, resolve
from heads.model.checkpoint import load_tensors
from heads.syntax.parsing import open_models
from heads.text.vocabulary import Tokens, Vocabulary
from slow_ones import slow_but

PACKAGE = ROOT / "workflow/heads"
EVIL = "x'; touch pwned; $(touch pwned) `touch pwned`\n touch pwned #\" && touch pwned"


class Evil:
    """An object that creates a file when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, tuple[str, str]]:
        return open, (str(self.mark), "w")


@pytest.mark.parametrize("reader", [load_tensors, Tokens, Vocabulary, read_json, read_yaml])
def test_a_pickle_in_the_place_of_any_file_is_refused_and_runs_nothing(tmp_path: Path, reader: Any) -> None:
    (tmp_path / "file").write_bytes(pickle.dumps(Evil(tmp_path / "pwned")))
    with pytest.raises(UserError, match="file"):
        reader(tmp_path / "file")
    assert not (tmp_path / "pwned").exists()


def test_tags_of_yaml_that_make_objects_are_refused(tmp_path: Path) -> None:
    write_text(tmp_path / "file", f"a: !!python/object/apply:os.system ['touch {tmp_path}/pwned']\n")
    with pytest.raises(UserError, match="not valid YAML"):
        read_yaml(tmp_path / "file")
    assert not (tmp_path / "pwned").exists()


@pytest.mark.parametrize("save", [lambda evil, path: path.write_bytes(pickle.dumps(evil)), torch.save])
@pytest.mark.parametrize("part", ["pos", "depparse"])
def test_a_pickle_in_the_place_of_a_model_of_stanza_is_refused_and_runs_nothing(
    tmp_path: Path, save: Callable[[Any, Path], object], part: str
) -> None:
    folder = tmp_path / "models"
    models: dict[str, Any] = {name: {"mine": {}} for name in ("pos", "depparse")}
    packages = {"default": {"pos": "mine", "lemma": "identity", "depparse": "mine"}}
    write_json(folder / "resources.json", {"en": {"lang_name": "en", **models, "packages": packages}})
    for name in models:
        path = folder / f"en/{name}/mine.pt"
        path.parent.mkdir(parents=True)
        save(Evil(tmp_path / "pwned") if name == part else {"model": 1}, path)
    with pytest.raises(UserError, match="is not a folder of Stanza models for en"):
        open_models(folder, "en", torch.device("cpu"))
    assert not (tmp_path / "pwned").exists()
    # Each part is also refused by its own loader, checked alone because the first failure hides the other.
    model = str(folder / f"en/{part}/mine.pt")
    with pytest.raises(pickle.UnpicklingError, match="eights"):
        tagger_trainer.Trainer(model_file=model) if part == "pos" else parser_trainer.Trainer.load(model, None)
    assert not (tmp_path / "pwned").exists()


FORBIDDEN = re.compile(
    r"pickle\.(load|loads|Unpickler)|(_pickle|cPickle|dill|cloudpickle|joblib|marshal|shelve)(\..*)?|torch\.(load|save)"
    r"|numpy\.load|pandas\.read_pickle|(builtins\.)?(eval|exec)|yaml\.(load|unsafe_load|full_load)(_all)?"
    r"|os\.(system|popen)|.*\.(extract|extractall)|shutil\.unpack_archive"
)
KEYWORDS = re.compile(r"shell=(?!False).*|weights_only=(?!True).*|allow_pickle=(?!False).*")


def dangers(code: str) -> set[str]:
    """All names in a module, under any alias, that unpickle, unpack to disk, evaluate text or call a shell."""
    tree = ast.parse(code)
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            known |= {alias.asname: alias.name for alias in node.names if alias.asname}
        elif isinstance(node, ast.ImportFrom):
            known |= {alias.asname or alias.name: f"{node.module}.{alias.name}" for alias in node.names}
    named = set(known.values())
    for node in ast.walk(tree):
        if isinstance(node, ast.Name | ast.Attribute):
            first, dot, rest = ast.unparse(node).partition(".")
            named.add(f"{known.get(first, first)}{dot}{rest}")
        elif isinstance(node, ast.Import):
            named |= {alias.name for alias in node.names}
    words = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.keyword)}
    return {name for name in named if FORBIDDEN.fullmatch(name)} | {word for word in words if KEYWORDS.fullmatch(word)}


@pytest.mark.parametrize(
    ("code", "found"),
    [
        ("import pickle\npickle.load(f)", {"pickle.load"}),
        ("from pickle import load", {"pickle.load"}),
        ("import pickle as p\nread = p.loads", {"pickle.loads"}),
        ("from pickle import Unpickler as U\nU(f).load()", {"pickle.Unpickler"}),
        ("import joblib", {"joblib"}),
        ("import numpy as np\nnp.load(f, allow_pickle=True)", {"numpy.load", "allow_pickle=True"}),
        ("from torch import load as get\nget(f, weights_only=False)", {"torch.load", "weights_only=False"}),
        ("with tarfile.open(f) as tar: tar.extractall()", {"tar.extractall"}),
        ("from subprocess import run\nrun(x, shell=True)", {"shell=True"}),
        ("from os import system", {"os.system"}),
        ("eval('1')", {"eval"}),
        ("model.eval(); pickle.UnpicklingError; run(shell=False); yaml.safe_load(x)", set()),
    ],
)
def test_what_is_dangerous_is_found_by_whatever_name_it_goes(code: str, found: set[str]) -> None:
    assert dangers(code) == found


def test_no_module_names_what_unpickles_unpacks_to_disk_evaluates_text_or_asks_a_shell() -> None:
    paths = [*PACKAGE.rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    assert len(paths) > 50
    found = {path.name: dangers(path.read_text(encoding="utf-8")) for path in paths}
    assert not {name: names for name, names in found.items() if names}


def evil_tar(path: Path) -> list[str]:
    """An archive with members that would leave their folder, by name or by link."""
    links = {"link": "/etc/passwd", "up": "../../up", "dir/hard": "../evil"}
    with tarfile.open(path, "w:gz") as archive:
        for name in ("../evil", "/tmp/absolute", "dir/../../evil2", "fine"):
            info = tarfile.TarInfo(name)
            info.size = 5
            archive.addfile(info, io.BytesIO(b"text\n"))
        for name, goal in links.items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = (tarfile.LNKTYPE if "hard" in name else tarfile.SYMTYPE), goal
            archive.addfile(info)
        device = tarfile.TarInfo("device")
        device.type = tarfile.CHRTYPE
        archive.addfile(device)
    return [*links, "device"]


def test_members_of_archives_are_never_written_and_links_and_devices_never_followed(tmp_path: Path) -> None:
    inside = tmp_path / "a/b"
    inside.mkdir(parents=True)
    no_files = evil_tar(inside / "a.tgz")
    with zipfile.ZipFile(inside / "a.zip", "w") as archive:
        archive.writestr("../evil", "text\n")
        archive.writestr("/tmp/absolute", "text\n")
    for name, members in (("a.tgz", ["../evil", "/tmp/absolute", "dir/../../evil2", "fine"]), ("a.zip", ["../evil"])):
        for member in members:
            with open_bytes(inside / name, member) as stream:
                assert stream.read() == b"text\n"
    for member in no_files:
        with pytest.raises(UserError, match="a link or folder"), open_bytes(inside / "a.tgz", member):
            pass
    left = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*")}
    assert left == {"a", "a/b", "a/b/a.tgz", "a/b/a.zip"} and not Path("/tmp/absolute").exists()


NAMES = ["a b", "x;y", "$(touch pwned)", "`id`", "x\ny", "../up", "x'", 'x"', "", "-x", "x|y", "<b>", "x\n"]


@pytest.mark.parametrize("name", slow_but(["$(touch pwned)", "../up", "<b>", "x\n"], NAMES))
@pytest.mark.parametrize("kind", ["experiments", "corpora"])
def test_a_name_that_a_shell_or_a_page_could_read_is_refused(kind: str, name: str) -> None:
    given = config()
    given[kind][name] = given[kind]["tiny"]
    with pytest.raises(UserError, match=r"config\.yaml\."):
        resolve(given)


LANGUAGES = ["en; touch pwned", "$(touch pwned)", "en\ntouch pwned", "e n", "en\n"]


@pytest.mark.parametrize("key", ["source", "target"])
@pytest.mark.parametrize("value", slow_but(LANGUAGES[-1:], LANGUAGES))
def test_a_language_that_a_shell_could_read_is_refused(key: str, value: str) -> None:
    given = merged(config(), {"corpora": {"multi30k": {key: value}}})
    with pytest.raises(UserError, match=rf"corpora\.multi30k\.{key}"):
        resolve(given)


def test_every_value_in_a_command_of_a_rule_is_quoted_or_one_of_a_closed_list() -> None:
    closed = {
        "{threads}",
        "{resources.processes}",
        "{params.kind}",
        "{params.language}",
        "{params.sha256}",
        "{params.side}",
    }
    wildcards = {"side", "split", "seed", "scope", "target", "name", "method", "choice"}
    found = []
    for path in sorted((ROOT / "workflow/rules").glob("*.smk")):
        for command in re.findall(r"^    shell:\n((?: {8}.*\n)+)", path.read_text(encoding="utf-8"), re.MULTILINE):
            for field in re.findall(r"{[^}]*}", command):
                known = field in closed or field.removeprefix("{wildcards.").removesuffix("}") in wildcards
                if not field.endswith(":q}") and not known:
                    found.append(f"{path.name}: {field}")
    assert not found


@pytest.mark.slow
def test_names_and_values_full_of_shell_come_through_a_run_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "$(touch pwned); `touch pwned` & é ж"
    folder.mkdir()
    checkout(folder)
    data = "in $(touch pwned); 'ж'\n\""
    parts = {}
    for split, line in (("train", EVIL), ("dev", "a $(touch pwned)"), ("test", "b; touch pwned")):
        parts[split] = [{"source": f"{split} $(touch pwned).en", "target": f"{split};ж.de"}]
        for name in parts[split][0].values():
            write_text(folder / data / name, line.replace("\n", " ") + "\n")
    cleaning = {"max_words": 99, "max_length_ratio": 9.0}
    entry = {"kind": "files", "source": "en", "target": "de", "folder": data, "cleaning": cleaning, **parts}
    whole = merged(config(), {"corpora": {"shell": entry}, "experiments": {"shell": {"corpus": "shell"}}})
    write_text(folder / "mine.yaml", yaml.safe_dump(whole | {"run": ["shell"]}))
    text = "results/corpora/shell/train.source.txt"
    said = snakemake(folder, text, "--cores", "1", "--configfile", "mine.yaml").stdout
    assert read_lines(folder / text) == [" ".join(EVIL.split())], said
    assert not list(tmp_path.rglob("pwned")) and not (ROOT / "pwned").exists()


MARKUP = "</script><script>alert('pwned')</script><img src=x onerror=alert('pwned')>"


@pytest.mark.slow
def test_the_report_shows_markup_in_results_and_settings_as_text(tmp_path: Path) -> None:
    folder = checkout(tmp_path)
    table, trees = "results/tables/table_parser.tsv", "results/tiny/parser/stanza.conllu"
    for name in (trees, table):
        write_text(folder / name, f"relation\tlas\n{MARKUP}\t1\n")
    entry = {**config()["corpora"]["multi30k"], "folder": MARKUP}
    whole = merged(config(roles={"relations": [MARKUP]}), {"corpora": {"evil": entry}})
    write_text(folder / "mine.yaml", yaml.safe_dump(whole))
    said = snakemake(folder, table, "--configfile", "mine.yaml", "--report", "page.html").stdout
    page = (folder / "page.html").read_text(encoding="utf-8")
    # The table is there, as data.
    assert base64.b64encode((folder / table).read_bytes()).decode() in page, said
    assert "alert('pwned')" not in page and "<script>alert" not in page
