"""Claims of Michel et al. 2019 by tables made by hand, each claim met and not met, and sure and unsure of it."""

from collections.abc import Sequence
from decimal import Decimal
from math import comb, isnan, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from fake_results import World, table_of, write_results
from heads.base.files import read_tsv, write_tsv
from heads.base.names import ATTENTIONS, BLEU
from heads.tables.catalogue import MICHEL, TABLES
from heads.tables.claims_michel import MICHEL_CLAIMS, share
from heads.tables.reading import READ_COLUMNS, Frames, frame_of, load_reference
from heads.tables.verdicts import Finding, holds

SURE, UNSURE = 0.001, 0.2
REFERENCE = load_reference("michel_claims.csv").set_index("id")
FILES = ("ablation.tsv", *MICHEL)


def frames(**rows: Sequence[dict[str, Any]]) -> Frames:
    """Measurements by the beginning of their file's name, with `_out_of_domain` for `.out_of_domain`."""
    given = {f"{name.replace('_out_of_domain', '.out_of_domain')}.tsv": list(found) for name, found in rows.items()}
    assert set(given) <= set(FILES)
    return {name: frame_of(given.get(name, []), READ_COLUMNS[name]) for name in FILES}


def finding(claim: str, **rows: Sequence[dict[str, Any]]) -> Finding:
    return MICHEL_CLAIMS[claim](frames(**rows))


def verdict(claim: str, **rows: Sequence[dict[str, Any]]) -> str:
    row = REFERENCE.loc[claim]
    return holds(finding(claim, **rows), row["condition"], row["limit"])


def masked(*heads: tuple[float, float], attention: str = "enc_self") -> list[dict[str, Any]]:
    """A row for each head's change and p value."""
    return [
        {"attention": attention, "layer": 0, "head": head, "metric": BLEU, "score": 30 + change, "score_change": change,
         "p_value": p}
        for head, (change, p) in enumerate(heads)
    ]  # fmt: skip


def layers(*changes: tuple[float, float], oracle: tuple[float, float] = (0.1, UNSURE)) -> list[dict[str, Any]]:
    """A row for each layer's change and p value when its head was chosen on dev; `oracle` for all when on test."""
    made = dict(zip(("score_change_oracle", "p_value_oracle"), oracle, strict=True))
    return [
        {"attention": "dec_enc", "layer": n, "metric": BLEU, "score_change": c, "p_value": p, **made}
        for n, (c, p) in enumerate(changes)
    ]


def walk(
    *bleu: float,
    order: str = "example",
    attention: str = "all",
    margin: float = 0.1,
    behind: Sequence[float] = (),
    **facts: Any,
) -> list[dict[str, Any]]:
    """Equal steps from no head to all; the interval of a change reaches `margin` to either side, that of a share a
    twenty-fifth of that."""
    of = len(bleu) - 1
    gaps = behind or [0.0] * len(bleu)
    return [
        {"order": order, "attention": attention, "masked": k, "of": of, "share": k / of, "metric": BLEU, "score": value,
         "score_change_low": value - bleu[0] - margin * (k > 0),
         "score_change_high": value - bleu[0] + margin * (k > 0),
         "score_kept_low": value / (bleu[0] or nan) - margin * (k > 0) / 25,
         "score_kept_high": value / (bleu[0] or nan) + margin * (k > 0) / 25,
         "score_behind": gaps[k], "score_behind_low": gaps[k] - 2, "score_behind_high": gaps[k] + 1, **facts}
        for k, value in enumerate(bleu)
    ]  # fmt: skip


def checkpoint(update: int, *bleu: float, epoch: float, finished: int = 0) -> list[dict[str, Any]]:
    return walk(*bleu, update=update, epoch=epoch, finished=finished)


def timed(
    run: str,
    heads: int,
    ratios: dict[int, tuple[float, float, float]],
    device: str = "CPU, 1 threads",
    repeats: int = 4,
) -> list[dict[str, Any]]:
    """Rows of one model: median, lowest and highest ratio to the unpruned model, by batch size."""
    facts = {"run": run, "repeats": repeats, "heads": heads, "of": 36, "device": device}
    return [
        {**facts, "batch_sentences": size, "ratio": ratio, "ratio_low": low, "ratio_high": high}
        for size, (ratio, low, high) in ratios.items()
    ]


