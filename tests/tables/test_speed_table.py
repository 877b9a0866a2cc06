"""The table of speed: which of the paper's rows is beside ours, and what is averaged."""

from __future__ import annotations

from pathlib import Path

from fake_results import World, table_of, write_results
from heads.analysis.speed import COLUMNS
from heads.base.files import read_tsv, write_tsv
from heads.tables.reading import load_reference


def test_the_table_puts_the_papers_row_of_the_same_batch_size_beside_ours(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "tiny", World(lams=("0.25",), seeds=(1,)))
    rows = {(row["kind"], row["batch_sentences"]): row for row in table_of("speed", runs)}
    assert set(rows) == {(kind, size) for kind in ("baseline", "pruned") for size in ("1", "5", "64")}
    ours, unpruned = rows["pruned", "64"], rows["baseline", "64"]
    assert [ours[f"faster_percent{end}"] for end in ("", "_low", "_high")] == ["25.0", "12.5", "50.0"]
    assert (ours["lam"], ours["scope"], unpruned["scope"], unpruned["faster_percent"]) == ("0.25", "all", "", "0.0")
    assert [ours[name] for name in ("keep", "heads", "of", "examples_per_second")] == ["", "16", "36", "1600"]
    paper = ("paper_model", "paper_examples_per_second", "paper_examples_per_second_spread", "paper_faster_percent")
    model = "BERT on MNLI, GTX 1080Ti, "
    assert [ours[name] for name in paper] == [f"{model}50% of heads removed", "146.6", "3.4", "17.5"]
    assert [unpruned[name] for name in paper] == [f"{model}unpruned", "124.7", "2.9", ""]
    assert {rows[kind, "5"]["paper_tag"] for kind in ("baseline", "pruned")} == {""}


def test_the_tables_rows_of_one_device_stand_together_and_seeds_are_averaged_within_it(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "tiny", World(lams=("0.25",), seeds=(1, 2)))
    for path in tmp_path.rglob("speed.tsv"):
        rows = read_tsv(path)
        faster = {"device": "A GPU", "ratio": "1.5", "ratio_low": "1.4", "ratio_high": "1.6"}
        write_tsv(path, [row for pair in ((row | faster, row) for row in rows) for row in pair], COLUMNS)
    table = table_of("speed", runs)
    half = len(table) // 2
    assert [row["device"] for row in table] == ["CPU, 1 threads"] * half + ["A GPU"] * half
    means = {(row["device"], row["kind"]): row["faster_percent"] for row in table if row["seed"] == "mean"}
    assert means == {("CPU, 1 threads", "baseline"): "0.0", ("CPU, 1 threads", "pruned"): "25.0",
                     ("A GPU", "baseline"): "50.0", ("A GPU", "pruned"): "50.0"}  # fmt: skip


def test_the_gains_of_the_papers_table_follow_from_its_rates_up_to_rounding() -> None:
    paper = load_reference("michel_table4_speed.csv")
    is_first = paper["model"] == "unpruned"
    unpruned, pruned = (paper[rows].set_index("batch_sentences") for rows in (is_first, ~is_first))
    gain = 100 * (pruned["examples_per_second"] / unpruned["examples_per_second"] - 1)
    assert (abs(gain - pruned["gain_percent"]) < 0.3).all()
    assert list(gain.index) == [1, 4, 16, 64]
