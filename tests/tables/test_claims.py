"""Claims: verdicts, evidence from files, the papers' own numbers against their conditions, several seeds."""

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from fake_results import RULES, World, table_of, write_results
from heads.base.files import read_tsv
from heads.base.names import ACCURACY, ATTENTIONS, BLEU
from heads.tables.catalogue import TABLES
from heads.tables.claims import CLAIMS, over_seeds, stated
from heads.tables.claims_heads import AGREES, CONFIDENT, EXCEPTIONS, RELEVANCE_CLAIMS
from heads.tables.claims_michel import MICHEL_CLAIMS
from heads.tables.curves import NOT_SETTLED
from heads.tables.evidence import DRAWS, gather, of_draws
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames, load_reference, load_runs
from heads.tables.seeds import with_spread
from heads.tables.verdicts import TOO_FEW, TOO_WEAK, Finding, holds
from heads.translation.bleu import bleu_of
from made_evidence import run_of

WORLD = World(layers=3, heads=4, lams=("0.01", "0.1"), seeds=(1, 2))
PAPER = load_reference("voita_claims.csv")


@pytest.mark.parametrize(
    ("finding", "condition", "limit", "answer"),
    [(Finding(3, 3), "all", 0, "yes"), (Finding(2, 3), "all", 0, "no"), (Finding(0, 0), "all", 0, ""),
     (Finding(0, 2), "all", 0, "no"),
     (Finding(0.1), "above", 0.1, "no"), (Finding(0.1), "at least", 0.1, "yes"), (Finding(2), "at most", 1, "no"),
     (Finding(0.4, p_value=0.2), "above", 0, "unclear"), (Finding(-0.4, p_value=0.2), "above", 0, "unclear"),
     (Finding(-0.4, p_value=0.01), "above", 0, "no"), (Finding(0.1, p_value=0.2), "at least", 0.5, "no"),
     (Finding(0.4, low=0.1, high=0.7), "above", 0, "yes"), (Finding(0.4, low=-0.1, high=0.9), "above", 0, "unclear"),
     (Finding(-0.4, low=-0.9, high=0.1), "above", 0, "unclear"), (Finding(-0.4, low=-0.9, high=-0.1), "above", 0, "no"),
     (Finding(2, 3, low=1, high=3), "all", 0, "unclear"), (Finding(3, 3, low=3, high=3), "all", 0, "yes"),
     (Finding(1, chance=0.17), "at most", 1, "too few heads to tell"), (Finding(2, chance=0.17), "at most", 1, "no"),
     (Finding(1, chance=0.02), "at most", 1, "yes"), (Finding(float("nan")), "above", 0, "")],
)  # fmt: skip
def test_a_claim_holds_by_its_condition(finding: Finding, condition: str, limit: float, answer: str) -> None:
    assert holds(finding, condition, limit) == answer


def test_every_claim_of_the_papers_is_tried_and_told_apart() -> None:
    papers = stated(*map(load_reference, TABLES["claims"].need.reference))
    translators = papers[papers["metric"] == BLEU]
    assert sorted(translators["id"]) == sorted([*CLAIMS, *RELEVANCE_CLAIMS])
    assert {*papers.loc[papers["metric"] == ACCURACY, "id"]} < {*MICHEL_CLAIMS}
    assert not papers.duplicated(["metric", "claim", "measure"]).any(), "what tells rows of several seeds apart"


def test_limits_that_chance_is_computed_for_are_those_that_decide() -> None:
    limits = PAPER.set_index("id")["limit"]
    assert (limits["top_heads_differ"], limits["without_exception"]) == (EXCEPTIONS, AGREES)
    assert str(CONFIDENT) in PAPER.set_index("id")["measure"]["positional_confident"]


