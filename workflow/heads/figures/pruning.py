"""What pruning costs and removes (Voita et al., Table 2, Figs 7, 9 and 10), beside the same heads from scratch."""

from itertools import product
from typing import Any

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, MultipleLocator, NullFormatter, PercentFormatter

from heads.base.names import ATTENTION_LABELS, ATTENTIONS
from heads.figures.style import (
    HALO,
    OURS,
    PAPER_COLOURS,
    PAPER_MARKERS,
    TYPE_COLOURS,
    TYPE_MARKERS,
    mean_line,
    new_figure,
    none_here,
    over_seeds,
    panel,
    score_name,
    seed_note,
    shared_legend,
    spread_note,
)
from heads.tables.curves import BETTER, curves_of, scratch_curve_table
from heads.tables.picking import heads_left, in_order, is_control, original, pruned_by_gates
from heads.tables.reading import RUN_COLUMNS, SCORED, Frames

CURVE_LABELS = {"dev_loss": "dev loss, nats per subword", "dev_bleu": "BLEU, against the dev set's targets"}


def with_scores(frames: Frames) -> pd.DataFrame:
    """Heads left and scores of unpruned and pruned models, with `score_scratch` and the seed's `baseline` score."""
    keys = list(RUN_COLUMNS)
    scores = frames[SCORED][[*keys, "metric", "score", "majority"]]
    scratch = scores[scores["kind"] == "scratch"].assign(kind="pruned").rename(columns={"score": "score_scratch"})
    merged = heads_left(frames["model.json"]).merge(scores, on=keys)
    merged = merged.merge(scratch[[*keys, "score_scratch"]], on=keys, how="left")
    baselines = scores[scores["kind"] == "baseline"].set_index("seed")["score"]
    return merged.assign(baseline=merged["seed"].map(baselines))


def _pruned(runs: pd.DataFrame) -> pd.DataFrame:
    return pruned_by_gates(runs[runs["kind"] == "pruned"])