def test_every_claim_has_its_function_and_the_paper_itself_meets_it() -> None:
    assert list(REFERENCE.index) == list(MICHEL_CLAIMS)
    for row in REFERENCE.dropna(subset="paper").to_dict("records"):
        assert holds(Finding(row["paper"]), row["condition"], row["limit"]) == "yes", row["measure"]
    assert all(source.startswith("Michel et al., ") for source in REFERENCE["source"])
    assert set(REFERENCE["tag"]) == {"[second-hand]", "[D]"}


def test_the_papers_numbers_are_those_of_its_tables() -> None:
    paper = REFERENCE["paper"]
    heads, table5 = load_reference("michel_table1_heads.csv"), load_reference("michel_tables2_5_layers.csv")
    significant = heads[heads["significant"] == 1]
    losses = (significant["score_change"] < 0).sum()
    assert (losses, len(heads)) == (4, 96) and paper["heads_that_matter"] == pytest.approx(losses / 96, abs=5e-5)
    assert paper["gains_among_them"] == (significant["score_change"] > 0).mean()
    for claim, suffix in (("layers_with_one_head", ""), ("layers_with_one_head_oracle", "_oracle")):
        lost = (table5[f"significant{suffix}"] == 1) & (table5[f"score_change{suffix}"] < 0)
        assert paper[claim] == pytest.approx(1 - lost.mean(), abs=5e-5)
    speed = load_reference("michel_table4_speed.csv").set_index("batch_sentences")["gain_percent"].dropna()
    assert paper["faster_in_larger_batches"] == pytest.approx((speed[64] - speed[1]) / 100)
    checkpoints = load_reference("michel_figure5_moments.csv")
    late = checkpoints[checkpoints["epoch"] >= 10]
    assert paper["kept_late"] == paper["kept_at_the_end"] == late["kept_percent_low"].min() / 100
    # BLEU falls in proportion to the heads masked in epochs 1 and 2: 60 % of it is kept with 40 % masked.
    assert paper["kept_more_and_more"] == pytest.approx(0.85 - (1 - 0.4))
    # About 30 of 36.05 BLEU with 20 % of the heads.
    assert paper["encoder_keeps"] == paper["decoder_keeps"] == pytest.approx(30 / 36.05, abs=5e-5)


@pytest.mark.parametrize(("count", "of"), [(0, 12), (1, 4), (8, 96), (9, 9), (3, 7), (4187, 4927)])
def test_the_interval_of_a_share_leaves_a_fortieth_outside_each_end(count: int, of: int) -> None:
    """Checked with decimals, which do not overflow for SICK's 4,927 test pairs, 85 % of them right."""

    def exactly(first: int, last: int, p: float) -> float:
        hit, miss = Decimal(p), 1 - Decimal(p)
        return float(sum(comb(of, k) * hit**k * miss ** (of - k) for k in range(first, last + 1)))

    found = share(count, of)
    assert found.ours == count / of
    assert found.low == 0 if not count else exactly(count, of, found.low) == pytest.approx(0.025)
    assert found.high == 1 if count == of else exactly(0, count, found.high) == pytest.approx(0.025)


def test_only_encoder_heads_that_lower_bleu_below_the_papers_level_cannot_be_spared() -> None:
    heads = masked((0.3, SURE), (-0.3, SURE), (-0.4, SURE), (-9.0, 0.012), *[(0.1, UNSURE)] * 6)
    heads += masked(*[(-5.0, SURE)] * 10, attention="dec_enc")
    found = finding("heads_that_matter", ablation=heads)
    assert (found.ours, found.low, found.high) == (0.2, share(2, 10).low, share(3, 10).high), "the third may matter"
    assert verdict("heads_that_matter", ablation=masked(*[(-0.1, SURE)] * 3, *[(0.1, UNSURE)] * 27)) == "yes"
    assert verdict("heads_that_matter", ablation=masked(*[(-0.1, SURE)] * 27, *[(0.1, UNSURE)] * 3)) == "no"
    assert verdict("heads_that_matter", ablation=masked(*[(0.5, SURE)] * 27, *[(0.1, UNSURE)] * 3)) == "yes", "gains"
    assert verdict("heads_that_matter", ablation=masked((-0.1, SURE), *[(0.1, UNSURE)] * 3)) == "unclear"
    for change, said in ((-0.24, "yes"), (-0.26, "unclear"), (0.24, "yes"), (0.26, "yes")):
        assert verdict("heads_that_matter", ablation=masked(*[(change, UNSURE)] * 30)) == said, "too few sentences"


