"""Parts of the page in a real browser: alignment heads, what a head costs, distinguishable marks, small windows."""

import base64
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from checkouts import ROOT
from explored_page import NARROW, ONE, SEVERAL, Explored, Opened, data_of, head_of, needs_browser, shades, told
from heads.base.files import read_tsv
from heads.explore.page import page

pytestmark = [pytest.mark.slow, needs_browser]


def aligned(made: Explored, experiment: str) -> dict[str, dict[str, str]]:
    """The rows of the baseline's cross-attention heads, by head, for the step that outputs a word."""
    rows = read_tsv(made.results / experiment / "baseline/seed-1/alignment_heads.tsv")
    return {head_of({"attention": "dec_enc", **row}): row for row in rows if row["step"] == "output"}


def cells(page: Page, place: str) -> list[str]:
    """The cells of the alignment table in a part of the page, even where it is folded."""
    return page.locator(f"{place} [data-table=alignment] td").all_text_contents()


def percent(cell: str) -> str:
    return f"{100 * float(cell):.1f} %"


@pytest.mark.parametrize("experiment", [SEVERAL, ONE])
def test_the_error_rate_is_a_colour_and_the_least_is_the_brightest(
    made: Explored, opened: Opened, experiment: str
) -> None:
    page = opened(f"#experiment={experiment}&measure=aer")
    assert page.locator("#measure").input_value() == "aer"
    expected = {head: float(row["aer"]) for head, row in aligned(made, experiment).items()}
    shown = {head: float(value) for head, value in told(page, "#grids", "data-value").items() if value}
    assert shown == pytest.approx(expected) and len(shown) == 6
    light = shades(page, "#grids [data-kind=dec_enc]")
    ordered = sorted(expected, key=lambda head: expected[head])
    assert light[ordered[0]] == max(light.values()) > light[ordered[-1]] + 65
    assert page.locator("#legend").inner_text().split()[0] == f"{expected[ordered[-1]]:.3f}"
    page.click(f'#grids [data-head="{ordered[1]}"]')
    assert page.locator("#card [data-measure=aer] td").all_text_contents() == [f"{expected[ordered[1]]:.3f}", "2 of 6"]


def test_a_head_that_aligns_has_that_role_and_its_error_rate_beside_the_best_offset(
    made: Explored, opened: Opened
) -> None:
    page = opened("#measure=function")
    rows = aligned(made, SEVERAL)
    functions = told(page, "#grids", "data-value")
    labels = dict(
        page.locator("#grids button").evaluate_all("all => all.map(one => [one.dataset.head, one.textContent])")
    )
    assert {head for head, name in functions.items() if name == "alignment"} == {"dec_enc.1.0", "dec_enc.1.2"}
    for head, row in rows.items():
        assert functions[head] == ("alignment" if row["aligns"] == "1" else "other")
        # The first head of the first layer looks at the source of the word written last.
        assert labels[head] == (
            "align" if row["aligns"] == "1" else {"dec_enc.0.0": "last"}.get(head, "now" if ".1." in head else "")
        )
        page.hover(f'#grids [data-head="{head}"]')
        numbers = [percent(row["aer"]), f"{percent(row['aer_low'])} to {percent(row['aer_high'])}"]
        numbers += [f"{percent(row['offset_aer'])} (−1)", percent(row["precision"]), percent(row["recall"])]
        assert cells(page, "#tip") == numbers
        assert ("alignment head" in page.locator("#tip").inner_text()) == (row["aligns"] == "1")
        page.click(f'#grids [data-head="{head}"]')
        assert cells(page, "#card") == numbers
    assert {functions[head] for head in functions if head.startswith("dec_self")} == {""}


def test_a_head_is_called_needed_only_where_its_loss_is_sure(made: Explored, opened: Opened) -> None:
    page = opened()
    rows = [row for row in made.tables["michel_table1"] if (row["experiment"], row["seed"]) == (SEVERAL, "1")]
    sure = [row for row in rows if float(row["p_value"]) < 0.01 and float(row["score_change"]) < 0]
    assert 0 < len(sure) < len(rows)
    assert f"{len(sure)} of them lower BLEU significantly" in page.locator("#summary").inner_text()
    seen = set()
    for row in rows:
        page.click(f'#grids [data-head="{head_of(row)}"]')
        said = page.locator("#need-text").inner_text()
        unsure = "no significant loss" if float(row["score_change"]) < 0 else "nothing is lost"
        verdict = "needs it" if row in sure else unsure
        chance = "(p < 0.001)" if float(row["p_value"]) < 0.001 else f"(p {float(row['p_value']):.3f})"
        assert verdict in said and chance in said
        assert chance in str(page.locator("#card [data-measure=score_lost] td").first.text_content())
        seen.add(verdict)
    assert len(seen) == 3


