"""The page in a real browser without a network: what it shows equals the tables, and an address restores a view."""

import math
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from explored_page import (
    NARROW,
    ONE,
    ROOT,
    SEVERAL,
    WIDE,
    Explored,
    Opened,
    data_of,
    gates_of,
    head_of,
    lost,
    needs_browser,
    shades,
    told,
    weights_shown,
)
from fake_results import World, write_results
from heads.__main__ import main
from heads.analysis.attention_maps import encoder_on_words, unpacked
from heads.base.files import read_json, read_jsonl, read_tsv, read_yaml
from heads.base.names import ATTENTIONS, SCOPES
from heads.config.settings import resolve, stage_settings
from heads.config.trainings import HardConcrete
from heads.explore.needs import EXPLORED
from heads.explore.page import page as page_of
from heads.pruning.gates import is_open, probability_one, probability_open

pytestmark = [pytest.mark.slow, needs_browser]
BYTE = 0.5 / 255 + 5e-5
"""Largest error of a shown weight: half a step of a byte, plus rounding to four decimals."""


def run_folder(made: Explored, run: str) -> Any:
    return made.results / SEVERAL / run


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_opens_offline_and_fits_the_window(opened: Opened, size: tuple[int, int], scheme: str) -> None:
    page = opened("", size, scheme)
    assert page.locator("h1").is_visible() and page.locator("#grids button").count() == 18
    assert page.evaluate("document.documentElement.scrollWidth") == size[0]
    ink, ground = (page.evaluate(f"getComputedStyle(document.body).{name}") for name in ("color", "backgroundColor"))
    brightness = [sum(int(part) for part in name[4:-1].split(",")) for name in (ink, ground)]
    assert (brightness[0] > brightness[1]) == (scheme == "dark")


@pytest.mark.parametrize("experiment", [SEVERAL, ONE])
def test_squares_have_the_numbers_of_the_table_for_every_measure(
    made: Explored, opened: Opened, experiment: str
) -> None:
    page = opened(f"#experiment={experiment}")
    rows = [row for row in made.tables["measures"] if (row["experiment"], row["seed"]) == (experiment, "1")]
    offered = page.locator("#measure option").evaluate_all("all => all.map(one => one.value)")
    keys = [key for key in offered if key not in ("function", "aer")]
    assert len(keys) >= 9
    for key in keys:
        page.select_option("#measure", key)
        expected = {head_of(row): float(row[key] or "nan") for row in rows}
        shown = {head: float(value or "nan") for head, value in told(page, "#grids", "data-value").items()}
        assert shown == pytest.approx(expected, nan_ok=True)


def test_brightness_rises_with_the_measure(made: Explored, opened: Opened) -> None:
    page = opened("#measure=confidence")
    values = {head: float(value) for head, value in told(page, "#grids", "data-value").items()}
    light = shades(page, "#grids")
    order = sorted(values, key=values.__getitem__)
    brightness = [light[head] for head in order]
    assert all(after >= before - 2 for before, after in pairwise(brightness))
    assert brightness[-1] > brightness[0] + 150


def test_the_slider_closes_the_heads_that_the_run_closed_by_then(made: Explored, opened: Opened) -> None:
    run = "gates/all/lam-0.1/seed-1"
    page = opened(f"#closing={run}")
    lines = read_jsonl(run_folder(made, run) / "gates.jsonl")
    closed = []
    shape = stage_settings(resolve(read_yaml(ROOT / "config.yaml"))["demo"], "gates")["gates"]["hard_concrete"]

    def opens(share: float) -> bool:
        """Whether a gate is open, decided as when heads are cut out: by log alpha, computed from P(gate > 0)."""
        log_alpha = math.log(share / (1 - share)) + shape["temperature"] * math.log(-shape["low"] / shape["high"])
        return bool(is_open(torch.tensor(log_alpha), HardConcrete(**shape)))

    for record, line in enumerate(lines):
        page.locator("#update").fill(str(record))
        expected = {
            f"{kind}.{layer}.{head}": share
            for kind in SCOPES["all"]
            for layer, row in enumerate(line["p_open"][kind])
            for head, share in enumerate(row)
        }
        shown = {head: float(value) for head, value in told(page, "#closing-grids", "data-value").items()}
        assert shown == pytest.approx(expected, abs=BYTE)
        hatched = lost(page, "#closing-grids")
        assert {*hatched} == {head for head, share in expected.items() if not opens(share)}
        assert f"update {line['update']}:" in page.locator("#update-text").inner_text()
        closed.append(len(hatched))
    assert len(lines) > 2 and closed[-1] > closed[0]


