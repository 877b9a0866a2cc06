"""What is no model as it stands is refused at the door, in one sentence that names the file, whatever its format."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

from bert_models import save_bert
from bert_models import save_tokeniser as save_word_pieces
from fairseq_models import LANGUAGES, save_folder
from heads.__main__ import main
from heads.base.files import UserError, write_json
from heads.interop.downloads import fetched
from heads.interop.families import family_of
from heads.interop.family import ImportOptions
from heads.interop.firefox.file import write
from heads.interop.formats import FORMATS
from heads.interop.hub import CONFIG, INDEX, WEIGHTS
from heads.interop.opening import import_any
from heads.interop.original import OriginalFiles
from heads.model.folder import load_model
from heads.model.folder import save_folder as save_ours
from marian_files import small_file
from marian_models import SENTENCES, changed, save_marian, save_tokeniser, segmenter
from model_folders import Experiment
from slow_ones import slow_but
from small_server import serving_hub

READERS = {each.name: family_of(each).read for each in FORMATS}
FAMILIES = ("marian", "nllb", "bart", "mbart25", "bert")
READ = {"bert": "bert.encoder.layer.1.attention.self.key.weight"}
"""A weight that is read; in the other families it has one name."""
OF_ALL = "model.decoder.layers.1.fc1.weight"
POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a21\nsize 12345\n"


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A valid folder for each family; only to be copied."""
    place = tmp_path_factory.mktemp("good")
    save_tokeniser(place / "marian")
    save_marian(place / "marian")
    save_word_pieces(place / "bert")
    save_bert(place / "bert")
    for family in FAMILIES[1:-1]:
        save_folder(place / family, family)
    return place


@pytest.fixture(params=slow_but(("marian", "bert"), FAMILIES))
def theirs(request: pytest.FixtureRequest, good: Path, tmp_path: Path) -> Path:
    """A copy of the folder of a family, which has its name."""
    family: str = request.param
    return shutil.copytree(good / family, tmp_path / family)