def test_gains_are_counted_among_the_heads_that_matter_and_held_against_false_alarms() -> None:
    gains, losses, rest = (0.4, SURE), (-0.4, SURE), (0.4, UNSURE)
    found = finding("gains_among_them", ablation=masked(gains, losses, losses, losses, *[rest] * 8))
    assert (found.ours, found.chance) == (0.25, pytest.approx(1 - 0.995**12))
    assert verdict("gains_among_them", ablation=masked(*[gains] * 9, losses, *[rest] * 86)) == "yes"
    assert verdict("gains_among_them", ablation=masked(gains, *[losses] * 9, *[rest] * 86)) == "no"
    assert verdict("gains_among_them", ablation=masked(*[gains] * 4, *[losses] * 4, *[rest] * 88)) == "unclear"
    assert verdict("gains_among_them", ablation=masked(rest, rest)) == "", "none of none"
    alarms = finding("gains_among_them", ablation=masked(gains, *[rest] * 95))
    assert alarms.chance == pytest.approx(1 - 0.995**96)


def test_a_layer_that_gains_with_one_head_has_lost_nothing() -> None:
    lost, gained, unsure = (-2.0, SURE), (2.0, SURE), (-2.0, UNSURE)
    found = finding("layers_with_one_head", layers_to_one=layers(lost, gained, unsure, lost, lost))
    assert (found.ours, found.low, found.high) == pytest.approx((2 / 5, 1 / 5, 2 / 5)), "there are no other layers"
    assert finding("layers_with_one_head", layers_to_one=layers(*[gained] * 8)) == Finding(1, low=1, high=1), "8 of 8"
    assert verdict("layers_with_one_head", layers_to_one=layers(gained, gained, lost)) == "yes"
    flattered = layers(lost, lost, lost, oracle=(-1.0, UNSURE))
    assert finding("layers_with_one_head_oracle", layers_to_one=flattered).ours == 1
    assert finding("layers_with_one_head", layers_to_one=flattered).ours == 0
    assert verdict("layers_with_one_head", layers_to_one=layers(*[(-0.24, UNSURE), (9.0, UNSURE)] * 5)) == "yes"
    assert verdict("layers_with_one_head", layers_to_one=layers(*[unsure] * 9)) == "unclear", "too few sentences"
    assert verdict("layers_with_one_head", layers_to_one=layers(*[(-0.1, SURE)] * 9)) == "no"
    assert verdict("layers_with_one_head", layers_to_one=layers(*[lost] * 9)) == "no"


def test_heads_are_free_up_to_where_the_line_between_two_steps_loses_a_quarter_of_a_point() -> None:
    falling = walk(30.0, 30.1, 29.9, 28.9, 30.0, 0.0, margin=0.2)
    found = finding("free_share", masking_curve=falling)
    # From -0.1 to -1.1, and 0.2 to both sides: from -0.1 to -0.3, and from 0.1 to -0.9.
    assert (found.ours, found.low, found.high) == pytest.approx((0.4 + 0.2 * 0.15, 0.2 + 0.2 * 0.75, 0.4 + 0.2 * 0.35))
    assert verdict("free_share", masking_curve=walk(30.0, 30.0, 29.9, 20.0, 10.0, 0.0)) == "yes"
    assert verdict("free_share", masking_curve=walk(30.0, 29.0, 20.0, 10.0, 5.0, 0.0)) == "no"
    assert verdict("free_share", masking_curve=walk(30.0, 29.8, 29.6, 20.0, 5.0, 0.0, margin=0.2)) == "unclear"
    assert finding("free_share", masking_curve=walk(30.0, 30.0, 30.0)).ours == 1


def test_other_orders_and_parts_of_the_heads_are_not_the_curve_by_importance() -> None:
    others = walk(30.0, 30.0, 30.0, order="random-1") + walk(30.0, 30.0, 30.0, attention="enc_self")
    assert isnan(finding("free_share", masking_curve=others).ours)
    assert finding("free_share", masking_curve=others + walk(30.0, 20.0, 0.0)).ours == pytest.approx(0.5 * 0.25 / 10)


def test_importance_is_set_against_heads_masked_on_dev_over_all_steps_but_the_ends() -> None:
    dev = walk(30.0, 20.0, 10.0, 0.0, order="ablation", behind=(100.0, 3.0, 6.0, 100.0))
    oracle = walk(30.0, 20.0, 10.0, 0.0, order="ablation_oracle", behind=(0.0, -9.0, -9.0, 0.0))
    found = finding("importance_over_ablation", masking_curve=walk(30.0, 23.0, 16.0, 0.0) + oracle + dev)
    assert (found.ours, found.low, found.high) == (4.5, 2.5, 5.5)
    for gap, answer in ((4.0, "yes"), (1.0, "unclear"), (-4.0, "no")):
        behind = walk(30.0, 20.0, 10.0, 0.0, order="ablation", behind=(0.0, gap, gap, 0.0))
        assert verdict("importance_over_ablation", masking_curve=behind) == answer


