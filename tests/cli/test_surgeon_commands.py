"""`surgeon`, and the stages that let its heads make up for others, by their numbers, against plain least squares."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heads.__main__ import main
from heads.base.files import read_tsv, write_json, write_lines, write_tsv
from heads.base.names import ATTENTIONS
from heads.model.checkpoint import load_tensors, save_tensors
from heads.model.folder import load_folder
from heads.model.head_removal import module_name, open_without, prune
from heads.model.shape import Head, Place, full_heads
from heads.model.transformer import Transformer
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Vocabulary
from heads.translation.beam_search import greedy
from known_experiment import Known, Pair, command, divergence, save, settings, shape
from shape_facts import facts_with_shape

PLACES = [(kind, layer) for kind in ATTENTIONS for layer in (0, 1)]


def scattered() -> Transformer:
    """A model of random weights, so large that heads matter."""
    torch.manual_seed(11)
    model = Transformer(shape()).eval()
    with torch.no_grad():
        for name, value in model.named_parameters():
            if "norm" not in name:
                value.copy_(torch.randn(value.shape) * value.shape[-1] ** -0.5)
            if name.endswith("attention.output.weight"):
                value.mul_(3)
    return model


def surgeon(known: Known, model: Path, out: Path, **read: int) -> None:
    """Let the surgeon read the experiment's text, and write both files."""
    told = settings(out / "s.yaml", surgeon=read)
    sides = {f"{prefix}{side}": known.tokens(split, side)
             for prefix, split in (("train_", "train"), ("", "dev")) for side in ("source", "target")}  # fmt: skip
    files = {"out": out / "surgeon.tsv", "grams": out / "grams.safetensors"}
    command("surgeon", settings=told, model=model, device="cpu", **sides, **files)


