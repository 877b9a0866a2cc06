"""`bpe`, `encode`, `confidence`, `importance` and `maps` by their values: which and how many sentences they read."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from few_heads import FIRST_WORD, KNOWN
from heads.__main__ import main
from heads.analysis.attention_maps import encoder_on_words
from heads.base.files import read_json, read_tsv, write_lines
from heads.model.head_removal import prune
from heads.model.shape import Head
from heads.model.transformer import Transformer
from heads.syntax.conllu import Sentence, place, write_conllu
from heads.text.special_ids import BOS, EOS
from heads.text.vocabulary import Tokens, Vocabulary
from known_experiment import EVERY_KIND, LETTERS, SETTINGS, SUBWORDS, Known, command, known_model, save, settings


def measured(known: Known, name: str, out: Path, model: Path | None = None, **changes: Any) -> list[dict[str, str]]:
    """The rows that a command writes for dev."""
    run = model or known.baseline
    command(name, settings=settings(out / "s.yaml", **changes), model=run,
            source=known.tokens("dev", "source"), target=known.tokens("dev", "target"),
            out=out / "out.tsv", device="cpu")  # fmt: skip
    return read_tsv(out / "out.tsv")


def by_head(rows: list[dict[str, str]], column: str) -> dict[Head, float]:
    return {(row["attention"], int(row["layer"]), int(row["head"])): float(row[column]) for row in rows}


@pytest.mark.parametrize("sentences", [0, 4])
def test_known_heads_are_sure_and_others_are_not_over_as_many_dev_sentences_as_the_settings_say(
    known: Known, tmp_path: Path, sentences: int
) -> None:
    """A known head looks at one position; if that is EOS or does not exist, its confidence does not count it."""
    rows = measured(known, "confidence", tmp_path, confidence={"sentences": sentences})
    read = known.pairs("dev")[: sentences or 10]
    words, answers = (sum(len(pair[side]) for pair in read) for side in (0, 1))
    assert {row["attention"]: row["tokens"] for row in rows} == {
        "enc_self": str(words), "dec_self": str(answers), "dec_enc": str(answers)}  # fmt: skip
    found = by_head(rows, "confidence")
    assert tuple(found) == known_model().shape.heads()
    # The next position is a real word for all steps before the last source word's; the same position, for one more.
    ahead, here = (sum(min(len(answer), len(source) - gap) for source, answer in read) for gap in (1, 0))
    assert found["dec_enc", 1, 1] == pytest.approx(here / answers, abs=0.06)
    assert found["dec_enc", 0, 0] == pytest.approx(ahead / answers, abs=0.06)
    assert all(value < 0.75 for head, value in found.items() if head not in KNOWN)
    # A head with uniform attention gives each word and EOS an equal share.
    alike = sum(len(source) / (len(source) + 1) for source, _ in read) / words
    assert found["enc_self", 1, 1] == pytest.approx(alike, abs=0.03)


def slopes(model: Transformer, source: list[int], target: list[int], smoothing: float) -> dict[Head, float]:
    """dL/dgate of every head at gate = 1 for a single sentence, by autograd through the model's gates."""
    live = model.shape.live_heads
    gates = {kind: [torch.ones(len(heads), requires_grad=True) for heads in layers] for kind, layers in live.items()}
    read, start = torch.tensor([[*source, EOS]]), torch.tensor([[BOS, *target]])
    logits = model.projection(model(read, torch.ones_like(read, dtype=torch.bool), start, gates))
    F.cross_entropy(logits[0], torch.tensor([*target, EOS]), label_smoothing=smoothing, reduction="sum").backward()
    return {
        (kind, layer, head): float(gate.grad[i]) if gate.grad is not None else 0.0
        for kind, layers in gates.items() for layer, gate in enumerate(layers)
        for i, head in enumerate(live[kind][layer])
    }  # fmt: skip


@pytest.mark.parametrize(("sentences", "smoothing"), [(0, 0.1), (3, 0.3)])
def test_importance_is_of_as_many_dev_sentences_and_of_the_loss_that_the_settings_say(
    known: Known, tmp_path: Path, sentences: int, smoothing: float
) -> None:
    rows = measured(known, "importance", tmp_path, importance={"sentences": sentences},
                    training={"label_smoothing": smoothing})  # fmt: skip
    read = known.pairs("dev")[: sentences or 10]
    found = [slopes(known_model(), *pair, smoothing) for pair in read]
    mean = {head: sum(each[head] for each in found) / len(read) for head in found[0]}
    absolute = {head: sum(abs(each[head]) for each in found) / len(read) for head in found[0]}
    for form, right in (("signed", mean), ("example", absolute)):
        mine = by_head([row for row in rows if row["form"] == form], "importance")
        assert mine == pytest.approx(right, rel=2e-3, abs=1e-5)
        shares = by_head([row for row in rows if row["form"] == form], "importance_normalised")
        for head, value in shares.items():
            norm = sum(right[other] ** 2 for other in right if other[:2] == head[:2]) ** 0.5
            assert value == pytest.approx(right[head] / norm, rel=5e-3, abs=1e-4)
    assert set(sorted(mine, key=mine.__getitem__)[-len(KNOWN) :]) == set(KNOWN)