def _from_unpruned_on(runs: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([runs[runs["kind"] == "baseline"].assign(target="unpruned"), _pruned(runs)])


def _level_lines(axes: Axes, runs: pd.DataFrame) -> None:
    """Draw lines at the mean scores of unpruned models, controls and (for classifiers) the likeliest label."""
    baseline = runs[runs["kind"] == "baseline"]["score"]
    control = runs[(runs["kind"] == "pruned") & is_control(runs)]["score"]
    if len(baseline):
        axes.axhline(baseline.mean(), color="#666666", linewidth=0.9, label="unpruned model")
    if len(control):
        axes.axhline(control.mean(), color="#666666", linewidth=0.9, linestyle=(0, (4, 2)), label="control, λ = 0")
    if runs["majority"].notna().any():
        axes.axhline(runs["majority"].mean(), color="#666666", linewidth=0.9, linestyle=":", label="likeliest label")


def _label_targets(axes: Axes, points: pd.DataFrame, x: str) -> None:
    """Write each target below its mean over seeds and its error bar, unless another label is too near."""
    means, spread = over_seeds(points, [x, "score"])
    width, height = (abs(high - low) for low, high in (axes.get_xlim(), axes.get_ylim()))
    style: dict[str, Any] = {"fontsize": 5, "ha": "center", "va": "top", "path_effects": HALO}
    written: list[tuple[float, float]] = []
    for target in reversed(in_order(points)):
        left, low = means.loc[target, x], means.loc[target, "score"] - spread.loc[target, "score"]
        if all(abs(left - a) > 0.12 * width or abs(low - b) > 0.06 * height for a, b in written):
            written.append((left, low))
            axes.annotate(target, (left, low), (0, -4), textcoords="offset points", **style)


def _scores(axes: Axes, points: pd.DataFrame, x: str, most: int, words: tuple[str, str]) -> None:
    """Finish a panel of scores against the column `x`, from all heads down to none. words: the heads, the score."""
    axes.set(xlim=(most * 1.05, -most * 0.05), xlabel=f"{words[0]}, of {most}", ylabel=f"{words[1]}, test set")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.margins(y=0.12)
    _label_targets(axes, points, x)
    panel(axes, "a", words[1])


def _differences(axes: Axes, ours: pd.DataFrame, papers: dict[str, tuple[pd.Series, pd.Series]], **labels: str) -> None:
    """Draw `loss` against `share` of heads, and the same of the paper's models by corpus."""
    mean_line(axes, ours, "share", "loss", marker="o", color=OURS, label="this experiment")
    for corpus, (share, loss) in papers.items():
        style: dict[str, Any] = {"color": PAPER_COLOURS[corpus], "marker": PAPER_MARKERS[corpus]}
        axes.plot(share, loss, label=f"paper, {corpus}", markersize=3, linewidth=0.9, **style)
    axes.axhline(0, color="#666666", linewidth=0.9)
    axes.xaxis.set_major_formatter(PercentFormatter(1))
    axes.set(xlim=(1.03, -0.03), **labels)


def bleu_encoder_heads(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """BLEU against encoder heads left when only the encoder is pruned; beside it, the change and the paper's."""
    runs, score = with_scores(frames), score_name(frames)
    title = f"Pruning encoder heads only, experiment “{experiment}”{spread_note(runs)}"
    figure, (axes,) = new_figure(2.7, title, ncols=2)
    pruned, most = _pruned(runs), int(runs[original("enc_self")].max())
    _level_lines(axes[0], runs)
    mean_line(axes[0], pruned, "enc_self", "score", marker="o", color=OURS, label="this experiment")
    _scores(axes[0], pruned, "enc_self", most, ("encoder heads left", score))
    change = pruned.assign(share=pruned["enc_self"] / most, loss=pruned["score"] - pruned["baseline"])
    papers = {
        str(corpus): (rows["enc_self"] / rows["of"], rows["score"] - rows.loc[rows["enc_self"].idxmax(), "score"])
        for corpus, rows in paper.groupby("corpus", sort=False)
    }
    _differences(axes[1], change, papers, xlabel="encoder heads left", ylabel=f"{score} minus unpruned model")
    panel(axes[1], "b", "change; paper: Fig 7")
    shared_legend(figure, list(axes), columns=3)
    return figure


def score_scratch(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """Pruned models against the same heads trained from scratch: scores, and the gain beside the paper's Table 2."""
    runs, score = with_scores(frames), score_name(frames)
    title = f"Pruned, or the same heads from scratch? Experiment “{experiment}”{spread_note(runs)}"
    figure, (axes,) = new_figure(2.7, title, ncols=2)
    pruned, most = _pruned(runs), int(runs["of"].max())
    _level_lines(axes[0], runs)
    means = over_seeds(pruned, ["total", "score", "score_scratch"])[0]
    axes[0].vlines(means["total"], means["score_scratch"], means["score"], color="#BBBBBB", linewidth=0.8)
    points: dict[str, Any] = {"linestyle": "none", "markeredgecolor": "white", "markeredgewidth": 0.4}
    colour = TYPE_COLOURS["enc_self"]
    mean_line(axes[0], pruned, "total", "score", marker="o", color=colour, label="pruned", **points)
    if pruned["score_scratch"].notna().any():
        style = {"marker": "X", "markersize": 5.5, "color": "#D55E00", "label": "same heads, from scratch"}
        mean_line(axes[0], pruned, "total", "score_scratch", **style, **points)
    lower = pruned.assign(score=pruned[["score", "score_scratch"]].min(axis=1))
    _scores(axes[0], lower, "total", most, ("heads left", score))
    gain = pruned.assign(share=pruned["total"] / most, loss=pruned["score"] - pruned["score_scratch"])
    paper = paper[paper["metric"].isin(runs["metric"])]
    papers = {
        str(corpus): (rows["total"] / rows["of"], rows["score"] - rows["score_scratch"])
        for corpus, rows in paper.dropna(subset="score_scratch").groupby("corpus", sort=False)
    }
    labels = {"xlabel": "heads left", "ylabel": f"{score} minus from scratch"}
    _differences(axes[1], gain.dropna(subset="loss"), papers, **labels)
    panel(axes[1], "b", f"gain over scratch{'; paper: Table 2' if len(paper) else ''}")
    shared_legend(figure, list(axes), columns=4)
    return figure


def scratch_curves(frames: Frames, experiment: str) -> Figure:
    """Dev curves of models from scratch, with levels of the unpruned model and of the same heads pruned."""
    rows, curves = scratch_curve_table(frames), curves_of(frames)
    rows = rows[rows["seed"] == rows["seed"].min()].sort_values("heads", ascending=False)
    title = f"When training from scratch catches up: “{experiment}”{seed_note(frames['train.jsonl'])}"
    figure, (axes,) = new_figure(2.9, title, ncols=2)
    colours = sns.color_palette("viridis", len(rows))
    for each, letter, score in zip(axes, "ab", BETTER, strict=True):
        each.set(xlabel="updates from scratch", ylabel=CURVE_LABELS[score])
        panel(each, letter, CURVE_LABELS[score].split(",")[0])
        for row, colour in zip(rows.to_dict("records"), colours, strict=True):
            run = row["scope"], "", row["lam"], row["keep"], row["seed"]
            curve = curves[row["experiment"], "scratch", *run]
            levelled = "fine-tuned" if (row["experiment"], "selected", *run) in curves else "pruned"
            if curve[score].notna().any():
                own = f"{row['heads']} heads"
                each.plot(curve["update"], curve[score], color=colour, label=f"{own}, from scratch")
                _level(each, row[f"{score}_pruned"], color=colour, linestyle="--", label=f"{own}, {levelled}")
        if each.lines:
            _level(each, rows[f"{score}_unpruned"].iloc[0], color=OURS, linestyle=":", label="unpruned")
        else:
            none_here(each, "not measured")
    axes[0].set_yscale("log")
    axes[0].yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes[0].yaxis.set_major_formatter("{x:g}")
    axes[0].yaxis.set_minor_formatter(NullFormatter())
    shared_legend(figure, list(axes), columns=4)
    return figure


def _level(axes: Axes, value: float, **style: Any) -> None:
    """Draw a line across the panel, unless the value is missing."""
    if not pd.isna(value):
        axes.axhline(value, linewidth=0.9, **style)


def heads_by_type(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """Percent left of each kind of attention against percent of all heads pruned; beside it, the paper's WMT models."""
    runs = heads_left(frames["model.json"])
    ours = _from_unpruned_on(runs.assign(pruned=runs["of"] - runs["total"]))
    # The paper's models have as many heads of each kind.
    counts = {original(kind): paper["of"] // len(ATTENTIONS) for kind in ATTENTIONS}
    theirs = paper[paper["corpus"] == "WMT"].assign(seed=0, target=paper["pruned"], **counts)
    title = f"Which kind of attention loses its heads, experiment “{experiment}”{spread_note(runs)}"
    figure, (axes,) = new_figure(2.6, title, ncols=2)
    sources = {"this experiment": ours, "paper, WMT (Fig 9)": theirs}
    for each, letter, (source, models) in zip(axes, "ab", sources.items(), strict=True):
        of = {kind: int(models[original(kind)].max()) for kind in ATTENTIONS}
        gone = models.assign(pruned=100 * models["pruned"] / models["of"])
        for kind in filter(of.get, ATTENTIONS):
            left = gone.assign(left=100 * gone[kind] / of[kind])
            style = {"color": TYPE_COLOURS[kind], "marker": TYPE_MARKERS[kind]}
            mean_line(each, left, "pruned", "left", label=ATTENTION_LABELS[kind], **style)
        each.set(xlabel=f"heads pruned, of all {sum(of.values())}", ylabel="heads left, of each kind")
        _from_zero(each, 100, 100)
        for axis in (each.xaxis, each.yaxis):
            axis.set_major_locator(MultipleLocator(20))
            axis.set_major_formatter(PercentFormatter(100))
        panel(each, letter, f"{source}: {', '.join(str(number) for number in of.values() if number)} heads")
    shared_legend(figure, list(axes), columns=3)
    return figure


def _from_zero(axes: Axes, x: float, y: float) -> None:
    axes.set(xlim=(-0.04 * x, 1.04 * x), ylim=(-0.05 * y, 1.08 * y))
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))


def decoder_layers(model: pd.DataFrame) -> pd.DataFrame:
    """Live decoder heads of each run in each third of the decoder's layers, as in the paper's layer pairs.

    Columns: attention, layers (such as "1+2"), heads, of, pruned (of all heads). If the number of layers is not
    divisible by three, each layer is on its own.
    """
    decoder = model[model["attention"] != "enc_self"]
    count = int(decoder["layer"].max()) + 1  # may differ from the encoder's
    group = count // 3 if count % 3 == 0 else 1
    names = {first // group: "+".join(str(first + k + 1) for k in range(group)) for first in range(0, count, group)}
    totals = heads_left(model).assign(pruned=lambda left: left["of"] - left["total"])
    keys = list(RUN_COLUMNS)
    named = decoder.assign(layers=lambda rows: (rows["layer"] // group).map(names))
    grouped = named.groupby([*keys, "attention", "layers"], sort=False)["live"].agg(heads="sum", of="size")
    return grouped.reset_index().merge(totals[[*keys, "pruned"]], on=keys)


def heads_by_layer(frames: Frames, paper: pd.DataFrame, experiment: str) -> Figure:
    """Decoder heads left in each third of the layers against heads pruned; beside it, the paper's layer pairs."""
    layers = decoder_layers(frames["model.json"])
    ours = _from_unpruned_on(layers)
    title = f"Which decoder layers keep their heads, experiment “{experiment}”{spread_note(layers)}"
    figure, axes = new_figure(4.0, title, nrows=2, ncols=2, sharex="col")
    sources = {"this experiment": ours, "paper, WMT (Fig 10)": paper.assign(seed=0, target=paper["pruned"])}
    panels = product(("dec_self", "dec_enc"), sources.items())
    for each, letter, (attention, (source, models)) in zip(axes.ravel().tolist(), "abcd", panels, strict=True):
        panel(each, letter, f"{ATTENTION_LABELS[attention]}, {source}")
        chosen = models[models["attention"] == attention]
        if chosen.empty:
            none_here(each)
            continue
        names = sorted(chosen["layers"].unique(), key=lambda name: float(name.split("+")[0]))
        colours = sns.color_palette("viridis", n_colors=len(names) + 1)
        for name, colour, marker in zip(names, colours, "osD^vPX*" * len(names), strict=False):
            style = {"color": colour, "marker": marker, "label": f"{'layers' if '+' in name else 'layer'} {name}"}
            mean_line(each, chosen[chosen["layers"] == name], "pruned", "heads", **style)
        each.set_ylabel(f"heads left, of {int(chosen['of'].max())}")
        _from_zero(each, float(models["pruned"].max()), float(chosen["of"].max()))
        each.legend(loc="lower left", labelspacing=0.25)
    for each in axes[1]:
        each.set_xlabel("heads pruned, all kinds of attention")
    return figure