def test_a_number_that_was_derived_here_says_so_and_one_that_was_read_tells_where() -> None:
    """A difference or a count over a figure was not read there; the paper has no number for our own bounds."""
    tags = PAPER.set_index("id")["tag"]
    read = set(PAPER.dropna(subset="paper").query("tag != '[D]'")["id"])
    assert read == {"exception_is_first", "rare_heads", "rare_most_relevant", "rarest", "two_rarest", "two_rarest_wmt",
                    "penalty_from_scratch", "encoder_from_scratch", "encoder_10_of_48", "encoder_4_of_48"}  # fmt: skip
    assert set(tags[PAPER[PAPER["paper"].isna()]["id"]]) == {"[second-hand]", "[blog]/[second-hand]", "[M]", ""}
    assert set(tags.index[tags == ""]) == {"encoder_10_of_48_control", "all_75_of_144_control"}


def test_the_papers_numbers_of_pruned_models_are_those_of_its_tables() -> None:
    paper = PAPER.set_index("id")["paper"]
    table2 = load_reference("voita_table2_pruning.csv")
    gains = (table2["score"] - table2["score_scratch"]).dropna()
    assert paper["scratch_gain"] == pytest.approx(gains.mean(), abs=5e-3)
    assert (paper["scratch_not_better"], len(gains)) == ((gains >= 0).sum(), 7)
    wmt = table2[table2["corpus"] == "WMT"].set_index("total")
    assert paper["all_58_of_144"] == pytest.approx(wmt["score"][58] - wmt["score"][144])
    free = wmt[(wmt["enc_self"] <= 14) & (wmt["dec_self"] + wmt["dec_enc"] <= 61)]
    expected = wmt["score"][75] - wmt["score"][144]
    assert free.index.max() == 75
    assert paper[["all_75_of_144", "three_quarters_of_encoder"]].tolist() == pytest.approx([expected] * 2)
    figure7 = load_reference("voita_figure7_encoder_pruning.csv").set_index(["corpus", "enc_self"])["score"]
    for name, corpus, left in (("encoder_10_of_48", "WMT", 10), ("encoder_5_of_48", "WMT", 5),
                               ("encoder_4_of_48", "OpenSubtitles", 4)):  # fmt: skip
        assert paper[name] == pytest.approx(figure7[corpus, left] - figure7[corpus, 48]), name


def test_the_papers_numbers_of_heads_that_are_left_are_those_of_its_figures() -> None:
    paper = PAPER.set_index("id")["paper"]
    types = load_reference("voita_figure9_types.csv").query("pruned > 0")
    fewest = types["enc_self"] < types[["dec_self", "dec_enc"]].min(axis=1)
    assert paper["encoder_fewest"] == fewest.sum()
    shares = types.assign(**{kind: types[kind] / 48 for kind in ATTENTIONS}).set_index("corpus")[list(ATTENTIONS)]
    wmt, subtitles = shares.loc["WMT"], shares.loc["OpenSubtitles"]
    assert paper["source_over_self"] == pytest.approx((wmt["dec_enc"] - wmt["dec_self"]).mean(), abs=5e-5)
    assert paper["self_near_source"] == pytest.approx((wmt["dec_enc"] - wmt["dec_self"]).abs().mean(), abs=5e-5)
    above = subtitles["dec_self"] - subtitles["enc_self"]
    assert paper["self_over_encoder"] == pytest.approx(above.mean(), abs=5e-5)
    assert paper["self_near_encoder"] == pytest.approx(above.abs().mean(), abs=5e-5)
    layers = load_reference("voita_figure10_layers.csv").query("pruned > 0")
    share = (layers["heads"] / layers["of"]).groupby([layers["attention"], layers["layers"]]).mean()
    assert paper["self_in_low_layers"] == pytest.approx(share["dec_self", "1+2"] - share["dec_self", "5+6"], abs=5e-5)
    assert paper["source_in_high_layers"] == pytest.approx(share["dec_enc", "5+6"] - share["dec_enc", "1+2"], abs=5e-5)


