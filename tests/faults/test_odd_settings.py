"""Settings and corpora at and beyond their limits: the right result or one sentence."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml
from workshop import Command, config, encoded, gates_words, training_words, write_settings

from checkouts import ROOT
from heads.__main__ import main
from heads.base.files import UserError, read_jsonl, read_lines, read_tsv, write_text
from heads.base.names import SIDES, SPLITS
from heads.base.targets import GATED, Target
from heads.config.settings import resolve, stage_settings
from heads.model.folder import load_folder
from slow_ones import slow_but

HEADS = 12


def gated(results: Path, start: Path, out: Path, **flags: object) -> tuple[int | None, str]:
    return Command(gates_words(results, start, out, **flags), out.parent / "said.txt").end()


ENDS = [("lam-0", HEADS), ("lam-1000000000", 0), ("keep-0", 0), ("keep-12", 12)]


@pytest.mark.parametrize(("target", "heads"), slow_but(ENDS[1:3], ENDS))
def test_lambdas_and_budgets_at_their_ends_train_to_finite_weights_and_the_heads_they_say(
    results: Path, undisturbed: Path, tmp_path: Path, target: str, heads: int
) -> None:
    # Seven updates are enough to close all gates if each moves them far.
    write_settings(tmp_path / "quick", gates={"gate_learning_rate": 1.0} if target == "lam-1000000000" else {})
    settings = tmp_path / "quick/tiny/settings/gates.yaml"
    status, said = gated(results, undisturbed, tmp_path / "run", target=target, settings=settings)
    assert status == 0, said
    model = load_folder(tmp_path / "run", with_closed=True)
    assert all(value.isfinite().all() for value in model.state_dict().values())
    assert sum(int(row["open"]) for row in read_tsv(tmp_path / "run/heads.tsv")) == heads
    first, last = (sum(map(sum, r["p_open"]["enc_self"])) for r in read_jsonl(tmp_path / "run/gates.jsonl")[::3])
    assert last < first if target == "lam-1000000000" else last > 0


@pytest.mark.slow
def test_a_model_without_any_head_is_pruned_and_translates(results: Path, undisturbed: Path, tmp_path: Path) -> None:
    experiment = tmp_path / "results/tiny"
    shutil.copytree(results / "tiny/bpe", experiment / "bpe")
    start, out = tmp_path / "start", experiment / "pruned/all/keep-0/seed-1"
    assert gated(results, undisturbed, start, target="keep-0")[0] == 0
    files = {"start-model": start, "gates": start / "heads.tsv", "model": out, "heads": out / "heads.tsv"}
    words = ["pruned", *(text for name, path in files.items() for text in (f"--{name}", str(path)))]
    status, said = Command(words, tmp_path / "said.txt").end()
    assert status == 0, said
    assert {row["open"] for row in read_tsv(out / "heads.tsv")} == {"0"}
    write_text(tmp_path / "in.txt", "a bird sings\n")
    words = ["translate", str(out), "--beam", "2", "--length-penalty", "0"]
    status, said = Command(words, tmp_path / "said.txt", given=tmp_path / "in.txt").end()
    assert status == 0, said
    assert len(read_lines(tmp_path / "in.out")) == 1


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ("keep-13", "keep-13 asks for 13 heads of .*, but there are only 12"),
        ("keep-1-5-2", "keep-1-5-2 asks for 5 heads of dec_self, but there are only 4"),
        ("lam--1", "'lam--1' is not a target of gates: write lam-0.05 with a number of at least 0"),
        ("lam-nan", "'lam-nan' is not a target"),
        ("lam-.", "'lam-.' is not a target"),
        ("lam-1.2.3", "'lam-1.2.3' is not a target"),
        ("lrp-3", "'lrp-3' is not a target of gates: write lam-0.05 .*, keep-12, keep-4-6-8 or dsp-12"),
    ],
)
def test_a_negative_lambda_and_a_budget_of_more_heads_than_there_are_end_in_one_sentence(
    results: Path, undisturbed: Path, tmp_path: Path, target: str, sentence: str
) -> None:
    status, said = gated(results, undisturbed, tmp_path / "run", target=target)
    assert status == 1 and re.fullmatch(rf"error: {sentence}.*\n", said), said


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ([-0.1], r"sweep\.lambdas\.all\.0"),
        ([float("nan")], r"lambdas\.all\.0"),
        ([1e10], r"lambdas\.all\.0"),
        ([0, 1e9], ""),
    ],
)
def test_a_lambda_in_the_settings_is_refused_before_the_first_job_unless_it_can_be_meant(
    values: list[Any], sentence: str
) -> None:
    given = config(sweep={"lambdas": {"all": values}})
    if not sentence:
        assert [target.lam for target in resolve(given)["tiny"].sweep.lambdas["all"]] == values
        return
    with pytest.raises(UserError, match=sentence):
        resolve(given)


def made(folder: Path, lines: dict[str, list[str]], **cleaning: Any) -> int:
    """Exit status of the corpus command on files with these lines on both sides of the splits."""
    for split in SPLITS:
        for side in SIDES:
            write_text(folder / f"in/{split}.{side}", "".join(f"{line}\n" for line in lines[split]))
    parts = {split: [{side: f"{split}.{side}" for side in SIDES}] for split in SPLITS}
    limits = {"max_words": 100, "max_length_ratio": 3.0, **cleaning}
    entry = {"kind": "files", "source": "en", "target": "de", "folder": str(folder / "in"), "cleaning": limits, **parts}
    write_text(folder / "settings.yaml", yaml.safe_dump(entry))
    words = ["corpus", "--settings", str(folder / "settings.yaml"), "--downloads", str(folder)]
    return main([*words, "--out-folder", str(folder / "out")])


def test_an_empty_corpus_ends_in_one_sentence(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert made(tmp_path, {"train": [], "dev": ["one line"], "test": ["another"]}) == 1
    said = capfd.readouterr().err
    assert re.fullmatch(r"error: The train split of the en-de corpus is empty.*\n", said), said
    assert not list(tmp_path.glob("out/*.txt"))


def bpe(folder: Path, subwords: int) -> int:
    """Make both vocabularies of a corpus from `made`, then its subwords; return the exit status."""
    sizes = {"source_subwords": subwords, "target_subwords": subwords}
    write_text(folder / "bpe.yaml", yaml.safe_dump(stage_settings(resolve(config(bpe=sizes))["tiny"], "bpe")))
    return encoded(folder / "out", folder / "bpe", folder / "bpe.yaml")


def trained(results: Path, place: Path) -> str:
    """Train on a corpus from `made` and `bpe`; return what was said."""
    files = {"data": place / "bpe", "references": place / "out/dev.target.txt"}
    status, said = Command(training_words("baseline", results, place / "run", **files), place / "said.txt").end()
    assert status == 0, said
    return said


def test_a_vocabulary_larger_than_the_corpus_allows_ends_in_one_sentence(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert made(tmp_path, {"train": ["a bc", "b ca"], "dev": ["c"], "test": ["a"]}) == 0
    capfd.readouterr()
    assert bpe(tmp_path, 500) == 1
    said = capfd.readouterr().err
    assert re.fullmatch(r"error: \S*train\.source\.txt cannot give 500 subwords: .*\n", said), said
    assert not list(tmp_path.glob("bpe/*"))


@pytest.mark.slow
@pytest.mark.parametrize("tokens", [3, 10_000])
def test_a_corpus_of_one_sentence_is_trained_on_and_a_dev_line_of_ten_thousand_tokens_is_left_out(
    results: Path, tmp_path: Path, tokens: int
) -> None:
    losses = {}
    for name, dev in (("with", ["b a", " ".join(["ab"] * tokens)]), ("without", ["b a"])):
        place = tmp_path / name
        assert made(place, {"train": ["ab ba abba"], "dev": dev, "test": ["a"]}) == 0
        assert bpe(place, 9) == 0
        trained(results, place)
        losses[name] = [line["dev_loss"] for line in read_jsonl(place / "run/train.jsonl")]
    assert len(losses["with"]) == 3
    assert (losses["with"] == losses["without"]) == (tokens == 10_000), "of one sentence, or of another one too"


def test_a_training_line_of_ten_thousand_tokens_is_cleaned_away_or_left_out_and_told(
    results: Path, tmp_path: Path
) -> None:
    long = " ".join(["ab"] * 10_000)
    lines = {"train": ["ab ba abba", long], "dev": ["b a"], "test": ["a"]}
    assert made(tmp_path / "cleaned", lines) == 0
    assert read_lines(tmp_path / "cleaned/out/train.source.txt") == ["ab ba abba"]
    assert made(tmp_path, lines, max_words=20_000) == 0
    assert bpe(tmp_path, 9) == 0
    assert "1 training pairs are longer than max_subwords and are left out" in trained(results, tmp_path)


@pytest.mark.slow
def test_a_line_of_ten_thousand_tokens_is_translated_in_parts(results: Path, undisturbed: Path, tmp_path: Path) -> None:
    run = tmp_path / "tiny/baseline/seed-1"
    shutil.copytree(undisturbed, run)
    shutil.copytree(results / "tiny/bpe", tmp_path / "tiny/bpe")
    write_text(tmp_path / "in.txt", " ".join(["bird"] * 10_000) + "\na bird\n")
    words = ["translate", str(run), "--beam", "1", "--length-penalty", "0"]
    status, said = Command(words, tmp_path / "said.txt", given=tmp_path / "in.txt").end()
    assert status == 0, said
    assert len(read_lines(tmp_path / "in.out")) == 2


def test_the_command_takes_the_same_lambdas_as_the_paths_of_the_workflow() -> None:
    rules = (ROOT / "workflow/rules/common.smk").read_text(encoding="utf-8")
    assert re.findall(r"^    target=(.*),$", rules, re.MULTILINE) == ["GATED"]
    for number, taken in (("0", True), ("0.05", True), ("20", True), (".05", False), ("0.050", False), ("-1", False),
                          ("5e-2", False), ("05", False), ("0.", False), ("nan", False), ("", False)):  # fmt: skip
        assert bool(re.fullmatch(GATED, f"lam-{number}")) == taken
        if taken:
            assert Target.parse(f"lam-{number}", by_gates=True).lam == float(number)
        else:
            with pytest.raises(
                UserError, match=r"is not a target of gates: write lam-0\.05 with a number of at least 0"
            ):
                Target.parse(f"lam-{number}", by_gates=True)