@pytest.mark.parametrize("run", ["baseline/seed-1", "pruned/all/lam-0.01/seed-1"])
def test_a_click_shows_the_map_of_that_head_in_that_model(made: Explored, opened: Opened, run: str) -> None:
    first, second = read_json(run_folder(made, run) / "maps.json")
    live = read_json(run_folder(made, run) / "model.json")["shape"]["live_heads"]
    page = opened("#sentence=1")
    page.select_option("#model", run)
    for kind in ATTENTIONS:
        places = [(layer, head) for layer, heads in enumerate(live[kind]) for head in heads]
        for unit in ("words", "subwords"):
            page.select_option("#unit", unit)
            layer, head = places[-1]
            name = f"{kind}.{layer}.{head}"
            page.click(f'#grids [data-head="{name}"]')
            shown = weights_shown(page, name)
            if unit == "words" and kind == "enc_self":
                words = len(second["words"])
                inner = shown.reshape(words + 1, words + 1)[:words, :words]
                assert inner == pytest.approx(encoder_on_words(second)[len(places) - 1], abs=BYTE)
            if unit == "subwords":
                raw = unpacked(second["weights"][kind]).reshape(len(places), -1)
                assert shown == pytest.approx(raw[-1], abs=1e-4)
    assert first["weights"] != second["weights"]
    assert run == "baseline/seed-1" or any(len(layer) < 3 for kind in ATTENTIONS for layer in live[kind])


def test_written_subwords_are_summed_and_averaged_by_words(made: Explored, opened: Opened) -> None:
    """The first two of four written subwords form one word."""
    sentence = read_json(run_folder(made, "baseline/seed-1") / "maps.json")[0]
    page = opened("#head=dec_self.1.2&sentence=0")
    raw = unpacked(sentence["weights"]["dec_self"]).reshape(6, 5, 5)[5]
    rows = np.array([raw[:2].mean(0), raw[2], raw[3], raw[4]])
    expected = np.array([rows[:, 0], rows[:, 1] + rows[:, 2], rows[:, 3], rows[:, 4]]).T
    assert weights_shown(page, "dec_self.1.2").reshape(4, 4) == pytest.approx(expected, abs=1e-4)
    labels = page.locator('[data-panel="dec_self.1.2"] .token').all_text_contents()
    assert labels[:3] == ["крестьяне", "продали", "<b>"]


def test_a_head_that_the_model_has_lost_is_said_to_be_lost(made: Explored, opened: Opened) -> None:
    run = "pruned/all/lam-0.1/seed-1"
    live = read_json(run_folder(made, run) / "model.json")["shape"]["live_heads"]
    gone = next(
        f"{kind}.{layer}.{head}" for kind in ATTENTIONS for layer in range(2) for head in range(3)
        if head not in live[kind][layer]
    )  # fmt: skip
    page = opened(f"#head={gone}&model={run}")
    assert "has lost this head" in page.locator("#panels").inner_text()
    assert "has lost this head" in page.locator("#card").inner_text()
    hatched = lost(page, "#grids")
    assert gone in hatched and len(hatched) == 18 - sum(len(layer) for kind in live for layer in live[kind])


def test_text_shows_as_itself(opened: Opened) -> None:
    page = opened("#sentence=1&model=pruned/all/lam-0.1/seed-1")
    assert "<script>alert(1)</script>" in page.locator("#strip").text_content()  # type: ignore[operator]
    assert "<script>alert(1)</script>" in page.locator("#translations").inner_text()
    assert "крестьяне продали <b>" in page.locator("#translations").inner_text()
    assert page.locator("#strip script, #panels b, #translations b").count() == 0