def test_the_papers_numbers_of_functions_are_those_of_its_figures() -> None:
    paper = PAPER.set_index("id")
    counts = load_reference("voita_figure8_functions.csv").pivot(index="enc_self", columns="function", values="heads")
    small = counts[counts.index <= 17].sum()
    doubled = small["positional_and_syntactic"] / (small["positional_and_syntactic"] + small["positional"])
    assert counts.loc[48, "positional_and_syntactic"] == 0
    assert paper.loc["functions_drift", "paper"] == pytest.approx(doubled, abs=5e-5)
    kinds = counts.loc[17, ["positional", "syntactic", "rare"]]
    assert paper.loc["functions_at_17_of_48", "paper"] == (kinds > 0).sum()
    # Figures 1 and 2: positional and syntactic heads of EN-RU, EN-DE and EN-FR, each of 48.
    shares = np.array([5 + 5 + 4, 8 + 9 + 7]) / 144
    assert paper.loc[["positional_share", "syntactic_share"], "paper"].tolist() == pytest.approx(shares, abs=5e-5)
    assert paper.loc["positional_confident", "paper_of"] == 5 + 5 + 4
    table1 = load_reference("voita_table1_dependencies.csv").groupby(["relation", "direction"])
    beaten = (table1["best_percent"].min() > table1["baseline_percent"].max()) | table1.apply(
        lambda rows: (rows["best_percent"] > rows["baseline_percent"]).all()
    )
    assert paper.loc["relations_beaten", "paper"] == beaten.sum() == 8


SEEN = ("baseline", "", ""), ("pruned", "all", "0"), ("pruned", "all", "0.1"), ("scratch", "all", "0.1"), \
    ("pruned", "enc_self", "0.1"), ("scratch", "enc_self", "0.1"), ("pruned_from_scratch", "all", "0.1")  # fmt: skip

NOTHING = pd.DataFrame({"experiment": [], "seed": []})
"""No measures of heads."""


def made_frames() -> Frames:
    """Two experiments of two seeds; every run's sentences are its own, and so is its score."""
    bleu, statistics, model = [], [], []
    for number, (experiment, seed, run) in enumerate(product(("x", "y"), (1, 2), SEEN)):
        kind, scope, _ = run
        identity = {**run_of(run), "experiment": experiment, "seed": seed}
        rng = np.random.default_rng(number)
        correct = rng.binomial([10, 9, 8, 7], 0.3 + 0.02 * number, (60, 4))
        counts = np.c_[np.full((60, 2), 10), correct, np.tile([10, 9, 8, 7], (60, 1))]
        score = {"metric": BLEU, "score": float(bleu_of(counts.sum(0))), "sentences": 60, "signature": "s"}
        bleu.append({**identity, **score})
        statistics.append({**identity, "statistics": counts})
        model += [
            {**identity, "attention": attention, "layer": 0, "head": head, "dev_loss": 1.0, "total_updates": 9,
             "pretrained": 0, "live": int(head == 0 or kind == "baseline" or attention not in (scope, "dec_enc"))}
            for attention in ATTENTIONS
            for head in range(2)
            if kind != "scratch"
        ]  # fmt: skip
    roles = pd.DataFrame(columns=[*RUN_COLUMNS, "trees", "layer", "head", "role", "name", "reaches", "holds"])
    frames = {SCORED: bleu, "bleu_statistics.tsv": statistics, "model.json": model}
    return {**{name: pd.DataFrame(rows) for name, rows in frames.items()}, "roles.tsv": roles,
            "heads.tsv": pd.DataFrame(columns=list(RUN_COLUMNS)),
            "train.jsonl": pd.DataFrame(columns=[*RUN_COLUMNS, "update", "dev_loss"])}  # fmt: skip