def test_a_model_without_any_head_has_no_row_in_either(known: Known, tmp_path: Path) -> None:
    run = save(prune(known_model(), EVERY_KIND), tmp_path / "run")
    for name in ("confidence", "importance"):
        assert measured(known, name, tmp_path, run) == []


def aligned(
    known: Known, out: Path, links: list[str], model: Path | None = None, **changes: Any
) -> list[dict[str, str]]:
    """The rows that `alignment_heads` writes for dev, with words split at blanks."""
    write_lines(out / "links", links)
    texts = {f"{side}{end}": known.text("dev", side) for side in LETTERS for end in ("", "_words")}
    bpe = {f"{side}_bpe": known.bpe / f"{side}.model" for side in LETTERS}
    command("alignment_heads", settings=settings(out / "s.yaml", alignment_heads=changes), **bpe, **texts,
            model=model or known.baseline, links=out / "links", out=out / "out.tsv", device="cpu")  # fmt: skip
    return read_tsv(out / "out.tsv")


def looked(known: Known, out: Path, **links: Path) -> dict[tuple[str, str, str], dict[str, str]]:
    """The rows that `cross_attention_roles` writes for dev, by layer, head and role."""
    texts = {side: known.text("dev", side) for side in LETTERS}
    words = {f"{side}_words": path for side, path in texts.items()} if links else {}
    bpe = {f"{side}_bpe": known.bpe / f"{side}.model" for side in LETTERS}
    command("cross_attention_roles", settings=settings(out / "s.yaml", alignment_heads={}), **texts, **words, **links,
            **bpe, model=known.baseline, out=out / "out.tsv", device="cpu")  # fmt: skip
    return {(row["layer"], row["head"], row["role"]): row for row in read_tsv(out / "out.tsv")}


def test_known_heads_look_at_the_source_of_the_word_being_written_and_of_the_next(known: Known, tmp_path: Path) -> None:
    """Each word is linked with the one at its own position, where the known head of the second layer looks."""
    pairs = known.pairs("dev")
    write_lines(tmp_path / "links", [" ".join(f"{i}-{i}" for i in range(min(map(len, pair)))) for pair in pairs])
    rows = looked(known, tmp_path, links=tmp_path / "links")
    assert {place for place, row in rows.items() if row["share"] == "1"} == {
        ("1", "1", "being written"), ("0", "0", "written next"),
    }  # fmt: skip
    assert rows["1", "1", "being written"]["cases"] == str(sum(min(map(len, pair)) for pair in pairs))
    assert {row["linked_by"] for row in rows.values()} == {"given"}


def test_without_links_heads_are_held_against_the_best_aligner_among_them(known: Known, tmp_path: Path) -> None:
    rows = looked(known, tmp_path)
    assert len(rows) == 18
    assert all(row["linked_by"][:3] != f"{row['layer']}.{row['head']}" and row["information"] for row in rows.values())
    assert len({row["linked_by"] for row in rows.values()}) == 2