BY_KIND = ("source_collapses", "encoder_keeps", "decoder_keeps", "source_needed_most")


def kinds(enc_self: Sequence[float], dec_self: Sequence[float], dec_enc: Sequence[float]) -> list[dict[str, Any]]:
    """BLEU by kind of attention with 0, 60, 80 and 100 % of its heads masked; 20 and 40 % cost nothing. Each kind's
    second walk is in another order."""
    rows = []
    for attention, values in zip(ATTENTIONS, (enc_self, dec_self, dec_enc), strict=True):
        full, *rest = values
        rows += walk(full, full, full, *rest, attention=attention, margin=1.0)
        rows += walk(full, 0.0, 0.0, 0.0, 0.0, 0.0, attention=attention, order="token")
    return rows


def test_what_masking_a_kind_of_attention_keeps_is_read_at_the_share_of_the_claim() -> None:
    curve = kinds((40.0, 40.0, 36.0, 1.0), (40.0, 40.0, 30.0, 1.0), (40.0, 3.0, 1.0, 0.0))
    source, encoder, decoder, most = (finding(claim, masking_curve=curve) for claim in BY_KIND)
    assert (source.ours, source.low, source.high) == pytest.approx((0.05, 0.01, 0.09)), "70 % lies between 60 and 80"
    assert (encoder.ours, decoder.ours) == pytest.approx((0.9, 0.75))
    # Against the decoder, which keeps less than the encoder.
    assert (most.ours, most.low, most.high) == pytest.approx((29 / 40, 29 / 40 - 0.08, 29 / 40 + 0.08))
    assert [verdict(claim, masking_curve=curve) for claim in BY_KIND] == ["yes", "yes", "no", "yes"]
    other = kinds((40.0, 40.0, 1.0, 1.0), (40.0, 40.0, 39.0, 1.0), (40.0, 39.0, 38.0, 0.0))
    assert [verdict(claim, masking_curve=other) for claim in BY_KIND] == ["no", "no", "yes", "no"]


def test_a_model_without_bleu_keeps_no_share_of_it() -> None:
    assert isnan(finding("source_collapses", masking_curve=kinds((0.0,) * 4, (0.0,) * 4, (0.0,) * 4)).ours)


def test_the_correlation_across_domains_joins_heads_by_their_place_and_has_fishers_interval() -> None:
    draw = np.random.default_rng(5)
    changes = draw.normal(size=40)
    rows = masked(*((float(c), 1.0) for c in changes))
    elsewhere = masked(*((float(c), 1.0) for c in changes + draw.normal(size=40)))
    found = finding("correlation_across_domains", ablation=rows, ablation_out_of_domain=elsewhere[::-1])
    r = np.corrcoef(changes, [row["score_change"] for row in elsewhere])[0, 1]
    assert found.ours == pytest.approx(r)
    ends = np.arctanh(r) + np.array([-1, 1]) * 1.96 / 37**0.5
    assert np.arctanh([found.low, found.high]) == pytest.approx(ends, rel=1e-4)
    assert verdict("correlation_across_domains", ablation=rows, ablation_out_of_domain=rows) == "yes"
    against = masked(*((-float(c), 1.0) for c in changes))
    assert verdict("correlation_across_domains", ablation=rows, ablation_out_of_domain=against) == "no"
    assert verdict("correlation_across_domains", ablation=rows) == "", "no other domain"


EARLY = checkpoint(10, 20.0, 15.0, 10.0, 5.0, 4.0, 0.0, epoch=1.5)
UNTRAINED = checkpoint(1, 0.5, 0.4, 0.4, 0.4, 0.4, 0.4, epoch=0.1)