def test_evidence_is_of_one_experiment_and_seed_and_sets_each_model_beside_its_own_from_scratch() -> None:
    frames = made_frames()
    measures = pd.DataFrame({"experiment": ["x", "y", "y"], "seed": [2, 1, 2], "lrp": [3.0, 4.0, 5.0]})
    found = gather(frames, measures, "y", 2)
    scores = {
        (row["kind"], row["scope"], row["lam"]): row["score"]
        for row in frames[SCORED].query("experiment == 'y' and seed == 2").to_dict("records")
    }
    runs = {(row["kind"], row["scope"], row["lam"]): row for row in found.runs.to_dict("records")}
    assert runs.keys() == {run for run in scores if run[0] != "scratch"}
    for run, row in runs.items():
        assert row["scores"][0] == scores[run] and row["scores"].shape == (1 + DRAWS,)
        own = scores.get(("scratch", *run[1:])) if run[0] == "pruned" else None
        assert (row["scores_scratch"] is None) == (own is None)
        assert own is None or row["scores_scratch"][0] == own
    assert runs["pruned", "enc_self", "0.1"]["share"] == 0.5 and found.heads["lrp"].tolist() == [5]
    assert {len(frame) for frame in (found.functions, found.roles)} == {0}
    assert {name: len(frame) for name, frame in found.frames.items()} == {
        SCORED: 7, "bleu_statistics.tsv": 7, "model.json": 5 * 6, "roles.tsv": 0, "heads.tsv": 0,
        "train.jsonl": 0}  # fmt: skip


def test_the_draws_of_two_models_are_of_the_same_sentences() -> None:
    """The spread of their difference is that of a paired bootstrap written as a loop, and zero for equal models."""
    frames = made_frames()
    found = gather(frames, NOTHING, "x", 1).runs
    one, other = (found[found["kind"] == kind]["scores"].iloc[0] for kind in ("baseline", "pruned_from_scratch"))
    table = frames["bleu_statistics.tsv"].query("experiment == 'x' and seed == 1").set_index("kind")["statistics"]
    rng, differences = np.random.default_rng(77), []
    for _ in range(1500):
        drawn = rng.integers(60, size=60)
        differences.append(
            bleu_of(table["baseline"][drawn].sum(0)) - bleu_of(table["pruned_from_scratch"][drawn].sum(0))
        )
    finding = of_draws(one - other)
    low, high = np.quantile(differences, [0.025, 0.975])
    assert (finding.low, finding.high) == pytest.approx((low, high), abs=0.12 * (high - low))
    every = frames["bleu_statistics.tsv"]
    twice = every.assign(statistics=[every["statistics"][0]] * len(every))
    same = gather({**frames, "bleu_statistics.tsv": twice}, NOTHING, "x", 1).runs
    np.testing.assert_array_equal(same["scores"].iloc[0][1:], same["scores"].iloc[-1][1:])


@pytest.mark.parametrize(("updates", "stands"), [(8, True), (9, True), (10, False)])
def test_heads_trained_on_for_longer_than_from_scratch_are_not_compared_with_them(
    updates: int, *, stands: bool
) -> None:
    frames = made_frames()
    for name, frame in frames.items():
        pruned = frame[(frame["kind"] == "pruned") & (frame["lam"] == "0.1")] if len(frame) else frame
        more = [frame, pruned.assign(kind="selected")]
        if name == "model.json":
            more = [frame, more[1].assign(total_updates=updates), pruned.assign(kind="scratch")]
        frames[name] = pd.concat(more, ignore_index=True)
    frames["train.jsonl"] = pd.DataFrame(
        {**row, "kind": kind, "update": update, "dev_loss": 1 + (kind == "gates") * (9 - update)}
        for row in frames["model.json"].query("kind == 'scratch'")[[*RUN_COLUMNS]].drop_duplicates().to_dict("records")
        for kind in ("gates", "selected", "scratch")
        for update in (8, 9)
    )
    more = frames["model.json"].query("kind == 'scratch'").assign(kind="gates")
    frames["model.json"] = pd.concat([frames["model.json"], more], ignore_index=True)
    runs = gather(frames, NOTHING, "x", 1).runs
    row = runs[(runs["kind"] == "pruned") & (runs["lam"] == "0.1")].iloc[0]
    assert (row["scores_trained_on"] is not None) == stands
    assert row["pair"] == ("settled" if stands else "not settled"), "that of the model which is compared"


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, str]]:
    return table_of("claims", write_results(tmp_path_factory.mktemp("results") / "first", WORLD))


