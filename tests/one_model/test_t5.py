"""A T5, with the text that its task is told by, is inspected and made smaller by the same commands as any other."""

import io
import random
import re
from pathlib import Path

import pytest

from explored_page import data_of
from heads.__main__ import main
from heads.base.files import read_json, read_tsv
from heads.model.folder import load_folder
from heads.text.encoding import vocabulary_of
from t5_models import PREFIX, TEXTS, save_t5


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of 2 and 3 layers with 6 heads, and a text of 80 lines."""
    place, draw = tmp_path_factory.mktemp("t5"), random.Random(1)
    save_t5(place / "model", "FLAN-T5, 6 heads", ending=2.0)
    words = " ".join(TEXTS).split()
    lines = [" ".join(draw.choices(words, k=draw.randint(3, 9))) for _ in range(80)]
    (place / "text.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return place


@pytest.mark.slow
def test_every_head_is_described(folder: Path, tmp_path: Path) -> None:
    how = ["--prefix", PREFIX, "--sentences", "40", "--masked", "6", "--show", "1", "3", "--metric", "rouge-l"]
    assert main(["inspect", str(folder / "model"), str(folder / "text.txt"), "-o", str(tmp_path / "a.html"), *how]) == 0
    rows = read_tsv(tmp_path / "a.tsv")
    assert len(rows) == 6 * (2 + 3 + 3)
    assert all(0 <= float(row["lrp_z-plus_absolute"]) <= 1 and row["in_words"] for row in rows)
    assert any("ROUGE-L (" in row["in_words"] for row in rows) and not any("BLEU" in row["in_words"] for row in rows)
    (shown,) = data_of(tmp_path / "a.html")
    assert (shown["task"], shown["metric"]["name"]) == ("text-to-text", "ROUGE-L (fidelity)")
    assert "cut:words" in shown["signature"] and shown["score"] == 100
    assert not re.search("translat|BLEU", str([*rows[0], shown["signature"], shown["measures"], shown["note"]]))
    for row in rows:
        alone = re.search(r"by its bias alone \d+ % at .*?; by its content alone \d+ % at ", row["in_words"])
        assert bool(alone) == (row["attention"] == "enc_self"), row["in_words"]


SURGEON, GATES = ["--minutes", "0", "--metric", "chrf"], ["--by", "gates", "--updates", "10", "--metric", "rouge-l"]


@pytest.mark.slow
@pytest.mark.parametrize(("how", "metric"), [(SURGEON, "chrF"), (GATES, "ROUGE-L")], ids=["surgeon", "gates"])
def test_a_smaller_t5_translates_behind_its_prefix(
    folder: Path,
    tmp_path: Path,
    how: list[str],
    metric: str,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    out = tmp_path / "small"
    words = ["prune", str(folder / "model"), str(folder / "text.txt"), "--keep", "14", "-o", str(out)]
    assert main([*words, "--prefix", PREFIX, *how]) == 0
    said = capfd.readouterr().err.replace(str(tmp_path), "")
    assert f"by {metric} against the original model's outputs" in said
    assert not re.search("BLEU|translat", said)
    model = load_folder(out)
    assert len(model.shape.heads()) == 14
    for stack, kind in (("encoder", "enc_self"), ("decoder", "dec_self")):
        table = model.get_parameter(f"{stack}_distances.weight")
        assert table.shape == (32, len(model.shape.sharing(kind)))
    source = vocabulary_of(out / "source.model")
    assert "".join(source.subwords(source.prefix)) == "\u2581" + PREFIX.strip().replace(" ", "\u2581")
    assert read_json(out / "pretrained/about.json")["prefix"] == PREFIX
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the cat sees a dog .\n")))
    capfd.readouterr()
    assert main(["translate", str(out)]) == 0
    assert capfd.readouterr().out.count("\n") == 1
