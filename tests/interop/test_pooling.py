"""A sentence encoder makes one vector of its states as its files say: by their mean, the first, or the largest."""

import itertools
import json
import re
import runpy
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from bert_models import ALONE, encoded, save_bert, save_tokeniser, transformers, vectors_of
from heads.__main__ import main
from heads.base.files import UserError, read_json, read_tsv, write_json, write_lines
from heads.interop.bert.reading import read_bert
from heads.interop.bundle import saved_bundle
from heads.interop.downloads import fetched
from heads.interop.export_encoder import export_encoder
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.model.folder import load_encoder_only, save_folder
from heads.model.head_removal import prune
from heads.model.shape import facts_of, shape_of
from marian_models import changed
from slow_ones import slow_but
from small_server import serving_hub

OPEN = {"enc_self": [[True, False], [False, True], [True, True]]}
OFF = dict.fromkeys(("cls_token", "mean_tokens", "max_tokens", "mean_sqrt_len_tokens"), False)
BY_KEYS = {"word_embedding_dimension": 12, **{f"pooling_mode_{way}": on for way, on in OFF.items()}}
TOLD: tuple[tuple[str, dict[str, Any]], ...] = (
    ("cls", {**BY_KEYS, "pooling_mode_cls_token": True}),
    ("max", {**BY_KEYS, "pooling_mode_max_tokens": True}),
    ("mean", {**BY_KEYS, "pooling_mode_mean_tokens": True}),
    ("cls", {"embedding_dimension": 12, "pooling_mode": "cls", "include_prompt": True}),
    ("max", {"embedding_dimension": 12, "pooling_mode": ["max"]}),
    ("mean", BY_KEYS),
)
"""A way of pooling, and how sentence-transformers wrote it down, in old and new files."""