def test_the_claims_table_asks_every_reading_of_every_seed(rows: list[dict[str, str]]) -> None:
    asked = {(row["seed"], row["rule"]) for row in rows if row["rule"]}
    readings = [f"{rule}, {share}" for rule in RULES for share in ("signed by step", "signed of sums", "absolute")]
    assert asked == set(product(("1", "2", "mean", "sd"), readings))
    assert {row["holds"] for row in rows} <= {"yes", "no", "unclear", "", TOO_FEW, NOT_SETTLED}
    assert len(rows) == 4 * (len(CLAIMS) + 2 * 3 * len(RELEVANCE_CLAIMS))


def test_each_reading_decides_by_its_own_column_and_the_first_says_where_others_differ(
    rows: list[dict[str, str]], tmp_path: Path
) -> None:
    write_results(tmp_path / "first", WORLD)
    heads = [read_tsv(tmp_path / f"first/baseline/seed-2/{name}.tsv") for name in ("confidence", "lrp")]
    confidence, relevance = (
        [[row for row in table if (row["attention"], row["layer"]) == ("enc_self", str(layer))] for layer in range(3)]
        for table in heads
    )
    own = {row["rule"]: row for row in rows if row["seed"] == "2" and row["measure"].startswith("encoder layers whose")}
    shares = {"signed by step": "relevance", "signed of sums": "relevance_of_sums", "absolute": "relevance_absolute"}
    counted = set()
    for rule, (name, column) in product(RULES, shares.items()):
        tops = 0
        for layer, sure in zip(relevance, confidence, strict=True):
            most = max((row for row in layer if row["rule"] == rule), key=lambda row: float(row[column]))
            tops += most["head"] != max(sure, key=lambda row: float(row["confidence"]))["head"]
        assert float(own[f"{rule}, {name}"]["ours"]) == tops
        counted.add(tops)
    assert len(counted) > 1
    noted = [row for row in rows if row["other_readings"]]
    assert noted and {row["rule"] for row in noted} == {"plain, signed by step"}


def test_a_mean_over_seeds_that_are_not_settled_is_not_settled(rows: list[dict[str, str]]) -> None:
    gains = {row["seed"]: row["holds"] for row in rows if row["measure"] == "mean BLEU minus that from scratch"}
    assert [gains[seed] for seed in ("1", "2", "mean")] == [NOT_SETTLED] * 3


def test_the_claims_table_holds_the_number_its_interval_and_the_papers(
    rows: list[dict[str, str]], tmp_path: Path
) -> None:
    runs = write_results(tmp_path / "first", WORLD)
    scores = load_runs(TABLES["pruning"].need, runs)[SCORED].query("scope == 'all' and lam != '0' and seed == 1")
    pruned, scratch = (scores[scores["kind"] == kind].set_index("lam")["score"] for kind in ("pruned", "scratch"))
    row = next(r for r in rows if r["seed"] == "1" and r["measure"] == "mean BLEU minus that from scratch")
    assert float(row["ours"]) == pytest.approx((pruned - scratch).mean(), rel=1e-3)
    assert float(row["low"]) < float(row["ours"]) < float(row["high"])
    facts = [row[name] for name in ("paper", "holds_if", "limit", "source", "tag", "of", "p_value")]
    assert facts == ["0.32", "above", "0", "Voita et al., Table 2", "[D]", "", ""]
    never = [r for r in rows if r["source"] == "Voita et al., footnote 8"]
    assert len(never) == 2 * 3 and {r["holds"] for r in never} == {""} and {r["ours"] for r in never} == {""}