def test_what_is_kept_late_is_the_least_of_the_moments_from_epoch_ten_on() -> None:
    tenth = checkpoint(70, 30.0, 30.0, 27.0, 20.0, 9.0, 0.0, epoch=10.0)
    later = checkpoint(90, 40.0, 40.0, 32.0, 20.0, 9.0, 0.0, epoch=12.9)
    last = checkpoint(140, 40.0, 40.0, 38.0, 20.0, 9.0, 0.0, epoch=20.0, finished=1)
    rows = UNTRAINED + EARLY + tenth + later + last
    found = finding("kept_late", checkpoints=rows)
    assert (found.ours, found.low, found.high) == pytest.approx((0.8, 0.796, 0.804))
    assert finding("kept_at_the_end", checkpoints=rows).ours == pytest.approx(38 / 40)
    grown = finding("kept_more_and_more", checkpoints=rows)
    assert grown.ours == pytest.approx(38 / 40 - 10 / 20), "the first checkpoint that translates anything"
    assert grown.low == pytest.approx(grown.ours - 0.004 - 0.004)
    asked = ("kept_late", "kept_at_the_end", "kept_more_and_more")
    assert [verdict(claim, checkpoints=rows) for claim in asked] == ["no", "yes", "yes"]
    assert verdict("kept_late", checkpoints=tenth + last) == "yes"


def test_a_training_of_few_epochs_has_no_late_moments() -> None:
    rows = EARLY + checkpoint(30, 40.0, 40.0, 16.0, 9.0, 4.0, 0.0, epoch=9.9, finished=1)
    asked = ("kept_late", "kept_at_the_end", "kept_more_and_more")
    assert [verdict(claim, checkpoints=rows) for claim in asked] == ["", "no", "no"]
    assert verdict("kept_more_and_more", checkpoints=rows[6:]) == "", "one checkpoint is no development"


def test_the_gain_in_speed_is_that_of_the_model_nearest_to_half_of_the_heads() -> None:
    slow = {1: (1.0, 0.99, 1.02), 16: (1.1, 1.0, 1.2), 64: (1.3, 1.25, 1.4)}
    fast = {1: (1.5, 1.5, 1.5), 64: (1.2, 1.2, 1.2)}
    rows = timed("baseline/seed-1", 36, {1: (1.0, 1.0, 1.0), 64: (1.0, 1.0, 1.0)})
    rows += timed("pruned/all/lam-0.2/seed-1", 9, fast) + timed("pruned/all/lam-0.1/seed-1", 20, slow)[::-1]
    found = finding("faster_in_larger_batches", speed=rows)
    assert (found.ours, found.low, found.high) == pytest.approx((0.3, 1.25 - 1.02, 1.4 - 0.99))
    assert verdict("faster_in_larger_batches", speed=rows) == "yes"
    assert found.p_value == pytest.approx(2 / 70)
    few = timed("pruned/all/lam-0.2/seed-1", 18, slow, repeats=3)
    assert finding("faster_in_larger_batches", speed=few).p_value == pytest.approx(0.1)
    assert verdict("faster_in_larger_batches", speed=few) == "unclear"
    assert verdict("faster_in_larger_batches", speed=rows[:2]) == "", "no pruned model was timed"
    on_gpu = timed("pruned/all/lam-0.2/seed-1", 18, fast, device="NVIDIA H200")
    assert verdict("faster_in_larger_batches", speed=rows + on_gpu) == "no", "a GPU's timings go before a CPU's"
    assert verdict("faster_in_larger_batches", speed=timed("pruned/all/lam-0.1/seed-1", 20, {1: slow[1]})) == ""


def test_what_has_no_file_is_not_measured() -> None:
    assert {claim: verdict(claim) for claim in MICHEL_CLAIMS} == dict.fromkeys(MICHEL_CLAIMS, "")


def test_the_table_of_claims_asks_each_experiment_and_seed_by_its_own_files(tmp_path: Path) -> None:
    first = write_results(tmp_path / "first", World(layers=2, heads=3, lams=("0.1",), seeds=(1, 2)))
    second = write_results(tmp_path / "second", World(layers=2, heads=3, lams=("0.1",)))
    for path in second:
        for name in TABLES["claims"].need.optional:
            (path / name).unlink(missing_ok=True)
    (lasting,) = (path for path in first if path.parts[-2:] == ("baseline", "seed-2"))
    rows = read_tsv(lasting / "layers_to_one.tsv")
    write_tsv(lasting / "layers_to_one.tsv", [row | {"p_value": "0.001"} for row in rows], list(rows[0]))
    table = [row for row in table_of("claims", first + second) if row["source"].startswith("Michel et al., ")]
    assert len(table) == 4 * len(MICHEL_CLAIMS)
    cut = {(row["experiment"], row["seed"]): row["ours"] for row in table if "head chosen on dev" in row["measure"]}
    assert cut == {("first", "1"): "1", ("first", "2"): "0", ("first", "mean"): "0.5", ("second", "1"): ""}