def test_halves_are_told_where_a_model_has_biases_of_distances_and_nowhere_else(opened: Opened) -> None:
    page = opened()
    page.click("#grids [data-head='enc_self.1.0']")
    assert not page.locator("#card th", has_text="by its bias alone").count()
    changed = "const [own] = rowOf('enc_self.1.0').roles; own.by_bias = 0.994; own.by_content = 0.126; renderCard();"
    page.evaluate(f"(() => {{ {changed} }})()")
    own = page.evaluate("rowOf('enc_self.1.0').roles[0].holds")
    assert ("by its bias alone 99 %, by its content alone 13 %" in page.locator("#role-text").inner_text()) == own
    table = page.locator("#card details table.numbers").last
    columns = [text.strip() for text in table.locator("thead th").all_text_contents()]
    assert columns[-2:] == ["by its bias alone", "by its content alone"]
    lines = table.locator("tbody tr").all()
    assert lines[0].locator("td").all_text_contents()[-2:] == ["99.4 %", "12.6 %"]


def test_a_role_is_told_in_plain_words(opened: Opened) -> None:
    page = opened()
    words = {"subj": "subject", "obj": "object", "adj": "adjective", "adv": "adverb"}
    known = "row.roles.filter((role) => role.holds && role.role === 'syntactic').map((role) => [idOf(row), role.label])"
    held = page.evaluate(f"experiment().table.flatMap((row) => {known})")
    assert held
    for head, label in held:
        ends = [words.get(end, end) for end in label.split("→")]
        page.click(f'#grids [data-head="{head}"]')
        said = page.locator("#role-text").inner_text()
        assert said.startswith("It has a role.")
        assert f"it looks from the {ends[0]} to the {ends[1]} ({label}): right in" in said.replace(
            "It looks", "it looks"
        )


def test_no_two_series_of_the_curve_are_told_apart_by_colour_alone(opened: Opened) -> None:
    page = opened()
    shapes = page.evaluate("Object.values(SERIES).map(([, shape]) => mark(shape, 0, 0, 5, 'red').outerHTML)")
    assert len({*shapes}) == len(shapes) == 9


def test_models_far_below_stand_in_their_order_too(opened: Opened) -> None:
    page = opened("#closing=gates/all/lam-0.1/seed-1")
    drawn = page.locator("#curve .point").evaluate_all(
        "all => all.map(one => [Number(one.dataset.score), Number(one.firstChild.getAttribute('cy'))])"
    )
    heights = [height for _, height in sorted(drawn)]
    assert heights == sorted(heights, reverse=True)
    assert len({*heights}) == len({bleu for bleu, _ in drawn}) > 8
    edge = page.locator("#curve .squeezed").bounding_box()
    masked = page.locator('#curve [data-series="random, masked"] .halo').first.bounding_box()
    assert edge and masked and edge["y"] < masked["y"] + 13 < edge["y"] + edge["height"]
    assert "squeezed below" in page.locator("#curve").inner_text()


def test_a_chosen_point_shows_where_its_gates_ended_and_its_name_stands_among_the_models(opened: Opened) -> None:
    page = opened("#closing=gates/all/lam-0.01/seed-1&update=10")
    page.locator('#curve [data-run="pruned/all/lam-0.1/seed-1"]').dispatch_event("click")
    assert page.locator("#update-text").inner_text().startswith("update 300:")
    page.locator('#curve [data-run="scratch/all/lam-0.1/seed-1"]').dispatch_event("click")
    assert page.locator("#model").input_value() == "scratch/all/lam-0.1/seed-1"
    assert page.locator("#model option:checked").inner_text().startswith("from scratch λ 0.1")


def test_what_is_read_out_stays_while_something_else_changes(opened: Opened) -> None:
    page = opened("#pin=2")
    page.evaluate("for (const id of ['card', 'readout']) byId(id).firstChild.known = true")
    known = "byId('card').firstChild.known && byId('readout').firstChild.known"
    page.locator("#update").fill("2")
    page.locator("[data-shape=logalpha]").fill("2")
    assert page.evaluate(known) is True
    page.click('#grids [data-head="dec_self.0.1"]')
    assert not page.evaluate("byId('card').firstChild.known")


