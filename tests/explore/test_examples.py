"""A classification experiment on the page: accuracy, labels and examples where others have BLEU and text."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page

from explored_page import NARROW, SEVERAL, TOLD, Explored, Opened, needs_browser, told, weights_shown
from fake_labels import HYPOTHESIS, MAJORITY, PREMISE, WORDS
from heads.analysis.attention_maps import unpacked
from heads.base.files import read_json

BARE = f"#experiment={TOLD}"
PRUNED = "pruned/all/lam-0.1/seed-1"


def said_on(page: Page) -> str:
    """All that can be read or heard: text, options, and the names of elements without text."""
    parts = page.evaluate(
        "[...document.querySelectorAll('header *, main *, footer, #tip')].flatMap((one) => [one.textContent,"
        " one.getAttribute('aria-label'), one.title])"
    )
    return " ".join(part for part in parts if isinstance(part, str))


@pytest.mark.slow
@needs_browser
def test_nothing_that_is_said_of_a_classifier_is_about_translations(opened: Opened) -> None:
    page = opened(BARE)
    said = []
    for measure in page.locator("#measure option").evaluate_all("all => all.map(one => one.value)"):
        page.select_option("#measure", measure)
        said.append(said_on(page))
    page.hover('#grids [data-head="enc_self.1.3"]')
    page.locator(f'#curve [data-run="{PRUNED}"]').dispatch_event("click")
    said.append(said_on(page))
    page.locator('#curve [data-series="random, masked"]').first.dispatch_event("click")
    for words in (*said, said_on(page)):
        found = re.findall(r".{30}(?:BLEU|[Tt]ranslat|[Dd]ecoder|both papers).{30}", words)
        assert [line for line in found if "accuracy by importance" not in line] == []
    assert "BLEU" in said_on(opened()), "what is read here would show it"


@pytest.mark.slow
@needs_browser
def test_what_a_classifier_costs_is_told_in_points_of_accuracy(
    made: Explored, data: dict[str, Any], opened: Opened
) -> None:
    page = opened(BARE)
    one = data[TOLD]
    summary = f"The classification model “{TOLD}” has 8 heads and {one['score']:.2f} % accuracy."
    assert summary in page.inner_text("#summary")
    footer = page.inner_text("#footer")
    assert footer.startswith(f"Accuracy on 500 test examples, the likeliest label alone has {MAJORITY} %.")
    row = one["table"][5]
    page.click('#grids [data-head="enc_self.1.1"]')
    change = f"{row['score_change']:+.2f}".replace("-", "−")
    assert page.inner_text("#need-text").startswith(f"Masked alone, accuracy changes by {change} points (p")
    assert f"unpruned: 8 heads, accuracy {one['score']:.2f} %" in page.locator("#model option").all_inner_texts()
    assert page.locator("#curve text").all_text_contents()[-1] != "BLEU"
    assert "accuracy (%)" in page.locator("#curve text").all_text_contents()
    assert "7 claims of Michel et al. 2019, BERT, tried" in page.inner_text("#claims-lead")


@pytest.mark.slow
@needs_browser
@pytest.mark.parametrize("run", ["baseline/seed-1", PRUNED])
def test_an_example_shows_its_map_its_label_and_the_one_that_is_told(made: Explored, opened: Opened, run: str) -> None:
    folder = made.results / TOLD / run
    layers = read_json(folder / "model.json")["shape"]["live_heads"]["enc_self"]
    live = [(layer, head) for layer, heads in enumerate(layers) for head in heads]
    page = opened(f"{BARE}&sentence=1&model={run}")
    name = "enc_self.{}.{}".format(*live[-1])
    page.click(f'#grids [data-head="{name}"]')
    weights = unpacked(read_json(folder / "maps.json")[1]["weights"]["enc_self"]).reshape(len(live), -1)[-1]
    for unit in ("subwords", "words"):
        page.select_option("#unit", unit)
        shown = weights_shown(page, name)
        assert shown == pytest.approx(weights, abs=1e-4) and len(shown) == len(WORDS) ** 2
        assert page.locator(f'[data-panel="{name}"] .token').all_text_contents() == [*WORDS]
    assert page.locator("#strip path.arc").count() == 2
    said = page.inner_text("#translations").split("\n")
    answers = [said[said.index(name) + 1] for name in ("example 2", "label in the corpus", "unpruned")]
    assert answers == [f"{' '.join(PREMISE)} ⟶ {' '.join(HYPOTHESIS)}", "entailment", "neutral"]
    assert page.locator("#sentence option:checked").inner_text() == f"2. {answers[0]}"
    assert f"There are 2 examples to choose from, of {len(WORDS) - 3} to" in (page.inner_text("#attention-lead"))
    name_told = "unpruned" if run.startswith("baseline") else "pruned λ 0.1"
    assert page.inner_text("#labels") == f"Its label is entailment. This model ({name_told}) predicts neutral ✗."
    page.select_option("#sentence", "0")
    predicted = f"This model ({name_told}) predicts contradiction ✓."
    assert page.inner_text("#labels") == f"Its label is contradiction. {predicted}"
    assert ("Both give the same label." in page.inner_text("#translations")) == (run == PRUNED)


@pytest.mark.slow
@needs_browser
def test_a_classifier_has_one_grid_round_which_arrow_keys_walk_and_its_gates_have_one_too(opened: Opened) -> None:
    page = opened(f"{BARE}&head=enc_self.1.3")
    assert len(told(page, "#grids", "data-value")) == 8 == len(told(page, "#closing-grids", "data-value"))
    assert page.locator("#grids table").count() == page.locator("#closing-grids table").count() == 1
    page.focus('#grids [data-head="enc_self.1.3"]')
    walked = []
    for key in ("ArrowRight", "ArrowDown", "ArrowLeft"):
        page.keyboard.press(key)
        walked.append(page.evaluate("document.activeElement.dataset.head"))
    assert walked == ["enc_self.1.0", "enc_self.0.0", "enc_self.0.3"]


@pytest.mark.slow
@needs_browser
def test_a_classifier_and_a_translator_take_turns_on_one_page_and_it_fits_a_small_window(opened: Opened) -> None:
    page = opened("", NARROW)
    page.select_option("#experiment", TOLD)
    assert page.evaluate("document.documentElement.scrollWidth") == NARROW[0]
    assert page.locator("#grids table").count() == 1 and page.inner_text("#sentence-name") == "Example"
    page.select_option("#experiment", SEVERAL)
    assert page.locator("#grids table").count() == 3 and page.inner_text("#sentence-name") == "Sentence"
    assert page.inner_text("#labels") == ""
    assert "its translation below" in page.inner_text("#curve-lead")