def taken(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder, imported."""
    out = folder.parent / "ours"
    import_any(str(folder), out, languages=LANGUAGES.get(folder.name, ("", "")))
    return load_model(out).state_dict()


def read(folder: Path) -> dict[str, Tensor]:
    """The weights of a folder, as an experiment reads them."""
    kind = folder.name if folder.name in READERS else "fairseq"
    return (
        READERS[kind](OriginalFiles(folder), ImportOptions(languages=LANGUAGES.get(folder.name, ("", ""))))
        .model()
        .state_dict()
    )


def refused(folder: Path) -> str:
    """The one sentence with which a folder is refused, and nothing is left."""
    before = {*folder.parent.iterdir()}
    with pytest.raises(UserError) as caught:
        taken(folder)
    assert {*folder.parent.iterdir()} == before
    assert "\n" not in str(caught.value)
    return str(caught.value)


def rewritten(folder: Path, change: Callable[[dict[str, Tensor]], Mapping[str, Tensor]]) -> None:
    """Write a folder's weights again, changed."""
    weights = change(load_file(folder / WEIGHTS))
    # A file of safetensors has each tensor once.
    save_file({name: value.clone() for name, value in weights.items()}, folder / WEIGHTS, metadata={"format": "pt"})


def with_number(folder: Path, number: float, kind: torch.dtype, name: str = "") -> str:
    """Put a number into one weight, all of which get another type; return its name."""
    name = name or READ.get(folder.name, OF_ALL)

    def change(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        weights = {one: value.to(kind) for one, value in weights.items()}
        weights[name].view(-1)[3] = number
        return weights

    rewritten(folder, change)
    return name


@pytest.mark.parametrize(
    ("number", "kind"),
    [
        (float("nan"), torch.float32),
        (float("-inf"), torch.float32),
        (1e6, torch.float16),
        (float("nan"), torch.bfloat16),
        (1e39, torch.float64),
    ],
)
def test_a_weight_that_is_no_number_in_float32_is_named(theirs: Path, number: float, kind: torch.dtype) -> None:
    name = with_number(theirs, number, kind)
    assert f"{theirs / WEIGHTS}: {name} holds numbers that are not finite" in refused(theirs)


def test_a_shard_with_such_a_weight_is_named(good: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good / "marian", tmp_path / "marian")
    name, parts = with_number(folder, float("inf"), torch.float16), load_file(folder / WEIGHTS)
    (folder / WEIGHTS).unlink()
    places = {one: "model-2.safetensors" if one == name else "model-1.safetensors" for one in parts}
    for place in {*places.values()}:
        save_file({one: parts[one] for one in parts if places[one] == place}, folder / place)
    write_json(folder / INDEX, {"weight_map": places})
    assert f"model-2.safetensors: {name} holds numbers that are not finite" in refused(folder)


def test_what_is_not_read_may_be_anything(good: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good / "bert", tmp_path / "bert")
    more = {
        "bert.embeddings.position_ids": torch.arange(37)[None],
        "cls.predictions.bias": torch.full((3,), torch.nan),
        "cls.steps": torch.tensor(5, dtype=torch.int32),
    }
    rewritten(folder, lambda weights: {**weights, **more})
    assert len(taken(folder)) > 20


BITS: tuple[tuple[str, Callable[[Tensor], dict[str, Tensor]], str], ...] = (
    ("int8", lambda w: {"weight": w.to(torch.int8), "SCB": w.abs().amax(1)}, "weight is stored as int8"),
    ("4 bits", lambda w: {"weight": w.to(torch.uint8), "weight.absmax": w[0]}, "weight is stored as uint8"),
    ("float8", lambda w: {"weight": w.to(torch.float8_e4m3fn)}, "weight is stored as float8_E4M3"),
    ("GPTQ", lambda w: {"qweight": w.to(torch.int32), "scales": w.half()}, "qweight is stored as int32"),
    ("packed", lambda w: {"weight_packed": w.to(torch.int32)}, "weight_packed is stored as int32"),
    ("int64", lambda w: {"weight": w.to(torch.int64)}, "weight is stored as int64"),
    ("bool", lambda w: {"weight": w > 0}, "weight is stored as BOOL"),
)
"""What is in the place of a matrix in quantised models, and what is said."""


@pytest.mark.parametrize(("pack", "words"), [bits[1:] for bits in BITS], ids=[bits[0] for bits in BITS])
def test_a_weight_of_few_bits_is_refused_with_the_way_to_a_plain_one(
    theirs: Path, pack: Callable[[Tensor], dict[str, Tensor]], words: str
) -> None:
    name = READ.get(theirs.name, OF_ALL)
    module = name.removesuffix(".weight")

    def change(weights: dict[str, Tensor]) -> dict[str, Tensor]:
        packed = {f"{module}.{part}": value for part, value in pack(weights.pop(name)).items()}
        return {**weights, **packed}

    rewritten(theirs, change)
    said = refused(theirs)
    assert f"{theirs / WEIGHTS}: {module}.{words}" in said
    assert "call model.dequantize(), and write it with save_pretrained" in said


@pytest.mark.parametrize(
    ("key", "told", "method"),
    [
        ("quantization_config", {"quant_method": "bitsandbytes", "load_in_8bit": True}, "bitsandbytes"),
        ("quantization_config", {"bits": 4}, "of an unknown method"),
        ("compression_config", {"quant_method": "compressed-tensors"}, "compressed-tensors"),
    ],
)
def test_a_config_that_tells_of_quantised_weights_is_refused(theirs: Path, key: str, told: object, method: str) -> None:
    changed(theirs / CONFIG, **{key: told})
    assert f"{theirs / CONFIG} has a {key} ({method}): only float32, float16, bfloat16 and float64" in refused(theirs)
    changed(theirs / CONFIG, **{key: None})
    assert taken(theirs)


@pytest.mark.parametrize("wrapper", ["module.", "_orig_mod.", "_orig_mod.module.", "inside"])
def test_what_a_training_wraps_around_a_model_is_taken_off(theirs: Path, wrapper: str) -> None:
    expected = read(theirs)
    if wrapper == "inside":
        rewritten(
            theirs, lambda weights: {name.replace("coder.", "coder._orig_mod.", 1): weights[name] for name in weights}
        )
    else:
        rewritten(theirs, lambda weights: {wrapper + name: value for name, value in weights.items()})
    found = read(theirs)
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[name], expected[name]) for name in expected)


def test_another_wrapper_is_told_from_missing_weights(theirs: Path) -> None:
    rewritten(theirs, lambda weights: {f"net.{name}": value for name, value in weights.items()})
    said = refused(theirs)
    assert f"{theirs / WEIGHTS} has net." in said
    assert "write the model itself, without what is around it" in said


@pytest.mark.parametrize(
    "name",
    ["base_model.model.x.lora_A.weight", "x.lora_B.default.weight", "x.adapters.a.adapter_down.0.weight", "x.ia3_l"],
)
def test_an_adapter_among_the_weights_is_not_left_out(theirs: Path, name: str) -> None:
    rewritten(theirs, lambda weights: {**weights, name: torch.ones(2, 3)})
    assert f"{theirs / WEIGHTS} has {name}, which is of an adapter: load its base model" in refused(theirs)


