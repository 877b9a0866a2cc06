"""LRP rules for single operations against explicit matrices and loops, and the table of relevances."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file
from test_lrp_model import PLAIN, RULES, LiveHeads, random_batch, random_model
from torch import Tensor, nn

import heads.analysis.lrp.rows
from heads.analysis.lrp.rows import Sums, add, conservation_rows, generated, relevance_rows, rule_of, shares
from heads.analysis.lrp.rules import Account, Attended, Back, stabilised
from heads.analysis.lrp.steps import HeadRelevance, head_relevance
from heads.base.files import UserError, read_tsv, read_yaml, write_text
from heads.base.names import ATTENTIONS
from heads.cli import lrp as command
from heads.cli._flags import Measure
from heads.config.analyses import LRP_RULES, LrpSettings
from heads.model.folder import save_folder
from heads.model.transformer import Transformer
from heads.tables.labels import SHARES
from heads.text.batches import Batch
from lrp_twin import Matrices

SETTINGS = LrpSettings(sentences=0, batch_tokens=100, stabiliser=1e-12, rules=("plain",))
NAMES = ["plain", "z-plus", "alpha-beta", "attnlrp"]


def randn(*shape: int, seed: int = 1) -> Tensor:
    """Normally distributed float64 numbers from a fixed seed."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def values(rows: Sequence[Mapping[str, object]], column: str) -> list[float]:
    """A column as numbers."""
    return [float(str(row[column])) for row in rows]


def assert_shares_out(
    twin: Matrices, back: Back, inputs: Tensor, outputs: Tensor, matrices: Tensor, bias: Tensor, steps: int = 4
) -> None:
    """Check that `back` agrees with the matrix [B, Q, V, U] of each position over several steps and loses nothing."""
    multiplier = randn(len(inputs), steps, *outputs.shape[1:], seed=9)
    account = Account(torch.zeros(multiplier.shape[:3], dtype=torch.float64))
    received = inputs[:, None] * back(multiplier, account)
    relevance = multiplier * outputs[:, None]
    contributions = (matrices * inputs[:, :, None])[:, None].expand(-1, steps, -1, -1, -1)
    expected = twin.share(contributions, bias, relevance)
    torch.testing.assert_close(received, expected)
    torch.testing.assert_close(received.sum(-1) + account.absorbed, relevance.sum(-1))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bias", ["with a bias", ""])
@pytest.mark.parametrize("relu", ["before a ReLU", ""])
@torch.no_grad()
def test_a_linear_layer_shares_relevance_as_its_matrix_says(name: str, bias: str, relu: str) -> None:
    """A ReLU after it passes relevance on unchanged."""
    layer, inputs = nn.Linear(6, 7, bias=bool(bias)).double(), randn(2, 3, 6)
    # One output that nothing raised, one that nothing lowered.
    layer.weight[:2] = torch.stack([-inputs[0, 0], inputs[0, 0]])
    outputs, offset = layer(inputs), layer.bias if bias else torch.zeros(7, dtype=torch.float64)
    outputs = outputs.relu() if relu else outputs
    back = rule_of(name, 1e-13).linear(layer.weight, layer.bias, inputs, outputs)
    assert_shares_out(RULES[name], back, inputs, outputs, layer.weight.expand(2, 3, 7, 6), offset)