def test_every_trained_gate_is_marked_with_its_head_and_gives_its_log_alpha(made: Explored, opened: Opened) -> None:
    run = "gates/enc_self/lam-0.1/seed-1"
    page = opened(f"#trained={run}")
    rows = read_tsv(made.results / SEVERAL / run / "heads.tsv")
    expected = {head_of(row): float(row["log_alpha"]) for row in rows}
    marks = page.locator("#concrete-drawing .trained").evaluate_all(
        "all => all.map(one => [one.dataset.trained, Number(one.dataset.logalpha), Number(one.getAttribute('x1'))])"
    )
    assert {head: value for head, value, _ in marks} == expected
    assert len({place for _, _, place in marks}) == len({*expected.values()}) == 2
    for head in ("enc_self.0.1", "enc_self.1.2"):
        page.locator(f'[data-trained="{head}"]').dispatch_event("click")
        assert page.locator("[data-shape=logalpha]").input_value() == f"{expected[head]:g}"
        assert page.locator("#concrete-drawing .chosen").get_attribute("data-trained") == head
        said = page.locator("#trained-text").inner_text().replace("−", "-")
        assert f"ended at log α {expected[head]:g}" in said
    page.click('#grids [data-head="dec_self.0.1"]')
    assert "has no gate" in page.locator("#trained-text").inner_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_word_on_a_strong_shade_is_in_the_colour_of_the_page(opened: Opened, scheme: str) -> None:
    page = opened("#head=enc_self.1.0&sentence=0", scheme=scheme)
    weights = "attentionOf(model(), 0, rowOf('enc_self.1.0'), 'words').values.slice(0, 9)"
    strong = "row.slice(0, 9).some((weight, word) => word !== at && weight > 0.5)"
    page.locator("#strip .token").nth(page.evaluate(f"{weights}.findIndex((row, at) => {strong})")).click()
    shades = [float(str(one.get_attribute("fill-opacity"))) for one in page.locator("#strip rect.cell").all()]
    inks = page.locator("#strip .token").evaluate_all("all => all.map(one => getComputedStyle(one).fill)")
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert [ink == ground for ink in inks] == [shade > 0.5 for shade in shades] and max(shades) > 0.5


def test_a_closing_square_tells_its_head_and_probability(opened: Opened) -> None:
    page = opened("#closing=gates/all/lam-0.1/seed-1&update=10")
    titles, shares = (told(page, "#closing-grids", name) for name in ("title", "data-value"))
    assert titles["dec_enc.1.0"] == (
        f"cross-attention, layer 2, head 1: open with probability {round(float(shares['dec_enc.1.0']), 2):g}"
    )


def test_a_small_window_names_the_papers_number_and_ours_and_shows_both_ends_of_the_distribution(
    opened: Opened,
) -> None:
    page = opened("", NARROW)
    before = "getComputedStyle(one, '::before').content"
    names = page.locator("#claims-table tr.claim").first.locator("td").evaluate_all(f"all => all.map(one => {before})")
    assert names[:2] == ['"paper: "', '"here: "']
    for picture in page.locator("#concrete-drawing svg").all():
        box = picture.bounding_box()
        assert box and box["width"] <= NARROW[0] - 20


def test_frames_and_the_rule_of_the_sentences_are_explained_where_they_hold(opened: Opened) -> None:
    page = opened("#head=dec_enc.1.0")
    said = page.locator("#attention-lead").inner_text()
    assert "There are 2 sentences to choose from, of 9 to 9 words." in said and "Framed" not in said


def test_in_a_report_a_claim_names_its_figure_and_leads_nowhere(
    made: Explored, browser: Browser, tmp_path: Path
) -> None:
    """The report holds the page as data in a frame, where a link would lead to an empty page."""
    data = base64.b64encode(made.page.read_bytes()).decode()
    report = tmp_path / "report.html"
    report.write_text(f'<iframe src="data:text/html;charset=utf8;base64,{data}"></iframe>', encoding="utf-8")
    wrong: list[Any] = []
    page = browser.new_page()
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(report.as_uri())
    frame = page.frame_locator("iframe")
    frame.locator("#measure").select_option("confidence")
    assert frame.locator("#legend").inner_text().endswith("without the end token")
    assert frame.locator("#claims-table a").count() == 0
    assert frame.locator("#claims-table").get_by_text("figure “measures” of this report").count() > 0
    page.close()
    assert wrong == []


def test_the_page_that_readme_leads_to_is_todays() -> None:
    """If its scripts are not: write `page({"experiments": data_of(KEPT)})` to docs/firefox.html and look at it."""
    kept = (ROOT / "docs/firefox.html").read_text(encoding="utf-8")
    assert kept == page({"experiments": data_of(kept)}), "docs/firefox.html has other scripts than the package"