@pytest.mark.parametrize("left", [CONFIG, "nothing"])
def test_the_folder_of_an_adapter_is_told_from_a_model(theirs: Path, left: str) -> None:
    for path in [path for path in theirs.iterdir() if path.name != left]:
        path.unlink()
    write_json(theirs / "adapter_config.json", {"peft_type": "LORA", "base_model_name_or_path": "a/b"})
    save_file({"base_model.model.x.lora_A.weight": torch.ones(2, 3)}, theirs / "adapter_model.safetensors")
    said = refused(theirs)
    assert "adapter_config.json is of an adapter, not of a whole model" in said
    assert "call merge_and_unload()" in said


def test_a_file_that_git_lfs_left_out_is_named_whichever_it_is(theirs: Path) -> None:
    names = [path.name for path in theirs.iterdir() if path.name not in ("README.md", "special_tokens_map.json")]
    assert len(names) >= 4
    for name in names:
        content = (theirs / name).read_bytes()
        (theirs / name).write_text(POINTER, encoding="utf-8")
        told = f"{theirs / name} is a pointer of Git LFS, not the file itself: run git lfs pull in {theirs}."
        assert refused(theirs) == told
        (theirs / name).write_bytes(content)
    (theirs / "pytorch_model.bin").write_text(POINTER, encoding="utf-8")
    assert taken(theirs), "what is not read may be left out"


def test_a_file_that_is_only_there_packed_is_to_be_unpacked(theirs: Path) -> None:
    for name in [path.name for path in theirs.iterdir() if path.name != "README.md"]:
        (theirs / name).rename(theirs / f"{name}.gz")
        assert refused(theirs) == f"{theirs} has no {name}: unpack {name}.gz."
        (theirs / f"{name}.gz").rename(theirs / name)
    shutil.copyfile(theirs / CONFIG, theirs / f"{CONFIG}.gz")
    assert taken(theirs), "what is there unpacked too is read"