def save_encoder(
    folder: Path, told: dict[str, Any], kinds: Sequence[str] = ("Transformer", "Pooling", "Normalize")
) -> Any:
    """Write a BERT with the files of sentence-transformers, and return its tokeniser and model."""
    tokeniser, model = save_tokeniser(folder), save_bert(folder, "BertModel")
    places = {"Transformer": "", **{kind: f"{number}_{kind}" for number, kind in enumerate(kinds) if number}}
    listed = [
        {"idx": n, "name": str(n), "path": places[kind], "type": f"sentence_transformers.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    write_json(folder / "modules.json", listed)
    for kind in kinds[1:]:
        write_json(folder / places[kind] / "config.json", told if kind == "Pooling" else {})
    return tokeniser, model


@torch.no_grad()
def theirs(model: Any, tokeniser: Any, way: str) -> NDArray[np.float64]:
    """The vector of each sentence, of length 1, from the states of its subwords one by one."""
    found = []
    for line in ALONE:
        states = model(**encoded(tokeniser, (line,))).last_hidden_state[0].double().numpy()
        parts = []
        for column in states.T:
            numbers = [float(number) for number in column]
            parts.append({"cls": numbers[0], "max": max(numbers), "mean": sum(numbers) / len(numbers)}[way])
        found.append(np.array(parts) / sum(number**2 for number in parts) ** 0.5)
    return np.array(found)


@pytest.mark.parametrize(("way", "told"), TOLD)
def test_vectors_are_made_as_the_files_say(tmp_path: Path, way: str, told: dict[str, Any]) -> None:
    tokeniser, model = save_encoder(tmp_path / "theirs", told)
    assert import_any(str(tmp_path / "theirs"), tmp_path / "ours").note == ""
    np.testing.assert_allclose(vectors_of(tmp_path / "ours"), theirs(model, tokeniser, way), rtol=0, atol=1e-6)
    others = [theirs(model, tokeniser, other) for other in ("mean", "cls", "max") if other != way]
    assert min(np.abs(theirs(model, tokeniser, way) - other).max() for other in others) > 0.05
    assert ("pooling" in read_json(tmp_path / "ours/model.json")["shape"]) is (way != "mean")
    kept = tmp_path / "ours/pretrained"
    assert read_json(kept / "1_Pooling/config.json") == told
    assert read_json(kept / "config.json")["model_type"] == "bert"
    assert {"config.json", "1_Pooling/config.json"} <= read_json(kept / "about.json")["files_sha256"].keys()


def test_the_pooling_alone_is_enough_without_a_list_of_parts(tmp_path: Path) -> None:
    tokeniser, model = save_encoder(tmp_path / "theirs", TOLD[0][1])
    (tmp_path / "theirs/modules.json").unlink()
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    np.testing.assert_allclose(vectors_of(tmp_path / "ours"), theirs(model, tokeniser, "cls"), rtol=0, atol=1e-6)


@pytest.mark.filterwarnings("ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("form", slow_but(["huggingface"], ["huggingface", "onnx"]))
@pytest.mark.parametrize("way", ["cls", "max"])
def test_an_export_pools_alike_and_so_does_the_script_in_its_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], form: str, way: str
) -> None:
    save_encoder(tmp_path / "theirs", next(told for one, told in TOLD if one == way))
    import_any(str(tmp_path / "theirs"), folder := tmp_path / "ours")
    facts = facts_of(folder)
    save_folder(prune(load_encoder_only(folder), OPEN), folder, facts, facts["provenance"])
    assert shape_of(folder).pooling == way
    difference = export_encoder(saved_bundle(folder), out := tmp_path / "out", form, examples=ALONE)
    assert difference is not None and difference < 1e-6
    (code,) = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "use.py").write_text(code.replace('["A sentence.", "One that is longer."]', repr(ALONE)))
    monkeypatch.chdir(out)
    used, expected = runpy.run_path(str(tmp_path / "use.py")), vectors_of(folder)
    if form == "onnx":
        found = used["session"].run(None, {"source": used["ids"], "source_mask": used["ids"] > 0})[0]
    else:
        found = used["vectors"].detach().numpy()
        import_any(str(out), tmp_path / "again")
        np.testing.assert_allclose(vectors_of(tmp_path / "again"), expected, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    capsys.readouterr()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("way", ["cls", "max"])
def test_sentence_transformers_reads_an_export(tmp_path: Path, way: str) -> None:
    peer: Any = pytest.importorskip("sentence_transformers", exc_type=ImportError)
    save_encoder(tmp_path / "theirs", next(told for one, told in TOLD if one == way))
    before = peer.SentenceTransformer(str(tmp_path / "theirs"), device="cpu").encode(ALONE) if way == "max" else None
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    export_encoder(saved_bundle(tmp_path / "ours"), tmp_path / "out", "huggingface")
    found = peer.SentenceTransformer(str(tmp_path / "out"), device="cpu").encode(ALONE)
    np.testing.assert_allclose(found, vectors_of(tmp_path / "ours"), rtol=0, atol=1e-6)
    if before is not None:
        np.testing.assert_allclose(before / np.linalg.norm(before, axis=1, keepdims=True), found, rtol=0, atol=1e-6)


def test_a_shape_pools_in_a_known_way_and_only_if_it_embeds(tmp_path: Path) -> None:
    save_encoder(tmp_path / "theirs", TOLD[0][1])
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    import_any(str(tmp_path / "theirs"), tmp_path / "labelled", labels=["a", "b"])
    with pytest.raises(ValueError, match="unknown pooling first"):
        replace(shape_of(tmp_path / "ours"), pooling="first")
    with pytest.raises(ValueError, match="or pooling in a model that embeds no sentences"):
        replace(shape_of(tmp_path / "labelled"), pooling="cls")


WRONG: tuple[tuple[dict[str, Any], str], ...] = (
    (
        {"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": True},
        "pools by cls and mean: only one of mean, cls, max",
    ),
    ({"pooling_mode": ["max", "mean"]}, "pools by max and mean"),
    ({"pooling_mode_mean_sqrt_len_tokens": True}, "pools by mean_sqrt_len_tokens: only one of"),
    ({"pooling_mode_weightedmean_tokens": True}, "pools by weightedmean_tokens: only"),
    ({"pooling_mode_lasttoken": True}, "pools by lasttoken: only"),
    ({"pooling_mode": "lasttoken"}, "pools by lasttoken: only"),
)


@pytest.mark.parametrize(("told", "words"), WRONG)
def test_another_way_of_pooling_is_refused_by_name(tmp_path: Path, told: dict[str, Any], words: str) -> None:
    save_encoder(tmp_path / "theirs", told)
    with pytest.raises(UserError, match=rf"1_Pooling/config\.json {words}"):
        import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    assert not (tmp_path / "ours").exists()
    import_any(str(tmp_path / "theirs"), tmp_path / "ours", labels=["yes", "no"])


@pytest.mark.parametrize(
    ("kinds", "words"),
    [
        (
            ("Transformer", "Pooling", "Dense"),
            "with the part Dense: only Transformer, Pooling, Normalize, in this order",
        ),
        (("Transformer", "Pooling", "Dense", "Normalize"), "with the part Dense"),
        (("Transformer", "Pooling", "Normalize", "LayerNorm"), "with the part LayerNorm"),
        (("Transformer", "WeightedLayerPooling", "Pooling"), "with the part WeightedLayerPooling"),
        (("Transformer",), "with no Pooling"),
    ],
)
def test_another_part_is_refused_by_name(tmp_path: Path, kinds: tuple[str, ...], words: str) -> None:
    save_encoder(tmp_path / "theirs", TOLD[2][1], kinds)
    with pytest.raises(UserError, match=words):
        import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    if len(kinds) > 2:
        (tmp_path / "theirs/modules.json").unlink()
        with pytest.raises(UserError, match=words):
            import_any(str(tmp_path / "theirs"), tmp_path / "ours")


def test_an_encoder_in_a_subfolder_is_to_be_moved(tmp_path: Path) -> None:
    save_encoder(tmp_path / "theirs", TOLD[0][1])
    inner = tmp_path / "theirs/0_Transformer"
    inner.mkdir()
    for path in [path for path in (tmp_path / "theirs").iterdir() if path.is_file() and path.name != "modules.json"]:
        path.rename(inner / path.name)
    listed = json.loads((tmp_path / "theirs/modules.json").read_text(encoding="utf-8"))
    listed[0]["path"] = inner.name
    write_json(tmp_path / "theirs/modules.json", listed)
    with pytest.raises(UserError, match=r"0_Transformer is a part of the encoder in .*theirs: move the files"):
        import_any(str(inner), tmp_path / "ours")
    for path in inner.iterdir():
        shutil.copyfile(path, tmp_path / "theirs" / path.name)
    with pytest.raises(UserError, match=r"has its BERT in 0_Transformer: move the files from there to"):
        import_any(str(tmp_path / "theirs"), tmp_path / "ours")


def test_what_its_authors_do_to_a_text_is_said_where_we_do_not(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    save_encoder(tmp_path / "theirs", TOLD[0][1])
    write_json(tmp_path / "theirs/sentence_bert_config.json", {"max_seq_length": 20, "do_lower_case": True})
    prompts = {"prompts": {"query": "find: ", "passage": ""}, "default_prompt_name": "query"}
    write_json(tmp_path / "theirs/config_sentence_transformers.json", prompts)
    capfd.readouterr()
    import_any(str(tmp_path / "theirs"), tmp_path / "ours")
    said = "These settings of its authors are not used: default_prompt_name query ('find: ').\n"
    assert capfd.readouterr().err == said
    content = read_bert(OriginalFiles(tmp_path / "theirs")).word_pieces
    content["normalizer"]["lowercase"] = False
    write_json(tmp_path / "theirs/tokenizer.json", content)
    changed(tmp_path / "theirs/config_sentence_transformers.json", default_prompt_name="passage")
    import_any(str(tmp_path / "theirs"), tmp_path / "again")
    assert capfd.readouterr().err == "These settings of its authors are not used: do_lower_case.\n"


def test_a_name_on_the_hub_comes_with_its_pooling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    tokeniser, model = save_encoder(tmp_path / "site/Some-Lab/encoder/resolve/main", TOLD[1][1])
    with serving_hub(tmp_path / "site") as hub:
        import_any(str(fetched("Some-Lab/encoder", hub=hub)), tmp_path / "ours")
    np.testing.assert_allclose(vectors_of(tmp_path / "ours"), theirs(model, tokeniser, "max"), rtol=0, atol=1e-6)


def test_heads_are_measured_and_pruned_by_its_own_vectors(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save_encoder(tmp_path / "theirs", TOLD[0][1])
    words = ("the", "a", "white"), ("cat", "dog", "house"), ("saw", "sleep", "unable"), ("the house .", "a dog .", ".")
    lines = [" ".join(each) for each in itertools.product(*words)]
    write_lines(tmp_path / "text.txt", lines)
    given = [str(tmp_path / "theirs"), str(tmp_path / "text.txt"), "--device", "cpu"]
    page = ["-o", str(tmp_path / "heads.html"), "--masked", "20"]
    assert main(["inspect", *given, *page]) == 0
    model, tokeniser = (
        transformers.AutoModel.from_pretrained(tmp_path / "theirs").eval(),
        save_tokeniser(tmp_path / "t"),
    )
    row = read_tsv(tmp_path / "heads.tsv")[3]
    dense = model.encoder.layer[1].attention.output.dense

    @torch.no_grad()
    def firsts() -> NDArray[np.float64]:
        found = [model(**encoded(tokeniser, (line,))).last_hidden_state[0, 0].double().numpy() for line in lines[:20]]
        return np.array([vector / np.sqrt((vector**2).sum()) for vector in found])

    before = firsts()
    with torch.no_grad():
        dense.weight[:, 6:] = 0
    assert (row["layer"], row["head"]) == ("2", "2")
    assert float(row["score_change"]) == pytest.approx(100 * float((before * firsts()).sum(1).mean()) - 100, abs=0.006)
    small = ["-o", str(tmp_path / "small"), "--keep", "3", "--by", "gates", "--updates", "6", "--format", "huggingface"]
    assert main(["prune", *given, *small]) == 0
    assert read_json(tmp_path / "small/1_Pooling/config.json")["pooling_mode_cls_token"] is True
    capsys.readouterr()