def test_links_count_words_so_that_both_texts_in_words_have_to_be_given(
    known: Known, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {f"--{side}": known.text("dev", side) for side in LETTERS}
    told |= {f"--{side}-bpe": known.bpe / f"{side}.model" for side in LETTERS}
    told |= {"--settings": settings(tmp_path / "s.yaml", alignment_heads={}), "--model": known.baseline}
    told |= {"--links": tmp_path / "links", "--source-words": told["--source"], "--out": tmp_path / "out.tsv"}
    assert main(["cross_attention_roles", *(str(word) for flag in told.items() for word in flag)]) == 1
    said = "links counts words: give both texts with spaces between them as --source-words and --target-words.\n"
    assert capsys.readouterr().err == f"error: {tmp_path}/{said}"


@pytest.mark.parametrize("sentences", [0, 4])
def test_known_heads_align_words_with_the_places_that_they_look_at_over_as_many_pairs_as_the_settings_say(
    known: Known, tmp_path: Path, sentences: int
) -> None:
    """Each word is linked with the one at its own position, if there is one; the second known head finds these."""
    pairs = known.pairs("dev")
    links = [" ".join(f"{i}-{i}" for i in range(min(map(len, pair)))) for pair in pairs]
    rows = aligned(known, tmp_path, links, sentences=sentences)
    read = pairs[: sentences or 10]
    both, answers = sum(min(map(len, pair)) for pair in read), sum(len(answer) for _, answer in read)
    assert {(row["links"], row["target_words"], row["pairs"]) for row in rows} == {
        (str(both), str(answers), str(len(read)))}  # fmt: skip
    assert [row["step"] for row in rows] == ["output"] * 6 + ["input"] * 6
    found = {(row["step"], int(row["layer"]), int(row["head"])): row for row in rows}
    right = found["output", 1, 1]
    assert float(right["recall"]) == 1.0 and (right["offset"], float(right["offset_aer"])) == ("0", 0.0)
    # The other known head looks one position ahead, and so does the right one from the step that reads a word.
    assert float(found["output", 0, 0]["recall"]) < 0.4 > float(found["input", 1, 1]["recall"])
    assert {row["aligns"] for row in rows} == {"0"}


def test_a_known_head_aligns_where_no_fixed_offset_does_and_live_heads_alone_have_rows(
    known: Known, tmp_path: Path
) -> None:
    """In one half of the pairs, words are linked at their own position, and in the other half at the next."""
    keep = {kind: [[head in ((0, 0), (1, 1)) for head in ((layer, n) for n in range(3))] for layer in range(2)]
            for kind in EVERY_KIND}  # fmt: skip
    run = save(prune(known_model(), keep), tmp_path / "run")
    pairs = known.pairs("dev")
    ahead = [" ".join(f"{j + 1}-{j}" for j in range(min(len(s) - 1, len(t)))) for s, t in pairs]
    rows = aligned(known, tmp_path, ahead, run, steps=["output"])
    assert [(row["layer"], row["head"], row["offset"]) for row in rows] == [("0", "0", "1"), ("1", "1", "1")]
    assert float(rows[0]["recall"]) == 1.0 and float(rows[1]["recall"]) == 0.0


def tree(words: list[str]) -> Sentence:
    """A tree in which each word depends on the one before it."""
    return place([(word, word, "X", i, "root" if not i else "dep", True) for i, word in enumerate(words)])


def test_maps_are_of_the_first_sentences_of_fitting_length_and_show_where_the_known_head_looks(
    known: Known, tmp_path: Path
) -> None:
    lines = [[LETTERS["source"][subword - FIRST_WORD] for subword in ids] for ids in known.ids("test", "source")]
    write_conllu(tmp_path / "trees", [tree(words) for words in lines])
    run = known.baseline
    command("maps", settings=settings(tmp_path / "s.yaml"), model=run,
            source_bpe=known.bpe / "source.model", target_bpe=known.bpe / "target.model",
            sentences=tmp_path / "trees", out=tmp_path / "maps.json", device="cpu")  # fmt: skip
    maps = read_json(tmp_path / "maps.json")
    fitting = [words for words in lines if 5 <= len(words) <= 6]
    assert [each["words"] for each in maps] == fitting[:2]
    assert len(fitting) > 2 and lines[:2] != fitting[:2]
    for each in maps:
        count = len(each["words"])
        assert each["tree_heads"] == list(range(count)) and each["relations"] == ["root"] + ["dep"] * (count - 1)
        weights = encoder_on_words(each).reshape(2, 3, count, count)
        # The known head of the first layer looks one word back; the first word has no word before it.
        looks = weights[KNOWN[0][1], KNOWN[0][2]]
        assert (looks[1:].argmax(1) == np.arange(count - 1)).all() and (looks[1:].max(1) > 0.95).all()
        assert weights[1].max() < 0.5


def test_each_side_learns_its_own_number_of_subwords_from_its_own_text(known: Known, tmp_path: Path) -> None:
    sizes = {"source_subwords": SUBWORDS["source"] - 3, "target_subwords": SUBWORDS["target"] - 5}
    told = settings(tmp_path / "s.yaml", bpe=sizes)
    for side in ("source", "target"):
        command("bpe", settings=told, side=side, text=known.text("train", side), model=tmp_path / side)
        vocabulary = Vocabulary(tmp_path / side)
        assert len(vocabulary) == sizes[f"{side}_subwords"]
        assert {vocabulary.subword(i) for i in range(len(vocabulary))} >= {*LETTERS[side], "▁"}


def test_words_are_counted_in_as_many_sentences_as_the_settings_say(tmp_path: Path) -> None:
    """Every line has a character of its own, so the vocabulary has as many as sentences were read."""
    own = [chr(0x4E00 + number) for number in range(150)]
    write_lines(tmp_path / "text", own)
    told = settings(tmp_path / "s.yaml", bpe={"train_sentences": 101, "source_subwords": 106})
    command("bpe", settings=told, side="source", text=tmp_path / "text", model=tmp_path / "m")
    vocabulary = Vocabulary(tmp_path / "m")
    assert len({vocabulary.subword(i) for i in range(len(vocabulary))} & {*own}) == 101


def test_a_text_is_encoded_line_by_line_with_the_vocabulary_that_is_given(known: Known, tmp_path: Path) -> None:
    for side in ("source", "target"):
        command("encode", text=known.text("test", side), bpe=known.bpe / f"{side}.model", tokens=tmp_path / side)
        tokens = Tokens(tmp_path / side)
        assert [tokens[i].tolist() for i in range(len(tokens.lengths))] == known.ids("test", side)


def test_every_setting_of_the_known_experiment_is_another_number() -> None:
    """Otherwise a command that reads another one's section would go unnoticed."""
    updates = [SETTINGS[name]["updates"] for name in ("baseline", "gates", "scratch")]
    batches = [SETTINGS[name]["batch_tokens"] for name in ("translate", "confidence", "importance", "training")]
    assert len(set(updates)) == 3 and len(set(batches)) == 4