@pytest.mark.parametrize("name", NAMES)
def test_a_layer_norm_shares_as_its_jacobian_at_a_fixed_standard_deviation(name: str) -> None:
    norm, inputs = nn.LayerNorm(6).double(), randn(2, 3, 6) + 0.5
    nn.init.normal_(norm.weight, 0, 1, generator=torch.Generator().manual_seed(2))
    nn.init.normal_(norm.bias, 0, 0.1, generator=torch.Generator().manual_seed(3))
    deviation = (inputs.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()

    def linearised(row: Tensor, fixed: Tensor) -> Tensor:
        return (row - row.mean()) / fixed * norm.weight

    jacobian = torch.func.vmap(torch.func.vmap(torch.func.jacrev(linearised)))(inputs, deviation)
    with torch.no_grad():
        back = rule_of(name, 1e-13).norm(norm, inputs)
        assert_shares_out(RULES[name], back, inputs, norm(inputs), jacobian.detach(), norm.bias)


@pytest.mark.parametrize("name", RULES)
@torch.no_grad()
def test_an_attention_shares_as_its_jacobian_or_its_propositions_say(name: str) -> None:
    queries, keys, values = randn(2, 3, 4, 2), randn(2, 3, 5, 2, seed=2), randn(2, 3, 5, 2, seed=3)
    weights = (queries @ keys.transpose(-1, -2) / 2**0.5).softmax(-1)
    seen = Attended(queries, keys, values, weights, weights @ values, own=False)
    multiplier = randn(2, 6, 4, 3, 2, seed=4)
    found = rule_of(name, 1e-13).attention(seen)(multiplier, Account(torch.zeros(2, 6, dtype=torch.float64)))
    for b, g, h in np.ndindex(2, 6, 3):
        relevance = multiplier[b, g, :, h] * seen.outputs[b, h]
        parts = (queries[b, h], keys[b, h], values[b, h])
        expected = RULES[name].attention(*parts, torch.zeros(4, 5, dtype=torch.float64), relevance)
        for part, met, amount in zip(parts, (found.queries, found.keys, found.values), expected, strict=True):
            amounts = torch.zeros_like(part) if met is None else part * met[b, g, :, h]
            torch.testing.assert_close(amounts, amount)


@pytest.mark.parametrize("name", NAMES)
@torch.no_grad()
def test_what_nothing_contributed_to_is_absorbed_and_not_lost(name: str) -> None:
    layer, inputs = nn.Linear(2, 3).double(), torch.zeros(1, 1, 2, dtype=torch.float64)
    account = Account(torch.zeros(1, 1, 1, dtype=torch.float64))
    multiplier = randn(1, 1, 1, 3)
    outputs = layer(inputs)
    back = rule_of(name, 1e-13).linear(layer.weight, layer.bias, inputs, outputs)
    received = inputs[:, None] * back(multiplier, account)
    assert not received.any()
    torch.testing.assert_close(account.absorbed, (multiplier * outputs).sum(-1))


@pytest.mark.parametrize(("least", "lowered"), [(1e-16, 0.0), (1e-11, 0.5)])
@pytest.mark.parametrize("name", ["z-plus", "alpha-beta"])
def test_what_a_recurrent_unit_nearly_forgot_keeps_no_relevance_back(name: str, least: float, lowered: float) -> None:
    """The older of two candidates is negative and has almost no weight; below the stabiliser it gets no relevance."""
    values = torch.tensor([-1.0, 2.0], dtype=torch.float64)[None, None, :, None]
    weights = torch.tensor([[1.0, 0.0], [least, 0.7]], dtype=torch.float64)[None, None]
    outputs = weights @ values
    back = rule_of(name, 1e-12).weighting(Attended(values, values, values, weights, outputs, own=True))
    multiplier, account = torch.ones(1, 1, 2, 1, 1, dtype=torch.float64), Account(torch.zeros(1, 1))
    multiplier[:, :, 0] = 0.0
    received = back(multiplier, account).values.flatten() * values.flatten() / outputs[0, 0, 1, 0]
    share = lowered if name == "alpha-beta" else 0.0
    torch.testing.assert_close(received, torch.tensor([share, 1 - share], dtype=torch.float64), rtol=1e-10, atol=0.0)


def test_the_stabiliser_moves_a_denominator_away_from_zero_and_upwards_at_zero() -> None:
    denominators = torch.tensor([-2.0, -0.0, 0.0, 3.0], dtype=torch.float64)
    expected = torch.tensor([-2.25, 0.25, 0.25, 3.25], dtype=torch.float64)
    torch.testing.assert_close(stabilised(denominators, 0.25), expected)


def test_shares_sum_to_one_and_a_step_whose_relevance_cancels_is_left_out() -> None:
    relevance = torch.tensor([[3.0, -1.0, 2.0], [1.0, -1.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    signed, absolute, usable = shares(relevance, 1e-9)
    torch.testing.assert_close(signed[0], torch.tensor([0.75, -0.25, 0.5], dtype=torch.float64))
    torch.testing.assert_close(absolute[0], torch.tensor([3.0, 1.0, 2.0], dtype=torch.float64) / 6)
    assert usable.tolist() == [True, False, False]
    assert not signed[1:].any()
    assert not absolute[1:].any()


def test_the_table_averages_shares_over_all_steps_and_names_original_heads() -> None:
    live: LiveHeads = {"enc_self": ((0, 2), ()), "dec_self": ((), (1, 2)), "dec_enc": ((1,), (0, 1, 2))}
    model, batches = random_model(pre_norm=True, live=live), [random_batch([(3, 4), (2, 2)]), random_batch([(5, 1)])]
    rows, conservation = relevance_rows(model.float(), batches, SETTINGS)
    heads = [(row["attention"], row["layer"], row["head"]) for row in rows]
    assert heads == [(kind, i, head) for kind in ATTENTIONS for i, layer in enumerate(live[kind]) for head in layer]
    parts = [head_relevance(model.double(), batch, PLAIN).heads["dec_enc"][1] for batch in batches]
    steps = [step / step.sum() for part in parts for step in part]
    found = [row for row in rows if row["attention"] == "dec_enc" and row["layer"] == 1]
    assert [row["relevance"] for row in found] == pytest.approx((sum(steps) / len(steps)).tolist())
    assert [row["steps"] for row in found] == [5 + 3 + 2] * 3
    assert sum(float(str(row["relevance_absolute"])) for row in found) == pytest.approx(1)
    assert {(row["rule"], row["steps"]) for row in conservation} == {("plain", 10)}
    assert [row["place"] for row in conservation][:2] == ["dec_ffn.1", "dec_enc.1"]


def test_the_three_shares_are_those_of_relevances_made_by_hand_over_the_same_steps(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Two batches; the second step cancels and the last one is not conserved, so neither enters the shares."""
    monkeypatch.setattr(heads.analysis.lrp.rows, "MOST_OFF", 1.0)
    made = [[[3.0, -1.0, 2.0], [1.0, -1.0, 0.0], [10.0, 5.0, 5.0]], [[-6.0, 1.0, 4.0], [90.0, -7.0, 8.0]]]
    kept = [[1.0, 1.0, 1.0], [1.0, 0.5]]

    def walk(_: Transformer, batch: int, __: object) -> HeadRelevance:
        relevance, whole = (torch.tensor(part[batch], dtype=torch.float64) for part in (made, kept))
        found: dict[str, list[Tensor]] = {kind: [relevance[:, :0]] * 2 for kind in ATTENTIONS}
        found["dec_enc"] = [relevance[:, :0], relevance]
        return HeadRelevance(found, torch.ones(len(whole)), {"dec_enc.1": torch.stack([whole, 0 * whole], 1)})

    monkeypatch.setattr(heads.analysis.lrp.rows, "head_relevance", walk)
    live: LiveHeads = {"enc_self": ((), ()), "dec_self": ((), ()), "dec_enc": ((), (0, 1, 2))}
    rows, _ = relevance_rows(random_model(pre_norm=True, live=live), [0, 1], SETTINGS)  # type: ignore[list-item]
    # The steps 3 -1 2, 10 5 5 and -6 1 4 remain, with layer sums 4, 20 and -1, and sums of absolutes 6, 20 and 11.
    assert values(rows, "relevance") == pytest.approx(
        [(3 / 4 + 10 / 20 + 6) / 3, (-1 / 4 + 5 / 20 - 1) / 3, (2 / 4 + 5 / 20 - 4) / 3]
    )
    assert values(rows, "relevance_of_sums") == pytest.approx([7 / 23, 5 / 23, 11 / 23])
    assert values(rows, "relevance_absolute") == pytest.approx(
        [(3 / 6 + 10 / 20 + 6 / 11) / 3, (1 / 6 + 5 / 20 + 1 / 11) / 3, (2 / 6 + 5 / 20 + 4 / 11) / 3]
    )
    assert values(rows, "steps") == [3, 3, 3]


@pytest.mark.parametrize("name", ["z-plus", "voita-2019"])
def test_a_rule_that_makes_all_parts_positive_has_signed_shares_that_are_the_absolute_ones(name: str) -> None:
    positive = SETTINGS.model_copy(update={"rules": (name,)})
    rows, _ = relevance_rows(random_model(pre_norm=True), [random_batch([(3, 4), (2, 2)])], positive)
    assert values(rows, "relevance") == pytest.approx(values(rows, "relevance_absolute"))


def test_a_layer_that_no_relevance_reaches_has_rows_of_zero_and_no_steps() -> None:
    model = random_model(pre_norm=True)
    nn.init.zeros_(model.get_parameter("decoder.0.cross_attention.output.weight"))
    rows, _ = relevance_rows(model, [random_batch([(3, 4)])], SETTINGS)
    rows = [row for row in rows if row["attention"] == "dec_enc" and row["layer"] == 0]
    assert [[row[name] for name in (*SHARES, "steps")] for row in rows] == [[0.0, 0.0, 0.0, 0]] * 3


@pytest.mark.parametrize(
    ("rule", "stabiliser"), [("plain", 0.5), ("plain", float("nan")), ("plain-product", float("nan"))]
)
def test_relevance_that_is_not_conserved_is_an_error(rule: str, stabiliser: float) -> None:
    """A rule that may be off may still not end in something that is no number."""
    coarse = SETTINGS.model_copy(update={"stabiliser": stabiliser, "rules": (rule,)})
    with pytest.raises(UserError, match=f"not conserved under the rule {rule} at"):
        relevance_rows(random_model(pre_norm=True), [random_batch([(3, 4)])], coarse)


@pytest.mark.parametrize(("off", "fine"), [(0, True), (20, True), (21, False)])
def test_one_step_in_ten_may_be_off_and_no_more(*, off: int, fine: bool) -> None:
    place = torch.tensor([200.0, 0.0, off], dtype=torch.float64)
    sums = Sums({}, {"enc_self.1": (place, torch.tensor(0.25 if off else 0.0))}, "shares", steps=200)
    if fine:
        (row,) = conservation_rows("plain", sums)
        assert (row["steps_off"], row["largest_deviation"]) == (off, 0.25 if off else 0.0)
    else:
        with pytest.raises(UserError, match=r"plain at enc_self.1: 21 of 200 steps are off by .* the worst by 0.25"):
            conservation_rows("plain", sums)


@pytest.mark.parametrize("name", ["plain-product", "plain-softmax"])
def test_a_rule_whose_shares_know_no_bound_says_in_the_table_how_many_steps_are_off(name: str) -> None:
    model, batches = random_model(pre_norm=True), [random_batch([(3, 4), (2, 2)]), random_batch([(5, 1)])]
    coarse = SETTINGS.model_copy(update={"stabiliser": 1e-4, "rules": ("attnlrp", name)})
    kept = [row for row in relevance_rows(model, batches, coarse)[1] if row["rule"] == name]
    walks = [head_relevance(model.double(), batch, rule_of(name, 1e-4)) for batch in batches]
    for row in kept:
        deviations = torch.cat([walk.deviations()[str(row["place"])] for walk in walks])
        places = torch.cat([walk.places[str(row["place"])] for walk in walks])
        assert row["conservation"] == "unstable"
        assert row["steps_off"] == int((deviations > 1e-3).sum())
        assert row["largest_deviation"] == pytest.approx(float(deviations.max()))
        assert [row["under_way"], row["absorbed"]] == pytest.approx(places.mean(0).tolist())
    assert {row["steps"] for row in kept} == {10}
    assert any(0 < int(str(row["steps_off"])) < 10 for row in kept)


def test_the_table_says_of_each_rule_why_it_should_conserve() -> None:
    settings = SETTINGS.model_copy(update={"rules": LRP_RULES})
    _, rows = relevance_rows(random_model(pre_norm=True), [random_batch([(3, 2)])], settings)
    found = {str(row["rule"]): row["conservation"] for row in rows}
    others = {"plain-softmax": "unstable", "plain-product": "unstable", "voita-2019": "rescaled"}
    assert [*found.items()] == [(name, others.get(name, "shares")) for name in LRP_RULES]


def test_the_generated_prefix_is_what_the_model_finds_likeliest_at_every_step() -> None:
    model = random_model(pre_norm=True)
    with torch.no_grad():
        model.projection.bias[[0, 1, 3]] = -50.0  # a search never takes these subwords
    given = random_batch([(3, 4), (2, 2)])
    batch = generated(model, given)
    assert torch.equal(batch.source, given.source)
    assert torch.equal(batch.source_mask, given.source_mask)
    chosen = model.projection(model(batch.source, batch.source_mask, batch.target_input)).argmax(-1)
    # The last step may be an EOS that the length limit forced.
    below_limit = torch.arange(chosen.shape[1]) < batch.target_mask.sum(1, keepdim=True) - 1
    checked = batch.target_mask & below_limit
    assert checked.sum() > 2
    assert torch.equal(chosen[checked], batch.target_output[checked])


def run_command(folder: Path, model: Transformer, pairs: Sequence[tuple[Tensor, Tensor]], settings: str) -> None:
    """Run the command on these pairs of ids, without EOS; it writes lrp.tsv and kept.tsv."""
    save_folder(model, folder / "model", {}, {})
    write_text(folder / "lrp.yaml", f"lrp: {settings}\n")
    for side, ids in zip(("source", "target"), zip(*pairs, strict=True), strict=True):
        offsets = np.cumsum([0, *(len(one) for one in ids)])
        save_file({"ids": torch.cat(ids).int().numpy(), "offsets": offsets}, folder / f"{side}.safetensors")
    names = {"model": "model", "out": "lrp.tsv"} | {side: f"{side}.safetensors" for side in ("source", "target")}
    paths: dict[str, Any] = {flag: folder / name for flag, name in names.items()}
    measure = Measure(**paths, settings=read_yaml(folder / "lrp.yaml"), device="cpu")
    command.run(measure, conservation=folder / "kept.tsv")


def random_pairs(lengths: Sequence[tuple[int, int]]) -> list[tuple[Tensor, Tensor]]:
    """Ids of the pairs that `random_batch` makes, without EOS."""
    batch = random_batch(list(lengths))
    return [(batch.source[i, :n], batch.target_output[i, :m]) for i, (n, m) in enumerate(lengths)]


def test_the_command_writes_the_table_of_the_generated_batches_and_tells_what_is_too_long(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = random_model(pre_norm=False).float()
    pairs = [*random_pairs([(3, 4), (2, 2)]), (torch.arange(4, 11), torch.arange(4, 12)), *random_pairs([(5, 1)])]
    settings = "{sentences: 2, batch_tokens: 7, stabiliser: 0.000000001, rules: [attnlrp, plain]}"
    run_command(tmp_path, model, pairs, settings)
    expected, _ = relevance_rows(model, [generated(model, random_batch([(3, 4), (2, 2)]))], SETTINGS)
    assert capsys.readouterr().err == "1 pairs left out: more than 7 subwords (lrp.batch_tokens)\n"
    found = [row for row in read_tsv(tmp_path / "lrp.tsv") if row["rule"] == "plain"]
    kept = read_tsv(tmp_path / "kept.tsv")
    assert {row["rule"] for row in kept} == {"attnlrp", "plain"}
    assert [float(row["under_way"]) + float(row["absorbed"]) for row in kept] == pytest.approx(
        [1.0] * len(kept), rel=1e-4
    )
    assert values(found, "relevance") == pytest.approx(values(expected, "relevance"), rel=1e-4)
    assert [row["steps"] for row in found] == [str(row["steps"]) for row in expected]


def test_the_command_obeys_the_rules_their_order_and_the_stabiliser_and_reads_all_for_zero(tmp_path: Path) -> None:
    model, lengths = random_model(pre_norm=True).float(), [(3, 4), (2, 2), (5, 1)]
    settings = "{sentences: 0, batch_tokens: 100, stabiliser: 0.01, rules: [voita-2019, plain-product]}"
    run_command(tmp_path, model, random_pairs(lengths), settings)
    found = read_tsv(tmp_path / "lrp.tsv")
    own = generated(model, random_batch(lengths))
    chosen = LrpSettings(sentences=0, batch_tokens=100, stabiliser=0.01, rules=("voita-2019", "plain-product"))
    coarse, fine = (
        relevance_rows(model, [own], chosen.model_copy(update={"stabiliser": size}))[0] for size in (0.01, 1e-12)
    )
    assert [row["rule"] for row in found] == ["voita-2019"] * 18 + ["plain-product"] * 18
    assert values(found, "steps") == values(coarse, "steps")
    assert values(found, "relevance_absolute") == pytest.approx(values(coarse, "relevance_absolute"), rel=1e-3)
    assert values(coarse, "relevance_absolute")[18:] != pytest.approx(values(fine, "relevance_absolute")[18:], rel=0.01)


def test_the_command_makes_batches_of_as_many_tokens_as_are_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []

    def noted(model: Transformer, batch: Batch) -> Batch:
        sizes.append(len(batch.source))
        return generated(model, batch)

    monkeypatch.setattr(command, "generated", noted)
    settings = "{sentences: 0, batch_tokens: 8, stabiliser: 0.000000001, rules: [plain]}"
    run_command(tmp_path, random_model(pre_norm=True).float(), random_pairs([(3, 2)] * 6), settings)
    assert sizes == [2, 2, 2]


def test_a_step_whose_heads_cancel_in_one_layer_still_counts_in_the_others() -> None:
    sums = Sums({("enc_self", layer): [*torch.zeros(3, 2), torch.zeros(())] for layer in (0, 1)}, {}, "")
    heads = {"enc_self": [torch.tensor([[1.0, -1.0], [3.0, 1.0]]), torch.tensor([[1.0, 3.0], [2.0, 0.0]])]}
    add(sums, HeadRelevance(heads, torch.ones(2), {}), 1e-9)
    assert sums.steps == 2
    assert [part.tolist() for part in sums.heads["enc_self", 0]] == [[0.75, 0.25], [3.0, 1.0], [0.75, 0.25], 1.0]
    assert [part.tolist() for part in sums.heads["enc_self", 1]] == [[1.25, 0.75], [3.0, 3.0], [1.25, 0.75], 2.0]


@torch.no_grad()
def test_the_released_codes_rule_leaves_norms_without_mean_alone_and_gives_factors_halves() -> None:
    norm, inputs, relevance = nn.RMSNorm(6, eps=0.1).double(), randn(2, 3, 6), randn(2, 4, 3, 6, seed=2)
    rule, account = rule_of("voita-2019", 1e-7), Account(torch.zeros(2, 4, dtype=torch.float64))
    torch.testing.assert_close(rule.rms_norm(norm, inputs)(relevance, account), relevance)
    for half in rule.product(inputs, randn(2, 3, 6, seed=3))(relevance, account):
        torch.testing.assert_close(half, relevance / 2)