@pytest.fixture(scope="module")
def operated(known: Known, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of that model with what the surgeon found."""
    folder = save(scattered(), tmp_path_factory.mktemp("operated") / "results/mine/baseline/seed-1")
    surgeon(known, folder, folder)
    return folder


def inputs_of(model: Transformer, pairs: Collection[Pair]) -> dict[Place, NDArray[np.float64]]:
    """What the output map of each attention is given [N, C], one pair at a time."""
    found: dict[Place, list[NDArray[np.float64]]] = defaultdict(list)
    handles = [
        model.get_submodule(f"{module_name(*place)}.output").register_forward_pre_hook(
            lambda _, given, place=place: found[place].append(given[0][0].detach().double().numpy())
        )
        for place in PLACES
    ]
    for source, target in pairs:
        read = torch.tensor([[*source, EOS]])
        model(read, torch.ones_like(read, dtype=torch.bool), torch.tensor([[BOS, *target]]))
    for handle in handles:
        handle.remove()
    return {place: np.concatenate(rows) for place, rows in found.items()}


@cache
def read_in_training(known: Known) -> dict[Place, NDArray[np.float64]]:
    """What each output map of that model is given for the training pairs; only to be read."""
    return inputs_of(scattered(), known.pairs("train"))


@torch.no_grad()
def made_up(known: Known, kept: Mapping[Place, Collection[int]]) -> Transformer:
    """The model in which the heads kept in some layers come as close to all as they can, and others give nothing."""
    model, read = scattered(), read_in_training(known)
    for place, heads in kept.items():
        columns = [head * 8 + i for head in sorted(heads) for i in range(8)]
        output = model.get_submodule(f"{module_name(*place)}.output").get_parameter("weight")
        wanted = read[place] @ output.double().numpy().T
        output.zero_()
        fitted = np.linalg.lstsq(read[place][:, columns], wanted, rcond=None)[0]
        output[:, columns] = torch.from_numpy(fitted.T).float()
    return model


def test_a_row_has_how_far_answers_move_without_its_head_and_all_that_go_before_it_while_the_others_make_up_for_them(
    known: Known, operated: Path
) -> None:
    rows = read_tsv(operated / "surgeon.tsv")
    assert [tuple(row) for row in rows] == [("attention", "layer", "head", "last", "divergence")] * 18
    assert [(row["attention"], int(row["layer"]), int(row["head"])) for row in rows] == [*scattered().shape.heads()]
    moved = []
    for kind, layer in PLACES:
        mine = [row for row in rows if (row["attention"], row["layer"]) == (kind, str(layer))]
        assert sorted(row["last"] for row in mine) == ["1", "2", "3"]
        for row in mine:
            kept = [int(other["head"]) for other in mine if int(other["last"]) < int(row["last"])]
            moved.append(divergence(scattered(), made_up(known, {(kind, layer): kept}), known.pairs("dev")))
            assert float(row["divergence"]) == pytest.approx(moved[-1], abs=2e-4)
    assert 0 < min(moved) < 0.02 < 0.1 < max(moved)


def test_training_pairs_are_drawn_until_they_have_enough_subwords_and_answers_are_of_the_first_dev_pairs(
    known: Known, operated: Path, tmp_path: Path
) -> None:
    def run(**read: int) -> tuple[float, list[dict[str, str]]]:
        surgeon(known, operated, tmp_path, **read)
        grams = load_tensors(tmp_path / "grams.safetensors")[0]
        return float(grams["enc_self.0"].trace()), read_tsv(tmp_path / "surgeon.tsv")

    (few, _), (more, _), (every, whole) = run(subwords=30), run(subwords=60), run()
    assert 0 < few < more < every / 2
    drawn, pairs = np.random.default_rng(1).permutation(40), known.pairs("train")
    lengths = np.cumsum([len(pairs[number][0]) for number in drawn])
    read = inputs_of(scattered(), [pairs[number] for number in drawn[: 1 + int((lengths < 30).sum())]])
    assert few == pytest.approx(float((read["enc_self", 0] ** 2).sum()), rel=1e-5)
    (again, of_first) = run(sentences=3)
    assert again == every
    row, first = of_first[0], known.pairs("dev")[:3]
    assert row != whole[0]
    kept = [int(r["head"]) for r in of_first[:3] if int(r["last"]) < int(row["last"])]
    moved = divergence(scattered(), made_up(known, {("enc_self", 0): kept}), first)
    assert float(row["divergence"]) == pytest.approx(moved, abs=2e-4)


LIVE = {"enc_self": [[0, 1], [0, 2], []], "dec_self": [[1], [], [0]], "dec_enc": [[0, 1], [1], [2]]}
HEADS = [(kind, layer, head) for kind, layers in LIVE.items() for layer, heads in enumerate(layers) for head in heads]


def test_as_many_heads_stay_in_each_layer_as_lose_least_of_all_ways_to_have_that_number(tmp_path: Path) -> None:
    drawn, sizes = (
        np.random.default_rng(4),
        {(k, n): len(h) for k, layers in LIVE.items() for n, h in enumerate(layers)},
    )
    ladders = {place: [*drawn.normal(1, 1, size).round(3).tolist(), 0.0] for place, size in sizes.items() if size}
    last = {head: 1 + LIVE[head[0]][head[1]][::-1].index(head[2]) for head in HEADS}
    rows = [
        dict(zip(("attention", "layer", "head", "last", "divergence"),
                 (*head, last[head], ladders[head[:2]][last[head] - 1]), strict=True))
        for head in HEADS
    ]  # fmt: skip
    write_json(tmp_path / "model.json", {"shape": facts_with_shape(LIVE, width=12, head_width=3)})
    write_tsv(tmp_path / "surgeon.tsv", rows, tuple(rows[0]))
    told = settings(tmp_path / "s.yaml")
    targets = [f"surgeon-{number}" for number in range(11)]
    command("selection", settings=told, baseline=tmp_path, targets=targets, out=tmp_path / "selection.tsv")
    chosen = read_tsv(tmp_path / "selection.tsv")
    every = [
        dict(zip(ladders, numbers, strict=True)) for numbers in product(*(range(len(x)) for x in ladders.values()))
    ]
    for number, target in enumerate(targets):
        mine = [row for row in chosen if f"{row['method']}-{row['budget']}" == target]
        assert [(row["attention"], int(row["layer"]), int(row["head"])) for row in mine] == HEADS
        best = min(
            (numbers for numbers in every if sum(numbers.values()) == number),
            key=lambda numbers: sum(ladders[place][n] for place, n in numbers.items()),
        )
        assert [row["open"] == "1" for row in mine] == [last[head] <= best[head[:2]] for head in HEADS]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"divergence": "nan"}, "surgeon.tsv is damaged: delete it"),
        ({"last": "x"}, "surgeon.tsv is damaged: delete it"),
        ({"last": "3"}, "surgeon.tsv is of a model with other heads: delete it"),
        ({"head": "7"}, "surgeon.tsv is of a model with other heads: delete it"),
    ],
)
def test_a_table_that_is_not_the_surgeons_is_refused_in_one_sentence(
    operated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: dict[str, str], said: str
) -> None:
    rows = read_tsv(operated / "surgeon.tsv")
    number = next(n for n, row in enumerate(rows) if row["last"] == "1")
    rows[number] |= change
    write_tsv(tmp_path / "surgeon.tsv", rows, tuple(rows[0]))
    (tmp_path / "model.json").write_bytes((operated / "model.json").read_bytes())
    told = ["--settings", settings(tmp_path / "s.yaml"), "--baseline", tmp_path, "--targets", "surgeon-9"]
    assert main(["selection", *map(str, told), "--out", str(tmp_path / "selection.tsv")]) == 1
    assert said in capsys.readouterr().err and not (tmp_path / "selection.tsv").exists()


def selected(known: Known, operated: Path, heads: Path, out: Path, *grams: Path) -> int:
    """Prune and train for updates that change nothing."""
    told = ["--settings", settings(out / "s.yaml"), "--data", known.bpe, "--references", known.text("dev", "target")]
    told += ["--seed", 1, "--start-model", operated, "--heads", heads, "--model", out / "run"]
    told += ["--history", out / "run/train.jsonl", "--device", "cpu", *(["--grams", *grams] if grams else [])]
    return main(["selected", *map(str, told)])


KEPT: dict[Place, list[int]] = {("enc_self", 0): [0, 2], ("enc_self", 1): [1], ("dec_self", 1): [], ("dec_enc", 0): [2]}


def closed() -> set[Head]:
    """The heads that KEPT leaves out."""
    return {(*place, head) for place, heads in KEPT.items() for head in range(3) if head not in heads}


def test_where_the_surgeon_chose_masked_models_have_heads_that_make_up_for_others_and_only_there(
    known: Known, operated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, found = made_up(known, KEPT), []
    for ids in known.ids("test", "source"):
        read = torch.tensor([[*ids, EOS]])
        found += greedy(model, read, torch.ones_like(read, dtype=torch.bool))
    write_lines(tmp_path / "references", Vocabulary(known.bpe / "target.model").decode(found))
    rows = [
        dict(zip(("method", "budget", "attention", "layer", "head", "open"),
                 (method, 11, *head, int(head not in closed())), strict=True))
        for method in ("lrp", "surgeon") for head in model.shape.heads()
    ]  # fmt: skip
    write_tsv(tmp_path / "selection.tsv", rows, tuple(rows[0]))
    told = settings(tmp_path / "s.yaml", translate={"beam": 1, "length_penalty": 0.0}, selection={"resamples": 199})
    given: dict[str, object] = {
        "settings": told, "model": operated, "source": known.tokens("test", "source"), "device": "cpu",
        "references": tmp_path / "references", "target-bpe": known.bpe / "target.model",
        "selection": tmp_path / "selection.tsv", "out": tmp_path / "masked.tsv",
    }  # fmt: skip
    words = [word for flag, value in given.items() for word in (f"--{flag}", str(value))]
    assert main(["masked", *words]) == 1
    assert "The surgeon chose some of these heads: give --grams" in capsys.readouterr().err
    command("masked", **{flag.replace("-", "_"): value for flag, value in given.items()},
            grams=operated / "grams.safetensors")  # fmt: skip
    by_lrp, by_surgeon = (float(row["bleu"]) for row in read_tsv(tmp_path / "masked.tsv"))
    assert by_lrp < 60 and by_surgeon > by_lrp + 20


def test_chosen_heads_are_trained_from_where_they_make_up_for_the_others(
    known: Known, operated: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shape, heads = scattered().shape, tmp_path / "heads.tsv"
    table = [
        dict(zip(("attention", "layer", "head", "open"), (*head, int(head not in closed())), strict=True))
        for head in shape.heads()
    ]
    write_tsv(heads, table, tuple(table[0]))
    assert selected(known, operated, heads, tmp_path, operated / "grams.safetensors") == 0
    expected = prune(made_up(known, KEPT), open_without(shape, closed())).state_dict()
    found = load_folder(tmp_path / "run").state_dict()
    assert found.keys() == expected.keys()
    for name, value in found.items():
        torch.testing.assert_close(value, expected[name], rtol=1e-2, atol=2e-3)
    assert selected(known, operated, heads, tmp_path / "plain") == 0
    plain = load_folder(tmp_path / "plain/run").state_dict()
    output = f"{module_name('enc_self', 0)}.output.weight"
    assert torch.equal(plain[output], prune(scattered(), open_without(shape, closed())).state_dict()[output])
    assert (plain[output] - found[output]).abs().max() > 0.05
    others = {place: torch.eye(16) for place in ("enc_self.0", "enc_self.1")}
    save_tensors(tmp_path / "others.safetensors", others, {})
    for wrong in (tmp_path / "others.safetensors", operated / "model.safetensors"):
        assert selected(known, operated, heads, tmp_path / "no", wrong) == 1
        assert f"{wrong.name} is of a model with other heads: delete it" in capsys.readouterr().err
    assert full_heads(layers=2, heads=3) == shape.live_heads
