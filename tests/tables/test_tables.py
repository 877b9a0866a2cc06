"""Tables: the content of each cell, against counting by hand."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import save_file

from fake_results import World, table_of, write_results
from heads.base.files import UserError, read_json, write_json, write_lines, write_tsv
from heads.base.names import TRANSLATION
from heads.tables.catalogue import TABLES
from heads.tables.corpus import corpus_table
from heads.tables.gathering import write_frame
from heads.tables.reading import REFERENCE, SCORED, frame_of, load_reference, load_runs
from heads.tables.roles import function_of

WORLD = World(layers=3, heads=4, lams=("0.01", "0.1"), seeds=(1, 2))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_results(tmp_path_factory.mktemp("results") / "first", WORLD)


def test_what_the_papers_tables_and_figures_count_agrees() -> None:
    table2, functions, types, layers = (
        load_reference(f"voita_{name}.csv")
        for name in ("table2_pruning", "figure8_functions", "figure9_types", "figure10_layers")
    )
    columns = ["enc_self", "dec_self", "dec_enc"]
    assert (types[columns].sum(axis=1) == types["of"] - types["pruned"]).all()
    wmt = types[types["corpus"] == "WMT"]
    for (attention, pruned), rows in layers.groupby(["attention", "pruned"]):
        assert rows["heads"].sum() == wmt.set_index("pruned").loc[pruned, attention]
    models = {*wmt[columns].itertuples(index=False, name=None)}
    assert {*table2[table2["corpus"] == "WMT"][columns].itertuples(index=False, name=None)} <= models
    assert (table2[columns].sum(axis=1) == table2["total"]).all()
    sums = functions.groupby("enc_self")["heads"].sum()
    assert (sums == sums.index).all()


def test_every_number_of_the_papers_says_where_it_was_read() -> None:
    known = {"[blog]", "[fig]", "[repo]", "[second-hand]", "[repl]", "[D]", "[M]"}
    for path in REFERENCE.glob("*.csv"):
        rows = load_reference(path.name)
        if "paper" in rows:
            # Our own bounds have no number of the paper beside them; some have no sentence of the paper either.
            rows = rows[rows["paper"].notna() | (rows["tag"] != "")]
        assert rows["tag"].map(lambda tag: set(tag.split("/")) <= known).all(), path.name


def test_the_inputs_that_a_table_names_are_all_that_it_reads(runs: list[Path]) -> None:
    for name, need in ((name, table.need) for name, table in TABLES.items() if TRANSLATION in table.need.tasks):
        without = ["ablation.out_of_domain.tsv", "accuracy.json", "cosine.json", "chrf.json", "rouge_l.json"]
        inputs = need.inputs([str(run) for run in runs], without)
        read = {SCORED if path.endswith("bleu.json") else Path(path).name for path in inputs}
        assert set(load_runs(need, runs)) - {"ablation.out_of_domain.tsv"} == read, name
        assert all(Path(path).exists() for path in inputs)


def test_scores_of_before_chrf_are_against_references_and_others_against_what_they_say(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "x", World(lams=("0.1",), scratch=False, seeds=(1, 2), against="unpruned model"))
    scores = {run: read_json(run / "bleu.json") for run in runs if (run / "bleu.json").exists()}
    rows = table_of("pruning", runs)
    assert {row["against"] for row in rows if row["seed"] != "sd"} == {"unpruned model"}
    (row,) = (row for row in rows if (row["kind"], row["seed"]) == ("baseline", "2"))
    written = scores[tmp_path / "x/baseline/seed-2"]
    assert (row["score"], row["chrf"]) == (f"{written['bleu']:.2f}", f"{written['chrf']:.2f}")
    for run, score in scores.items():
        write_json(run / "bleu.json", {name: score[name] for name in ("bleu", "signature", "split", "sentences")})
    rows = table_of("pruning", runs)
    assert {(row["against"], row["chrf"]) for row in rows if row["seed"] != "sd"} == {("references", "")}


@pytest.mark.parametrize(
    ("roles", "function"),
    [((), "other"), (("positional",), "positional"), (("syntactic",), "syntactic"),
     (("syntactic", "positional"), "positional_and_syntactic"), (("positional", "rare"), "rare")],
)  # fmt: skip
def test_a_head_of_several_roles_has_one_function(roles: tuple[str, ...], function: str) -> None:
    assert function_of(roles) == function


def test_a_model_without_encoder_heads_has_a_row_of_zeros(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "none", World(lams=("99",), scratch=False))
    row = next(r for r in table_of("roles", runs) if r["lam"] == "99")
    assert (row["live"], row["other"], row["rare"]) == ("0", "0", "0")


def test_a_relation_that_never_occurs_leaves_its_cells_empty(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "treeless", World(lams=(), trees=False))
    rows = table_of("dependencies", runs)
    assert {(row["cases"], row["best_percent"], row["layer"]) for row in rows} == {("0", "", "")}
    assert len(rows) == 8


def test_the_corpus_table_counts_pairs_words_and_subwords(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heads.tables.corpus.vocabulary_or_labels", lambda path: [path] * 17)
    for split, size in (("train", 3), ("dev", 2), ("test", 1)):
        for side, words in (("source", "a b c"), ("target", "d e")):
            write_lines(tmp_path / f"corpus/{split}.{side}.txt", [words] * size)
            (tmp_path / "bpe").mkdir(exist_ok=True)
            offsets = np.arange(0, 5 * size + 1, 5)
            save_file(
                {"ids": np.zeros(5 * size, np.int32), "offsets": offsets}, tmp_path / f"bpe/{split}.{side}.safetensors"
            )
    steps = [("train", "empty", 9, 2, 7), ("train", "duplicate", 7, 4, 3)]
    columns = ("split", "filter", "pairs_in", "pairs_removed", "pairs_left")
    write_tsv(tmp_path / "corpus/filters.tsv", [dict(zip(columns, step, strict=True)) for step in steps], columns)
    train, dev, _ = corpus_table([tmp_path], [tmp_path / "corpus"]).to_dict("records")
    assert [train[k] for k in ("pairs", "source_words_per_sentence", "target_words_per_sentence")] == [3, 3, 2]
    assert [train[k] for k in ("source_subwords_per_sentence", "source_vocabulary")] == [5, 17]
    assert [train[k] for k in ("pairs_before_filters", "pairs_removed_by_filters")] == [9, 6]
    assert (train["paper_wmt_pairs"], train["paper_opensubtitles_pairs"]) == (2_500_000, 6_000_000)
    assert (train["paper_wmt_tokens_per_sentence"], train["paper_opensubtitles_tokens_per_sentence"]) == (24, 8)
    assert train["paper_wmt_pairs_tag"] == "[second-hand]/[blog]"
    assert pd.isna(dev["paper_wmt_pairs"])


def test_numbers_are_written_with_the_decimals_of_their_kind(tmp_path: Path) -> None:
    columns = ("seed", "bleu", "score_minus_control", "gain_points", "tag")
    frame = frame_of([{"seed": 1, "bleu": 27.1, "score_minus_control": -0.001, "gain_points": None}], columns[:4])
    write_frame(tmp_path / "t.tsv", frame.assign(tag="[fig]"))
    assert (tmp_path / "t.tsv").read_text() == "\t".join(columns) + "\n1\t27.10\t0.00\t\t[fig]\n"


def test_a_missing_or_damaged_file_is_named(runs: list[Path], tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"baseline/seed-7/roles.tsv does not exist"):
        load_runs(TABLES["dependencies"].need, [runs[0].parent / "seed-7"])
    with pytest.raises(UserError, match=r"not the folder of a run|does not end"):
        load_runs(TABLES["roles"].need, [tmp_path / "a/b/c/d/e"])
    broken = tmp_path / "x/baseline/seed-1/roles.tsv"
    write_lines(broken, ["layer\thead", "0\t1"])
    with pytest.raises(UserError, match=r"roles.tsv is not as expected"):
        load_runs(TABLES["dependencies"].need, [broken.parent])