def seeds(
    ours: list[float], verdicts: list[str], condition: str = "above", limit: float = 0.0,
    ends: tuple[float, float] = (np.nan, np.nan),
) -> dict[str, Any]:  # fmt: skip
    """The row of means over some seeds, each of which has an interval with these ends."""
    frame = pd.DataFrame({"claim": "c", "seed": range(len(ours)), "ours": ours, "of": 3, "low": ends[0],
                          "high": ends[1], "holds_if": condition, "limit": limit, "holds": verdicts})  # fmt: skip
    table = over_seeds(with_spread(frame, ["claim"]), ["claim"])
    assert table["seed"].tolist() == [*range(len(ours)), "mean", "sd"]
    assert table["holds"].tolist()[: len(ours)] == verdicts
    return dict(table.iloc[len(ours)])


def test_several_seeds_decide_together() -> None:
    row = seeds([1.0, 2.0, 3.0, 2.0], ["unclear"] * 4)
    # Student's interval: the standard deviation is the root of 2/3, three degrees of freedom.
    half = 3.182 * (2 / 3) ** 0.5 / 2
    assert (row["low"], row["high"], row["holds"]) == (pytest.approx(2 - half), pytest.approx(2 + half), "yes")
    assert seeds([1.0, 2.0], ["yes", "unclear"])["holds"] == "unclear"
    assert seeds([-1.0, -1.1], ["no", "unclear"])["holds"] == "no"
    assert seeds([1.0, 1.1], [TOO_FEW, TOO_FEW])["holds"] == TOO_FEW
    assert seeds([1.0, 1.1], [TOO_FEW, "yes"])["holds"] == "yes"
    assert seeds([3.0, 3.0], ["yes", "yes"], "all")["holds"] == "yes"
    assert seeds([3.0, 2.0], ["yes", "no"], "all")["holds"] == "unclear"
    assert not seeds([1.0, np.nan], ["yes", ""])["holds"]
    for verdicts in ([TOO_WEAK, TOO_WEAK], [TOO_WEAK, "yes"], ["no", TOO_WEAK]):
        assert seeds([0.1, 0.12], verdicts, "at most", 0.5)["holds"] == TOO_WEAK, "one was too weak"


def test_seeds_that_agree_make_nothing_surer_than_each_of_them_is() -> None:
    row = seeds([0.0, 0.0], ["unclear"] * 2, "at least", 0.5, ends=(0.0, 0.71))
    assert (row["low"], row["high"], row["holds"]) == (0, 0.71, "unclear")
    wide = seeds([1.0, 3.0], ["unclear"] * 2, ends=(0.5, 4.0))
    assert (wide["low"], wide["high"]) == (pytest.approx(2 - 12.706), pytest.approx(2 + 12.706))
    assert seeds([0.2, 0.2], ["unclear"] * 2)["holds"] == "unclear", "by p alone"
    assert seeds([0.2, 0.2], ["yes"] * 2, ends=(0.1, 0.3))["holds"] == "yes"


@pytest.mark.parametrize(("verdict", "sign"), [("yes", 1), ("no", -1)])
def test_what_each_seed_says_alone_they_say_together(verdict: str, sign: int) -> None:
    row = seeds([1.0 * sign, 3.0 * sign], [verdict] * 2)
    assert row["holds"] == verdict and row["low"] < 0 < row["high"], "an interval over two seeds is wide"
    assert seeds([1.0 * sign, 3.0 * sign], [verdict, "unclear"])["holds"] == "unclear"
    assert seeds([1.0 * sign, -1.0 * sign], [verdict, "no" if verdict == "yes" else "yes"])["holds"] == "unclear"
