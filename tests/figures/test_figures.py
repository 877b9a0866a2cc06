"""Figures: what is drawn, read back from the axes; files that repeat byte for byte."""

import inspect
from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from matplotlib.text import Annotation, Text
from PIL import Image

from drawn_figures import draw, lines_of
from fake_results import World, write_results
from heads.__main__ import main
from heads.base.files import read_yaml
from heads.base.methods import DRAWN, METHOD_FILES
from heads.base.modules import named_function
from heads.base.names import ATTENTIONS
from heads.config.analyses import LrpSettings
from heads.figures import gates, importance, maps, pruning
from heads.figures.selection import BANDS, STYLES
from heads.figures.style import FUNCTION_COLOURS, styled
from heads.tables import labels
from heads.tables.catalogue import FIGURES, TABLES
from heads.tables.measures import measures_table
from heads.tables.reading import SCORED, Frames, load_runs
from slow_ones import slow_but

WORLD = World(layers=3, heads=4, lams=("0.01", "0.1"))


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_results(tmp_path_factory.mktemp("results") / "rich", WORLD)


@pytest.fixture(scope="module")
def driven(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    world = World(layers=3, heads=4, lams=("0.003", "0.03", "0.1"), scratch=False, driven=True)
    return write_results(tmp_path_factory.mktemp("driven") / "rich", world)


def role_rows(*rows: tuple[str, str, float, float, int]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["role", "name", "accuracy", "baseline", "holds"]).assign(
        layer=0, head=0, cases=9, reaches=1
    )


def test_every_table_and_figure_has_its_function_and_a_caption() -> None:
    captions = (Path(importance.__file__).parents[2] / "report/captions.rst").read_text(encoding="utf-8")
    of_tables, of_figures = captions.split("{% else %}\n", maxsplit=1)
    assert all(of_tables.count(f'name == "{name}" %}}\n') == 1 for name in TABLES)
    assert all(of_figures.count(f'name == "{name}" %}}\n') == 1 for name in FIGURES)
    named = [table.function for table in TABLES.values()] + [figure.function for figure in FIGURES.values()]
    named += [figure.animation for figure in FIGURES.values() if figure.animation]
    assert len({*named}) == len(named) and all(inspect.getdoc(named_function(name)) for name in named)


@pytest.mark.parametrize("name", slow_but(["bleu_encoder_heads"], ["bleu_encoder_heads", "gates_closing"]))
def test_the_same_data_gives_the_same_bytes(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gates, "FRAMES", 2)
    monkeypatch.setattr(gates, "STILLS", 2)
    runs = write_results(tmp_path / "small", World(layers=1, heads=2, lams=("0.1",), scratch=False))
    for copy in ("a", "b"):
        arguments = ["--out-pdf", str(tmp_path / f"{copy}.pdf"), "--out-png", str(tmp_path / f"{copy}.png")]
        if FIGURES[name].animation:
            arguments += ["--out-gif", str(tmp_path / f"{copy}.gif")]
        assert main(["figure", "--name", name, "--runs", *map(str, runs), *arguments]) == 0
    for path in tmp_path.glob("a.*"):
        assert path.read_bytes() == path.with_stem("b").read_bytes(), path.suffix
        assert b"Date" not in path.read_bytes()


OF_BLEU = ("bleu_encoder_heads", "score_scratch", "selection", *(f"michel_fig{number}" for number in range(1, 6)))


@pytest.fixture(scope="module", params=["references", "unpruned model"])
def scored_against(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, list[Path]]:
    """What wrote the targets, and runs that are scored against them."""
    world = World(layers=2, heads=3, lams=("0.1",), against=request.param)
    return request.param, write_results(tmp_path_factory.mktemp("results") / "told", world)


@pytest.mark.parametrize("name", slow_but(OF_BLEU[:2], [*OF_BLEU, "measures"]))
def test_bleu_is_called_fidelity_wherever_a_figure_names_it_if_a_model_wrote_the_targets(
    name: str, scored_against: tuple[str, list[Path]]
) -> None:
    against, runs = scored_against
    figure = draw(name, runs)
    texts = [str(text.get_text()) for text in figure.findobj(Text)]
    named = [text for text in texts if "BLEU" in text]
    assert named and not [text for text in texts if "accuracy (%)" in text]
    qualified = [text.count("BLEU (fidelity)") == text.count("BLEU") for text in named]
    assert qualified == [against != "references"] * len(named), named


def test_the_encoder_curve_goes_through_the_points_of_the_table(runs: list[Path]) -> None:
    drawn = {tuple(point) for point in lines_of(draw("bleu_encoder_heads", runs).axes[0])["this experiment"]}
    frames = load_runs(FIGURES["bleu_encoder_heads"].need, runs)
    model, bleu = frames["model.json"], frames[SCORED]
    expected = set()
    for lam in WORLD.lams:
        live = model[(model["lam"] == lam) & (model["attention"] == "enc_self")]["live"].sum()
        expected.add((float(live), float(bleu[bleu["lam"] == lam]["score"].iloc[0])))
    assert drawn == expected


def test_lambdas_are_written_below_the_bars_over_seeds() -> None:
    points = pd.DataFrame(
        {"lam": ["0.1", "0.1", "0.2", "0.2"], "left": [8, 6, 2, 2], "score": [30.0, 34.0, 20.0, 20.0]}
    )
    points = points.assign(keep="", target="λ " + points["lam"])
    with styled():
        axes = plt.figure().add_subplot(xlim=(10, 0), ylim=(0, 40))
        pruning._label_targets(axes, points, "left")
    found = {text.get_text(): text.xy for text in axes.texts if isinstance(text, Annotation)}
    assert found == {"λ 0.1": (7, pytest.approx(32 - 8**0.5)), "λ 0.2": (2, 20)}
    assert {text.get_verticalalignment() for text in axes.texts} == {"top"}


def live_of(driven: list[Path], figure: str) -> dict[str, int]:
    """The number of encoder heads left in each model of a figure that was driven to a number of heads."""
    model = load_runs(FIGURES[figure].need, driven)["model.json"]
    encoder = model[(model["attention"] == "enc_self") & (model["keep"] != "")]
    return {f"to {keep}": int(rows["live"].sum()) for keep, rows in encoder.groupby("keep")}


OF_DRIVEN = ("bleu_encoder_heads", "heads_by_type", "heads_by_layer", "score_scratch", "functions_retained",
             "gates_closing", "alignment_heads", "hard_concrete")  # fmt: skip
"""Figures that name models by their numbers of heads."""


@pytest.mark.slow
def test_where_no_lambda_was_swept_all_other_figures_are_drawn(driven: list[Path]) -> None:
    others = [name for name in FIGURES if FIGURES[name].need.driven and name not in OF_DRIVEN]
    assert len(others) > 2
    assert all(draw(name, driven).axes for name in others)


def test_where_no_lambda_was_swept_the_models_that_have_a_number_of_heads_are_shown(driven: list[Path]) -> None:
    """As for an imported model, which is pruned to numbers of heads."""
    encoder, everywhere = live_of(driven, "bleu_encoder_heads"), live_of(driven, "heads_by_type")
    assert len(encoder) == len(everywhere) == 3
    shown = {name: draw(name, driven).axes for name in OF_DRIVEN}
    curve = lines_of(shown["bleu_encoder_heads"][0])["this experiment"]
    assert sorted(x for x, _ in curve) == sorted(encoder.values())
    left = [y for _, y in lines_of(shown["heads_by_type"][0])["encoder self-attention"]]
    assert left == pytest.approx([100 * live / 12 for live in (12, *sorted(everywhere.values(), reverse=True))])
    assert all(np.size(line.get_xdata()) == 4 for line in shown["heads_by_layer"][0].lines)
    assert len(lines_of(shown["score_scratch"][0])["pruned"]) == 3
    for axes, models in ((shown["functions_retained"][0], encoder), (shown["functions_retained"][2], everywhere)):
        ticks = [label.get_text() for label in axes.get_xticklabels()]
        assert ticks[0] == "12\nfull" and {*ticks[1:]} == {f"{live}\n{told}" for told, live in models.items()}
        assert axes.get_xlabel() == "encoder heads left, of how many in all"
    targets = sorted(everywhere, key=lambda told: -int(told.split()[1]))
    assert [axes.get_title() for axes in shown["gates_closing"][:4]] == ["λ 0", *targets]
    lines = [str(line.get_label()) for line in shown["alignment_heads"][1].lines]
    assert [label for label in lines if label.startswith("to ")] == targets
    assert f"where {3 * (36 + 12)} trained gates" in shown["hard_concrete"][3].get_title(loc="left")


def test_the_papers_curves_start_at_its_own_full_model(runs: list[Path]) -> None:
    lines = lines_of(draw("bleu_encoder_heads", runs).axes[1])
    for corpus, least in (("WMT", 28.26 - 29.60), ("OpenSubtitles", 31.46 - 32.40)):
        points = lines[f"paper, {corpus}"]
        assert points[0] == [1, 0]
        assert min(y for _, y in points) == pytest.approx(least)


def test_the_bars_of_a_size_add_up_to_its_heads(runs: list[Path]) -> None:
    encoder, paper, everywhere, scratch = draw("functions_retained", runs).axes
    largest = int(scratch.get_xticklabels()[0].get_text().split()[0])
    for axes, full in ((encoder, 12), (paper, 48), (everywhere, 12), (scratch, largest)):
        totals: dict[int, float] = {}
        for bar in axes.patches:
            totals[round(bar.get_x() + bar.get_width() / 2)] = bar.get_y() + bar.get_height()  # type: ignore[attr-defined]
        assert totals[0] == full
        ticks = [int(label.get_text().split()[0]) for label in axes.get_xticklabels()]
        assert list(totals.values()) == ticks


def test_heads_are_sorted_by_relevance_in_every_panel(runs: list[Path]) -> None:
    figure = draw("head_functions", runs)
    relevance, functions = figure.axes[0], next(a for a in figure.axes if "functions" in a.get_title(loc="left"))
    values = np.asarray(relevance.collections[0].get_array()).reshape(3, 4)
    assert (np.diff(values, axis=1) <= 0).all()
    lrp = load_runs(FIGURES["head_functions"].need, runs)["lrp.tsv"]
    encoder = lrp[(lrp["attention"] == "enc_self") & (lrp["rule"] == "plain")].set_index(["layer", "head"])[
        "relevance_absolute"
    ]
    # The small numbers in the right panel are heads, 1-based, placed by rank.
    numbers = [text for text in functions.texts if text.get_text().isdigit()]
    for text in numbers:
        rank, layer = (int(place) for place in text.get_position())
        assert encoder[layer, int(text.get_text()) - 1] == pytest.approx(values[layer, rank])
    assert len(numbers) == 12


def test_figures_have_a_name_for_every_rule_that_is_used_by_default_and_none_says_what_another_is() -> None:
    rules = read_yaml(Path(__file__).parents[2] / "config.yaml")["defaults"]["lrp"]["rules"]
    found = [labels.rule_label(rule) for rule in rules]
    assert len(set(found)) == len(found)
    assert found[:4] == ["LRP, plain ratio", "LRP, z⁺", "LRP, α–β", "AttnLRP"]
    assert not {rule for rule in rules if rule not in labels.RULE_LABELS}
    named = {rule: label for rule, label in labels.RULE_LABELS.items() if "code" in label}
    assert named == {"voita-2019": "code of 2019"}


def test_relevance_by_every_rule_stands_in_its_own_row(runs: list[Path]) -> None:
    lrp = load_runs(FIGURES["relevance_all"].need, runs)["lrp.tsv"]
    figure = draw("relevance_all", runs)
    cells = [axes for axes in figure.axes if axes.get_ylabel() in ("", "layer")][:15]
    drawn = [np.asarray(axes.collections[0].get_array()).reshape(3, 4) for axes in cells]
    labels = [axes.get_ylabel().replace("\n", " ") for axes in figure.axes if "LRP" in axes.get_ylabel()]
    ends = [axes.collections[0].get_clim() for axes in cells[::3]]
    shares = {"relevance": "signed by step", "relevance_of_sums": "signed of sums", "relevance_absolute": "absolute"}
    shown = [*(("plain", share) for share in shares), ("z-plus", "relevance_absolute")]
    assert labels == [*(f"LRP, plain ratio, {name}" for name in shares.values()), "LRP, z⁺"]
    for row, (rule, share) in enumerate(shown):
        for column, attention in enumerate(("enc_self", "dec_self", "dec_enc")):
            rows = lrp[(lrp["rule"] == rule) & (lrp["attention"] == attention)]
            for layer, head, value in rows[["layer", "head", share]].itertuples(index=False, name=None):
                assert drawn[3 * row + column][layer, head] == value
        # For signed shares, white is zero.
        assert ends[row][0] == (0 if share == "relevance_absolute" else -ends[row][1])


def test_confidence_stands_against_relevance_in_four_readings_side_by_side(runs: list[Path]) -> None:
    lrp = load_runs(FIGURES["relevance_all"].need, runs)["lrp.tsv"].sort_values(["layer", "head"])
    figure = draw("measures", runs)
    panels = [axes for axes in figure.axes if axes.get_label() != "<colorbar>"][1:]
    titles = [axes.get_title(loc="left") for axes in panels[:4]]
    points = [
        np.concatenate([np.asarray(line.get_ydata()) for line in axes.lines if "layer" in str(line.get_label())])
        for axes in panels
    ]
    assert titles == ["(b) as written", "(c) signed of sums", "(d) absolute", "(e) z-plus"]
    four = (("plain", "relevance"), ("plain", "relevance_of_sums"), ("plain", "relevance_absolute"))
    shown = [(kind, *reading) for kind in ATTENTIONS for reading in (*four, ("z-plus", "relevance"))]
    for drawn, (kind, rule, share) in zip(points, shown, strict=True):
        expected = lrp[(lrp["attention"] == kind) & (lrp["rule"] == rule)][share].tolist()
        assert drawn.tolist() == expected


def test_no_label_of_a_rule_runs_into_the_next_one(runs: list[Path]) -> None:
    frames = load_runs(FIGURES["relevance_all"].need, runs)
    lrp = frames["lrp.tsv"][frames["lrp.tsv"]["rule"] == "plain"]
    every = pd.concat([lrp.assign(rule=rule) for rule in LrpSettings().rules])
    with styled():
        figure = importance.relevance_all({**frames, "lrp.tsv": every}, "first")
        figure.canvas.draw()
        labels = [axes.yaxis.label for axes in figure.axes if axes.get_ylabel() not in ("", "layer")]
        extents = sorted((extent.y0, extent.y1) for extent in (label.get_window_extent() for label in labels))
    assert len(extents) == len(LrpSettings().rules) + 2 + 1, "two more shares by the paper's rule, and confidence"
    assert all(top < bottom for (_, top), (bottom, _) in pairwise(extents))


def test_correlations_stand_at_the_place_of_their_two_measures(runs: list[Path]) -> None:
    """Below the diagonal within layers, above it over all heads, as numbers in a symmetric order of measures."""
    axes = draw("measures", runs).axes[0]
    names = [label.get_text() for label in axes.get_yticklabels()]
    written = {text.get_position(): text.get_text() for text in axes.texts}
    assert [label.get_text() for label in axes.get_xticklabels()] == names
    table = measures_table(load_runs(FIGURES["measures"].need, runs)).query("attention == 'enc_self'")
    plain, confidence = table["lrp_plain_signed_by_step"], table["confidence"]
    row, column = names.index("confidence"), names.index("LRP plain ratio, signed by step")
    above = np.corrcoef(plain.rank(), confidence.rank())[0, 1]
    layers = [rows[["lrp_plain_signed_by_step", "confidence"]].rank() - 2.5 for _, rows in table.groupby("layer")]
    below = np.corrcoef(np.concatenate(layers).T)[0, 1]
    for (x, y), rho in (((column, row), below), ((row, column), above)):
        text = written[x + 0.5, y + 0.5].replace("\N{MINUS SIGN}", "-")
        assert float(text) == pytest.approx(rho, abs=0.0051)


def test_a_heads_label_names_its_offset_and_the_relation_with_the_largest_gain() -> None:
    rows = role_rows(
        ("positional", "-1", 0.95, np.nan, 1), ("positional", "+1", 0.2, np.nan, 0),
        ("syntactic", "nsubj dependent-to-head", 0.6, 0.4, 1), ("syntactic", "obj head-to-dependent", 0.55, 0.2, 1),
    )  # fmt: skip
    assert labels.function_label(rows) == "\N{MINUS SIGN}1\nv→o+"
    assert labels.function_label(rows.assign(holds=0)) == ""


def test_relations_are_written_in_the_direction_of_the_look() -> None:
    assert labels.relation_label("nsubj dependent-to-head", short=False) == "subj→verb"
    assert labels.relation_label("amod head-to-dependent", short=True) == "n→a"
    assert labels.relation_label("case head-to-dependent", short=False) == "head→case"


def test_gold_cells_lead_from_the_word_that_looks_to_its_partner() -> None:
    """He sold old tools: sold is the root, old depends on tools."""
    sentence = {"relations": ["nsubj:pass", "root", "amod", "obj"], "tree_heads": [2, 0, 4, 2]}
    assert maps.gold_cells(sentence, "nsubj dependent-to-head") == [(0, 1)]
    assert maps.gold_cells(sentence, "obj head-to-dependent") == [(1, 3)]
    assert maps.gold_cells(sentence, "root dependent-to-head") == []


def test_the_head_with_the_clearest_role_is_the_most_accurate_one_that_was_measured() -> None:
    rows = role_rows(("positional", "-1", 0.4, np.nan, 0), ("rare", "one of two rarest", np.nan, np.nan, 0))
    rows = pd.concat([rows, rows.assign(head=2, accuracy=0.7)[:1]], ignore_index=True)
    (found,) = maps.clearest_heads(rows)
    assert (found.head, found.name, found.holds) == (2, "-1", False)


def test_each_kind_of_attention_is_a_share_of_its_own_heads_of_which_kinds_may_have_different_numbers() -> None:
    """Half of two encoder heads, one of three of decoder self-attention, and one of one of cross-attention are left."""
    live = {"baseline": {"enc_self": (1, 1), "dec_self": (1, 1, 1), "dec_enc": (1,)},
            "pruned": {"enc_self": (0, 1), "dec_self": (0, 1, 0), "dec_enc": (1,)}}  # fmt: skip
    runs = {"baseline": ("", ""), "pruned": ("all", "0.1")}
    model = pd.DataFrame([
        {"experiment": "x", "kind": kind, "scope": runs[kind][0], "method": "", "lam": runs[kind][1], "keep": "",
         "seed": 1, "dev_loss": 1.0, "attention": attention, "live": one}
        for kind, heads in live.items() for attention, gates in heads.items() for one in gates
    ])  # fmt: skip
    ours, paper = draw("heads_by_type", {"model.json": model}).axes
    shares = {name: points[-1] for name, points in lines_of(ours).items() if not name.startswith("_")}
    assert shares == {
        "encoder self-attention": [50, 50], "decoder self-attention": [50, pytest.approx(100 / 3)],
        "cross-attention": [50, 100],
    }  # fmt: skip
    assert ours.get_title(loc="left") == "(a) this experiment: 2, 3, 1 heads" and "80" not in ours.get_xlabel()
    encoder = lines_of(paper)["encoder self-attention"]
    assert encoder[1] == pytest.approx([100 * 16 / 144, 100 * 34 / 48]), "the second model of the paper's figure"


def test_decoder_layers_are_gathered_in_thirds_unless_they_are_few_under_a_deep_encoder(tmp_path: Path) -> None:
    runs = write_results(tmp_path / "deep", World(layers=6, heads=2, lams=("0.1",), scratch=False))
    model = load_runs(FIGURES["heads_by_layer"].need, runs)["model.json"]
    table = pruning.decoder_layers(model)
    assert set(table["layers"]) == {"1+2", "3+4", "5+6"}
    one = table[(table["lam"] == "0.1") & (table["attention"] == "dec_enc") & (table["layers"] == "3+4")]
    live = model[(model["lam"] == "0.1") & (model["attention"] == "dec_enc") & model["layer"].isin([2, 3])]["live"]
    assert (one["heads"].item(), one["of"].item()) == (live.sum(), 4)
    shallow = model[(model["attention"] == "enc_self") | (model["layer"] < 2)]
    assert set(pruning.decoder_layers(shallow)["layers"]) == {"1", "2"}


def test_every_way_to_choose_heads_that_is_measured_has_a_line_of_its_own() -> None:
    assert {*METHOD_FILES} - {*BANDS} <= {*STYLES} and {*BANDS} == {*DRAWN}, "random ones are bands"
    looks = [str(style) for style in dict(STYLES.values()).values()]
    assert len(set(looks)) == len(looks)


def gates_frame() -> Frames:
    rows = [
        {"method": "", "lam": lam, "keep": keep, "seed": 1, "update": update,
         "attention": attention, "layer": layer, "head": head,
         "p_open": update / 100 + layer / 10 + head / 100 + (attention == "dec_self") / 2}
        for lam, keep, updates in (("0.1", "", (0, 10, 20)), ("", "3", (0,)), ("0.02", "", (0, 20)), ("0", "", (0, 5)))
        for update in updates
        for attention in ("dec_self", "enc_self") for layer in range(2) for head in range(3)
    ]  # fmt: skip
    return {"gates.jsonl": pd.DataFrame(rows)}


def test_strips_stack_kinds_of_attention_and_layers_in_order() -> None:
    recorded = gates.strips(gates_frame()["gates.jsonl"])
    assert list(recorded) == ["λ 0", "λ 0.02", "λ 0.1"]
    assert recorded["λ 0.1"][10].shape == (4, 3)
    np.testing.assert_allclose(recorded["λ 0.1"][10][:, 2], [0.12, 0.22, 0.62, 0.72])


def test_a_strip_shows_its_last_record_at_every_moment() -> None:
    recorded = gates.strips(gates_frame()["gates.jsonl"])
    assert gates.updates_to_show(recorded, 2) == [0, 20]
    assert gates.updates_to_show(recorded, 9) == [0, 5, 10, 20]
    assert gates.at(recorded["λ 0.02"], 10)[0, 0] == 0
    assert gates.at(recorded["λ 0.02"], 25)[0, 0] == 0.2


def test_the_animation_has_a_picture_for_every_moment(tmp_path: Path) -> None:
    with styled():
        gates.write_animation(gates_frame(), "x", tmp_path / "x.gif")
    with Image.open(tmp_path / "x.gif") as picture:
        assert picture.n_frames == 4  # type: ignore[attr-defined]


def test_functions_have_colours_that_differ_in_lightness() -> None:
    """Readable in grey too: neighbours in a stacked bar differ in luminance by at least a tenth of the scale."""
    rgb = {k: np.array([int(v[i : i + 2], 16) for i in (1, 3, 5)]) / 255 for k, v in FUNCTION_COLOURS.items()}
    luminance = [float(colour @ [0.2126, 0.7152, 0.0722]) for colour in rgb.values()]
    assert (np.abs(np.diff(luminance)) > 0.1).all()