def test_a_packed_shard_is_to_be_unpacked(good: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(good / "bert", tmp_path / "bert")
    write_json(folder / INDEX, {"weight_map": {"bert.pooler.dense.bias": "model-1.safetensors"}})
    (folder / "model-1.safetensors.zst").touch()
    assert refused(folder).endswith(": unpack model-1.safetensors.zst.")


def test_heads_that_were_cut_out_are_read_in_a_bert_alone(theirs: Path) -> None:
    changed(theirs / CONFIG, pruned_heads={})
    assert taken(theirs)
    shutil.rmtree(theirs.parent / "ours")
    changed(theirs / CONFIG, pruned_heads={"0": [1]})
    told = f"{theirs / CONFIG} has pruned_heads, which only a BERT can have: give the model with all its heads."
    assert (refused(theirs) == told) is (theirs.name != "bert")


def test_on_the_hub_an_adapter_and_a_quantised_model_are_refused_before_their_weights_are_fetched(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    files = tmp_path / "site/lab/small/resolve/main"
    files.mkdir(parents=True)
    write_json(files / "adapter_config.json", {"peft_type": "LORA"})
    with serving_hub(tmp_path / "site") as hub:
        with pytest.raises(UserError, match=r"^lab/small is an adapter, not a whole model: load its base model"):
            fetched("lab/small", hub=hub)
        shutil.copyfile(good / "bert" / CONFIG, files / CONFIG)
        changed(files / CONFIG, quantization_config={"quant_method": "gptq"})
        with pytest.raises(UserError, match=r"^lab/small/config\.json has a quantization_config \(gptq\): only"):
            fetched("lab/small", hub=hub)
    assert not (tmp_path / "cache/heads").exists()


def student(folder: Path) -> Path:
    """A model in Marian's own format."""
    folder.mkdir()
    sentences = [*SENTENCES["source"], *SENTENCES["target"]]
    (folder / "vocab.enpt.spm").write_bytes(segmenter(sentences, 60, "unigram"))
    write(folder / "model.enpt.bin", small_file(dim_vocabs=[64, 64]))
    return folder


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_packed_files_of_mozilla_are_to_be_unpacked_each(tmp_path: Path, ending: str) -> None:
    folder = student(tmp_path / "enpt")
    for name in ("model.enpt.bin", "vocab.enpt.spm"):
        (folder / name).rename(folder / f"{name}{ending}")
        assert refused(folder).endswith(f": unpack {name}{ending}.")
        (folder / f"{name}{ending}").rename(folder / name)
    (folder / f"lex.50.50.enpt.s2t.bin{ending}").touch()
    assert refused(folder) == f"{folder} has its shortlist packed: unpack lex.50.50.enpt.s2t.bin{ending}."
    for path in [path for path in folder.iterdir() if path.suffix != ending]:
        path.rename(f"{path}{ending}")
    assert "unpack lex.50.50" in refused(folder) and f"model.enpt.bin{ending}, vocab" in refused(folder)
    alone = folder / f"model.enpt.bin{ending}"
    with pytest.raises(UserError, match="is packed: unpack it, and give the folder with its files"):
        import_any(str(alone), tmp_path / "ours")


def test_pointers_in_place_of_marians_files_are_named(tmp_path: Path) -> None:
    folder = student(tmp_path / "enpt")
    assert taken(folder)
    shutil.rmtree(tmp_path / "ours")
    for name in ("model.enpt.bin", "vocab.enpt.spm", "lex.bin", "config.yml"):
        path = folder / name
        content = path.read_bytes() if path.exists() else None
        path.write_text(POINTER, encoding="utf-8")
        assert refused(folder).startswith(f"{path} is a pointer of Git LFS")
        path.unlink() if content is None else path.write_bytes(content)
    folder.joinpath("model.enpt.bin").write_text(POINTER, encoding="utf-8")
    with pytest.raises(UserError, match=r"model\.enpt\.bin is a pointer of Git LFS"):
        import_any(str(folder / "model.enpt.bin"), tmp_path / "ours")


@pytest.mark.parametrize("command", slow_but(["translate"], ["export", "translate", "inspect", "prune"]))
def test_a_training_of_ours_that_diverged_is_one_sentence(
    experiment: Experiment, tmp_path: Path, command: str, capfd: pytest.CaptureFixture[str]
) -> None:
    ours = shutil.copytree(experiment.bpe.parent, tmp_path / "tiny") / "baseline/seed-1"
    model = load_model(ours)
    model.get_parameter("decoder.1.feedforward.inner.bias").data[2] = torch.nan
    save_ours(model, ours, {"updates": 5}, {})
    (tmp_path / "text").write_text("".join(f"the cat sees dog number {n} .\n" for n in range(60)), encoding="utf-8")
    words = {
        "export": ["--format", "onnx", "-o", str(tmp_path / "out")],
        "translate": [],
        "inspect": [str(tmp_path / "text"), "-o", str(tmp_path / "page.html")],
        "prune": [str(tmp_path / "text"), "--keep", "3", "-o", str(tmp_path / "small")],
    }
    assert main([command, str(ours), *words[command]]) == 1
    said = capfd.readouterr().err
    told = "model.safetensors: decoder.1.feedforward.inner.bias holds numbers that are not finite, as after a training"
    assert told in said and "Traceback" not in said


def test_a_pointer_in_a_folder_of_ours_is_named(experiment: Experiment, tmp_path: Path, capfd: Any) -> None:
    folder = tmp_path / "ours"
    assert main(["export", str(experiment.baseline), "-o", str(folder)]) == 0
    for name in ("model.safetensors", "model.json", "source.model"):
        content = (folder / name).read_bytes()
        (folder / name).write_text(POINTER, encoding="utf-8")
        assert main(["translate", str(folder)]) == 1
        assert f"{folder / name} is a pointer of Git LFS" in capfd.readouterr().err
        (folder / name).write_bytes(content)


@pytest.mark.parametrize("form", slow_but(["huggingface"], ["huggingface", "onnx"]))
def test_a_model_whose_own_outputs_are_no_numbers_is_not_called_a_fault_of_ours(
    good: Path, tmp_path: Path, form: str, capfd: pytest.CaptureFixture[str]
) -> None:
    norms = {"marian": "decoder.layers.1.final_layer_norm.weight", "bert": "encoder.layer.1.output.LayerNorm.weight"}
    for family, norm in norms.items():
        folder = shutil.copytree(good / family, tmp_path / family)
        rewritten(folder, lambda weights, end=norm: {  # type: ignore[misc]
            name: torch.full_like(value, 3e38) if name.endswith(end) else value for name, value in weights.items()
        })  # fmt: skip
        assert main(["export", str(folder), "--format", form, "-o", str(tmp_path / "out")]) == 1
        said = capfd.readouterr().err
        assert "error: the model's own outputs are not finite" in said and "Traceback" not in said
        assert not (tmp_path / "out").exists()


def test_numbers_that_float16_cannot_hold_are_said_to_be_so(
    good: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed: pip install -r envs/dev.txt")
    folder = shutil.copytree(good / "marian", tmp_path / "marian")
    with_number(folder, 1e6, torch.float32)
    given = ["export", str(folder), "--format", "ctranslate2", "-o", str(tmp_path / "out"), "--quantization"]
    assert main([*given, "float16"]) == 1
    assert "float16 cannot hold the model's weights: use another --quantization" in capfd.readouterr().err
    assert main([*given, "int16"]) == 0