def test_arrow_keys_walk_through_heads_and_over_the_end_into_the_next_kind(opened: Opened) -> None:
    page = opened("#head=enc_self.0.2")
    page.focus('#grids [data-head="enc_self.0.2"]')
    walked = []
    for key in ("ArrowRight", "ArrowDown", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        walked.append(page.evaluate("document.activeElement.dataset.head"))
        assert page.locator('#grids [aria-pressed="true"]').get_attribute("data-head") == walked[-1]
        assert f"head={walked[-1]}" in page.url
    assert walked == ["dec_self.0.0", "dec_self.1.0", "dec_self.0.0", "enc_self.0.2"]
    assert page.locator("#grids [tabindex='0']").count() == 1
    page.focus('[data-panel="enc_self.0.2"]')
    page.keyboard.press("ArrowLeft")
    assert page.locator('[data-panel="enc_self.0.1"]').count() == 1


def test_a_pinned_word_tells_what_it_looks_at_most(made: Explored, opened: Opened) -> None:
    page = opened("#head=enc_self.1.0&sentence=0")
    page.locator('[data-panel="enc_self.1.0"] .token').nth(3).click()
    sentence = read_json(run_folder(made, "baseline/seed-1") / "maps.json")[0]
    row = unpacked(sentence["weights"]["enc_self"]).reshape(6, 10, 10)[3][3]
    best = int(row.argmax())
    word = [*sentence["words"], "⟨end⟩"][best]
    assert page.locator("#readout").inner_text().startswith(f"sold → {word} {round(100 * row[best])} %")
    assert "pin=3" in page.url


def test_the_address_restores_all_that_was_chosen(opened: Opened) -> None:
    page = opened()
    page.click('#grids [data-head="dec_enc.1.0"]')
    page.click("#compare")
    page.click('#grids [data-head="enc_self.0.1"]')
    for place, value in (("measure", "score_lost"), ("sentence", "1"), ("unit", "subwords"), ("drawing", "lines")):
        page.select_option(f"#{place}", value)
    page.locator('[data-panel="enc_self.0.1"] .token').nth(2).click()
    page.select_option("#closing-run", "gates/enc_self/lam-0.1/seed-1")
    page.locator("#update").fill("1")
    page.locator("[data-shape=logalpha]").fill("1.5")
    page.select_option("#verdict", "unclear")
    again = opened("#" + page.url.partition("#")[2])
    state = "() => [...document.querySelectorAll('select, input')].map(one => one.value)"
    assert again.evaluate(state) == page.evaluate(state)
    for part in ("summary", "grids", "card", "panels", "closing-grids", "curve", "concrete", "claims-table"):
        html = [one.locator(f"#{part}").inner_html() for one in (page, again)]
        assert html[0] == html[1], part
    assert again.locator("[data-panel]").count() == 2
    assert again.locator('[data-panel="dec_enc.1.0"] line').count() > 0


def test_an_address_of_what_is_not_there_shows_the_beginning(opened: Opened) -> None:
    page, plain = opened("#head=enc_self.9.9&model=none&sentence=77&measure=x&closing=y&experiment=z"), opened()
    for part in ("grids", "card", "panels"):
        assert page.locator(f"#{part}").inner_html() == plain.locator(f"#{part}").inner_html()


def test_a_point_of_the_curve_shows_that_model(made: Explored, opened: Opened) -> None:
    page = opened("#closing=gates/all/lam-0.01/seed-1")
    run = "pruned/all/lam-0.1/seed-1"
    page.locator(f'#curve [data-run="{run}"]').dispatch_event("click")
    assert page.locator("#model").input_value() == run
    assert page.locator("#closing-run").input_value() == "gates/all/lam-0.1/seed-1"
    bleu = read_json(run_folder(made, run) / "bleu.json")["bleu"]
    assert f"BLEU {bleu:.2f}" in page.locator("#marked-model").inner_text()
    assert page.locator("#curve .chosen").get_attribute("data-run") == run
    scored = page.locator('#curve [data-series="random, masked"]').first
    scored.dispatch_event("click")
    assert "only its score" in page.locator("#translations").inner_text()


@pytest.mark.parametrize("log_alpha", [-2.5, 0.0, 1.25])
def test_the_distribution_is_the_one_that_gates_are_trained_with(opened: Opened, log_alpha: float) -> None:
    shape = HardConcrete(temperature=0.7, low=-0.3, high=1.2, log_alpha_init=0.5)
    page = opened(f"#logalpha={log_alpha}&temperature=0.7&low=-0.3&high=1.2")
    value = torch.tensor(log_alpha, dtype=torch.float64)
    is_open, one = float(probability_open(value, shape)), float(probability_one(value, shape))
    expected = {"zero": 1 - is_open, "between": is_open - one, "one": one, "open": is_open}
    shown = {name: float(page.locator(f"[data-mass={name}]").inner_text()) for name in expected}
    assert shown == pytest.approx(expected, abs=6e-5)
    # The mass between 0 and 1 is the integral of the density.
    told_ = "range(4000).reduce((sum, at) => sum + density((at + 0.5) / 4000, shapeShown()) / 4000, 0)"
    assert page.evaluate(told_) == pytest.approx(is_open - one, abs=1e-3)
    # A gate drawn with noise 0.5 is the median.
    middle = 1 / (1 + math.exp(-log_alpha / 0.7)) * 1.5 - 0.3
    assert page.evaluate("gateFor(0.5, shapeShown())") == pytest.approx(min(max(middle, 0), 1))


def test_claims_stand_with_their_numbers_and_can_be_shown_by_verdict(made: Explored, opened: Opened) -> None:
    page = opened()
    rows = page.locator("#claims-table tr.claim")
    board = [row for row in made.tables["scoreboard"] if row["metric"] == "bleu"]
    assert rows.count() == len(board)
    verdicts = [row[f"verdict_{SEVERAL}"] or "not measured" for row in board]
    shown = [text.partition("\n") for text in page.locator("#claims-table .verdict").all_inner_texts()]
    assert [verdict.split(" ", 1)[1] for verdict, _, _ in shown] == verdicts
    others = [row[f"other_readings_{SEVERAL}"] for row in board]
    assert [note for _, _, note in shown] == [other and f"other readings: {other}" for other in others]
    assert any(others)
    lead = page.inner_text("#claims-lead")
    papers = "39 of Voita et al. 2019, 15 of Michel et al. 2019, 3 of Garg et al. 2019"
    assert lead.startswith(f"Of 57 claims, {papers}, tried on") and "Besides, 2 controls of ours." in lead
    told = [v for v, row in zip(verdicts, board, strict=True) if row["study"] != "ours"]
    assert all(f" {told.count(verdict)} {verdict}" in lead for verdict in told)
    page.select_option("#verdict", "no")
    assert rows.count() == verdicts.count("no") > 0
    assert page.locator('#claims-table a[href="figures/dependency_scores.png"]').count() == sum(
        "Table 1" in row["source"] and row["source"].startswith("Voita") and verdict == "no"
        for row, verdict in zip(board, verdicts, strict=True)
    )


def test_a_head_that_aligns_words_is_shown_as_such_with_its_error_rate(made: Explored, opened: Opened) -> None:
    page = opened("#measure=function&head=dec_enc.1.2")
    own = next(
        row for row in read_tsv(run_folder(made, "baseline/seed-1") / "alignment_heads.tsv")
        if (row["step"], row["layer"], row["head"]) == ("output", "1", "2")
    )  # fmt: skip
    said = page.locator("#alignment-text").inner_text()
    assert said.startswith(f"It aligns words: alignment error rate {round(100 * float(own['aer']))} % on 100 pairs")
    assert said.endswith("the best fixed offset, −1, errs in 55 %.")
    assert "aligns words" in page.locator("#legend").inner_text()
    page = opened("#head=dec_enc.0.2")
    assert "It does not align words" in page.locator("#card").inner_text()
    assert opened("#head=enc_self.0.2").locator("#alignment-text").count() == 0


def test_an_encoder_that_is_deeper_than_the_decoder_has_squares_for_its_own_layers_alone(
    made: Explored, opened: Opened
) -> None:
    content = {"experiments": data_of(made.page)}
    for one in content["experiments"]:
        kept = [number for number, row in enumerate(one["table"]) if row["attention"] == "enc_self" or not row["layer"]]
        one["table"] = [one["table"][number] for number in kept]
        for model in one["models"]:
            model["live"] = "".join(model["live"][number] for number in kept)
        one["closing"] = []
        one["concrete"]["trained"] = []
    made.page.with_name("explore.html.deep.html").write_text(page_of(content), "utf-8")
    page = opened(".deep.html#head=dec_self.0.2")
    assert len(told(page, "#grids", "data-value")) == 6 + 3 + 3
    page.focus('#grids [data-head="dec_self.0.2"]')
    walked = []
    for key in ("ArrowDown", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowRight", "ArrowDown"):
        page.keyboard.press(key)
        walked.append(page.evaluate("document.activeElement.dataset.head"))
    assert walked == ["dec_self.0.2", *(f"dec_enc.0.{head}" for head in range(3)), "enc_self.0.0", "enc_self.1.0"]


def test_of_gates_driven_to_a_number_of_heads_so_many_stay(tmp_path: Path, made: Explored, opened: Opened) -> None:
    world = World(layers=2, heads=3, lams=("0.01", "0.1"), scratch=False, driven=True)
    runs = write_results(tmp_path / "results/driven", world)
    measures = tmp_path / "table_measures.tsv"
    assert main(["table", "--name", "measures", "--runs", *map(str, runs), "--out", str(measures)]) == 0
    shown = [str(run) for run in runs if EXPLORED.inputs([f"x/{run.relative_to(tmp_path / 'results')}"])]
    words = ["--runs", *shown, "--tables", str(measures), "--gates", gates_of("driven")]
    assert main(["explore", *words, "--out", str(made.page.with_name("explore.html.driven.html"))]) == 0
    driven = [run for run in shown if "/gates/" in run and "keep-" in run]
    assert len(driven) == 4
    for run in driven:
        name, kept = run[run.index("gates/") :], int(run.partition("keep-")[2].partition("/")[0])
        # A distribution under which no trained gate is more likely to be 1 than 0.
        page = opened(f".driven.html#closing={name}&trained={name}&temperature=2&low=-1&high=1.01")
        lines = read_jsonl(Path(run) / "gates.jsonl")
        for record, line in ((0, lines[0]), (len(lines) - 1, lines[-1])):
            page.locator("#update").fill(str(record))
            squares = told(page, "#closing-grids", "data-value")
            hatched = lost(page, "#closing-grids")
            assert len(squares) - len(hatched) == kept
            stay = [float(value) for head, value in squares.items() if head not in hatched]
            assert min(stay) >= max(float(squares[head]) for head in hatched), line["update"]
        assert f"not among the {kept} heads" in page.locator("#closing-legend").inner_text()
        drawing = str(page.locator("#concrete-drawing").text_content())
        assert f"{len(squares)} trained gates, {len(hatched)} closed" in drawing
        assert f"{kept} heads: those of the largest log α." in page.locator("#concrete-text").inner_text()
    rows = {head_of(row): row for row in read_tsv(measures)}
    colours = told(opened(".driven.html"), "#grids", "aria-label")
    least, most = min(fewest := [int(row["gate_fewest_heads_all"]) for row in rows.values()]), max(fewest)
    assert most == 18 > least, "a head that is always cut, one that is not"
    for head, row in rows.items():
        assert f"stays among so few, all heads pruned {row['gate_fewest_heads_all']}" in colours[head]
    page = opened(".driven.html")
    for number, said in ((least, f"Pruning keeps it even among the last {least}."), (most, "whatever number of heads")):
        head = next(head for head, row in rows.items() if row["gate_fewest_heads_all"] == str(number))
        page.click(f'#grids [data-head="{head}"]')
        assert said in page.locator("#need-text").inner_text()


def test_a_page_of_a_baseline_alone_opens_too(made: Explored, opened: Opened) -> None:
    runs = ["--runs", str(made.results / ONE / "baseline/seed-1"), "--gates", gates_of(ONE)]
    assert main(["explore", *runs, "--out", str(made.page.with_name("explore.html.bare.html"))]) == 0
    page = opened(".bare.html")
    assert page.locator("#grids button").count() == 18 and page.locator("[data-panel] rect.cell").count() == 100
    assert not page.locator("#claims").is_visible() and "No model was pruned" in page.locator("#curve").inner_text()
    page.locator("[data-shape=logalpha]").fill("2")
    assert page.locator("[data-shown=logalpha]").inner_text() == "2"


def test_every_square_and_control_has_a_name_for_those_who_listen(opened: Opened) -> None:
    page = opened()
    names = told(page, "#grids", "aria-label")
    assert names["dec_enc.1.2"].startswith("cross-attention, layer 2, head 3: ") and len({*names.values()}) == 18
    page.select_option("#measure", "gate_last_lambda_enc_self")
    lacking = told(page, "#grids", "aria-label")["dec_enc.0.0"]
    assert lacking.startswith("cross-attention, layer 1, head 1: penalty survived, encoder pruned –")
    nameless = page.locator("select:visible, input:visible, button:visible").evaluate_all(
        "all => all.filter(one => !(one.labels?.length || one.textContent.trim() || one.getAttribute('aria-label')))"
        ".map(one => one.id)"
    )
    assert nameless == []
