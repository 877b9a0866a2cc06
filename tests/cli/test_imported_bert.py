"""The commands of an experiment whose baseline is a BERT: import, further training with gates, pruning, export."""

from pathlib import Path

import pytest
import torch

from bert_models import EXAMPLES, encoded, save_bert, save_tokeniser, transformers
from heads.__main__ import main
from heads.base.files import read_json, read_jsonl, read_lines, read_tsv
from heads.interop.bert.importing import model_of_bert
from heads.interop.bert.reading import read_bert
from heads.interop.original import OriginalFiles
from heads.model.folder import load_classifier
from heads.syntax.conllu import place, write_conllu
from imported_runs import cut_out, encode, run, train

LABELS = ("entailment", "neutral", "contradiction", "neutral")
TEXTS = {"source": EXAMPLES, "target": LABELS}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT, examples, and the output of imported_bpe, encode and imported."""
    place = tmp_path_factory.mktemp("taken")
    save_tokeniser(place / "theirs")
    save_bert(place / "theirs", num_attention_heads=3)
    encode(place, TEXTS)
    train(place, "imported", "baseline")
    return place


def test_the_imported_baseline_has_the_loss_and_accuracy_of_transformers_on_dev(folder: Path) -> None:
    facts, (line,) = read_json(folder / "baseline/model.json"), read_jsonl(folder / "baseline/train.jsonl")
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder / "theirs")
    theirs = transformers.BertForSequenceClassification.from_pretrained(folder / "theirs").eval()
    ids = {name.lower(): number for number, name in theirs.config.id2label.items()}
    right = torch.tensor([ids[label] for label in LABELS])
    with torch.no_grad():
        logits = theirs(**encoded(tokeniser, EXAMPLES)).logits
    assert facts["dev_loss"] == pytest.approx(float(torch.nn.functional.cross_entropy(logits, right)), rel=1e-4)
    assert line["dev_accuracy"] == pytest.approx(100 * float((logits.argmax(-1) == right).float().mean()))
    assert (folder / "bpe/pretrained/config.json").read_bytes() == (folder / "theirs/config.json").read_bytes()


def test_it_is_trained_on_first_as_torch_trains_that_of_transformers(tmp_path: Path) -> None:
    # Every update sees all examples, without dropout, so neither order nor noise matters.
    save_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs", num_attention_heads=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    encode(tmp_path, TEXTS)
    train(tmp_path, "imported", "tuned", fine_tuning_updates=5, checkpoint_updates=[2], average_last=1, patience=0)
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "theirs")
    tokeniser = transformers.AutoTokenizer.from_pretrained(tmp_path / "theirs")
    ids = {name.lower(): number for number, name in theirs.config.id2label.items()}
    batch, right = encoded(tokeniser, EXAMPLES), torch.tensor([ids[label] for label in LABELS])
    optimizer = torch.optim.Adam(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9)
    for update in range(1, 6):
        optimizer.param_groups[0]["lr"] = 0.05 * min(update**-0.5, update * 4**-1.5)
        optimizer.zero_grad()
        smoothed = torch.nn.functional.cross_entropy(theirs(**batch).logits, right, label_smoothing=0.1)
        smoothed.backward()
        optimizer.step()
    with torch.no_grad():
        expected = float(torch.nn.functional.cross_entropy(theirs.eval()(**batch).logits, right))
    facts = read_json(tmp_path / "tuned/model.json")
    assert facts["dev_loss"] == pytest.approx(expected, rel=1e-3)
    assert (facts["updates"], facts["total_updates"], facts["pretrained"]) == (5, 5, True)
    assert [path.name for path in (tmp_path / "tuned/checkpoints").iterdir()] == ["checkpoint-00000002.safetensors"]
    assert [line["update"] for line in read_jsonl(tmp_path / "tuned/train.jsonl")] == [5]


def test_an_encoder_without_a_pooler_is_trained_on_with_one_that_is_drawn_from_the_seed_and_both_commands_say_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    save_tokeniser(tmp_path / "theirs")
    save_bert(tmp_path / "theirs", "BertModel", pooler=False, num_attention_heads=3)
    given = [str(tmp_path / "theirs"), "--output", str(tmp_path / "ours"), "--labels", "yes", "no"]
    assert main(["import", *given]) == 0
    said = "The model came without a pooler and a classifier: random ones are added, which predict nothing until"
    assert said in capsys.readouterr().err
    labels = ["entailment", "neutral", "contradiction"]
    encode(tmp_path, TEXTS, labels=labels)
    train(tmp_path, "imported", "tuned", labels=labels, fine_tuning_updates=1, average_last=1, patience=0)
    assert said in capsys.readouterr().err
    start = model_of_bert(read_bert(OriginalFiles(tmp_path / "theirs")), labels, seed=1).state_dict()
    tuned = load_classifier(tmp_path / "tuned").state_dict()
    moved = (tuned["pooler.weight"] - start["pooler.weight"]).abs()
    # Adam's first update moves a weight by at most the learning rate; another seed's weights would differ tenfold.
    assert 0 < float(moved.max()) < 0.05 * 4**-1.5 * 1.01


def test_roles_are_measured_on_its_own_word_pieces(folder: Path, tmp_path: Path) -> None:
    words = [("the", 3, "det"), ("white", 3, "amod"), ("house", 0, "root")]
    tree = place([(word, word, "X", head, relation, True) for word, head, relation in words])
    write_conllu(tmp_path / "gold.conllu", [tree] * 3)
    made = [f"--{name}={tmp_path / name}" for name in ("out", "coverage", "positions")]
    read = ["--model", str(folder / "baseline"), "--source-bpe", str(folder / "bpe/source.model")]
    read += ["--train-source", str(folder / "bpe/train.source.safetensors")]
    read += ["--trees", f"gold={tmp_path / 'gold.conllu'}"]
    run(folder, "roles", *read, *made, "--device", "cpu")
    (told,) = read_tsv(tmp_path / "coverage")
    assert [told[name] for name in ("sentences", "measured", "tree_words", "aligned_words")] == ["3", "3", "9", "9"]


def test_it_is_trained_on_with_gates_cut_and_goes_back_to_transformers(folder: Path, tmp_path: Path) -> None:
    small = cut_out(folder, "keep-4")
    assert sum(int(row["open"]) for row in read_tsv(folder / "gates-all/heads.tsv")) == 4
    assert len(load_classifier(small).shape.heads()) == 4
    assert main(["export", str(small), "-o", str(tmp_path / "out"), "--format", "huggingface"]) == 0
    assert read_json(tmp_path / "out/config.json")["num_attention_heads"] == 3
    assert main(["export", str(small), "-o", str(tmp_path / "ours")]) == 0
    assert main(["export", str(tmp_path / "ours"), "-o", str(tmp_path / "again"), "--format", "huggingface"]) == 0
    titles = [read_lines(tmp_path / name / "README.md")[0] for name in ("out", "ours", "again")]
    assert titles == [f"# {folder.name}/{small.relative_to(folder)}"] * 3
