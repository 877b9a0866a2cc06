"""The commands of an experiment whose baseline is a BERT: import, further training with gates, pruning, export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from bert_models import EXAMPLES, encoded, save_bert, save_tokeniser, transformers
from heads.__main__ import main
from heads.base.files import read_json, read_jsonl, read_tsv, read_yaml, write_lines, write_text
from heads.config.settings import classifying, merged, stage_settings
from heads.model.folder import load_classifier
from heads.syntax.conllu import place, write_conllu
from heads.translation.bert_folder import read_bert
from heads.translation.from_bert import model_of_bert

ROOT = Path(__file__).parents[2]
LABELS = ("entailment", "neutral", "contradiction", "neutral")
SPLITS = {"train": 6, "dev": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT, examples, and the output of imported_bpe, encode and imported."""
    place = tmp_path_factory.mktemp("taken")
    save_tokeniser(place / "bert")
    save_bert(place / "bert", num_attention_heads=3)
    encode(place)
    run(place, "imported", *trained(place, "baseline"), "--checkpoints", str(place / "baseline/checkpoints"))
    return place


def encode(place: Path, **baseline: Any) -> None:
    """Import the subwords of the folder `bert` and encode the examples with them."""
    for split, times in SPLITS.items():
        write_lines(place / f"{split}.source.txt", EXAMPLES * times)
        write_lines(place / f"{split}.target.txt", LABELS * times)
    run(place, "imported_bpe", "--out-folder", str(place / "bpe"), **baseline)
    for split in SPLITS:
        for side in ("source", "target"):
            text, bpe = place / f"{split}.{side}.txt", place / f"bpe/{side}.model"
            tokens = place / f"bpe/{split}.{side}.safetensors"
            assert main(["encode", "--text", str(text), "--bpe", str(bpe), "--tokens", str(tokens)]) == 0


def run(place: Path, stage: str, *words: str, **baseline: Any) -> None:
    """Run a command as its rule does, with its own settings; `baseline` adds settings to that section."""
    training: dict[str, Any] = {"batch_tokens": 400, "micro_batch_tokens": 60, "precision": "fp32", "warmup_updates": 4}
    training |= {"learning_rate": 0.025, "evaluate_every": 50, "dev_bleu_sentences": 0}
    gates = {"updates": 6, "average_last": 2, "average_every": 2, "gate_learning_rate": 1.0, "record_every": 3}
    changes = {"training": training, "gates": gates, "baseline": {"pretrained": str(place / "bert"), **baseline}}
    experiment = classifying("mine", merged(read_yaml(ROOT / "config.yaml")["defaults"], changes), changes)
    settings = place / f"{stage}.yaml"
    write_text(settings, yaml.safe_dump(stage_settings(experiment, stage)))
    assert main([stage, "--settings", str(settings), *words]) == 0


def trained(place: Path, name: str) -> list[str]:
    """Flags that every training is given."""
    own = ["--model", str(place / name), "--history", str(place / name / "train.jsonl"), "--seed", "1"]
    return [*own, "--data", str(place / "bpe"), "--references", str(place / "dev.target.txt"), "--device", "cpu"]


def test_the_imported_baseline_has_the_loss_and_accuracy_of_transformers_on_dev(folder: Path) -> None:
    facts, (line,) = read_json(folder / "baseline/model.json"), read_jsonl(folder / "baseline/train.jsonl")
    tokeniser = transformers.AutoTokenizer.from_pretrained(folder / "bert")
    theirs = transformers.BertForSequenceClassification.from_pretrained(folder / "bert").eval()
    ids = {name.lower(): number for number, name in theirs.config.id2label.items()}
    right = torch.tensor([ids[label] for label in LABELS])
    with torch.no_grad():
        logits = theirs(**encoded(tokeniser, EXAMPLES)).logits
    assert facts["dev_loss"] == pytest.approx(float(torch.nn.functional.cross_entropy(logits, right)), rel=1e-4)
    assert line["dev_accuracy"] == pytest.approx(100 * float((logits.argmax(-1) == right).float().mean()))
    assert (folder / "bpe/pretrained/config.json").read_bytes() == (folder / "bert/config.json").read_bytes()


def test_it_is_trained_on_first_as_torch_trains_that_of_transformers(tmp_path: Path) -> None:
    # Every update sees all examples, without dropout, so neither order nor noise matters.
    save_tokeniser(tmp_path / "bert")
    save_bert(tmp_path / "bert", num_attention_heads=3, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    encode(tmp_path)
    words = [*trained(tmp_path, "tuned"), "--checkpoints", str(tmp_path / "tuned/checkpoints")]
    run(tmp_path, "imported", *words, fine_tuning_updates=5, keep_at=[2], average_last=1, patience=0)
    theirs = transformers.BertForSequenceClassification.from_pretrained(tmp_path / "bert")
    tokeniser = transformers.AutoTokenizer.from_pretrained(tmp_path / "bert")
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
    save_tokeniser(tmp_path / "bert")
    save_bert(tmp_path / "bert", "BertModel", pooler=False, num_attention_heads=3)
    given = [str(tmp_path / "bert"), "--output", str(tmp_path / "ours"), "--labels", "yes", "no"]
    assert main(["import", *given]) == 0
    said = "The model came without a pooler and a classifier: random ones are added, which predict nothing until"
    assert said in capsys.readouterr().err
    labels = ["entailment", "neutral", "contradiction"]
    encode(tmp_path, labels=labels)
    words = [*trained(tmp_path, "tuned"), "--checkpoints", str(tmp_path / "tuned/checkpoints")]
    run(tmp_path, "imported", *words, labels=labels, fine_tuning_updates=1, average_last=1, patience=0)
    assert said in capsys.readouterr().err
    start = model_of_bert(read_bert(tmp_path / "bert"), labels, seed=1).state_dict()
    tuned = load_classifier(tmp_path / "tuned").state_dict()
    moved = (tuned["pooler.weight"] - start["pooler.weight"]).abs()
    # Adam's first update moves a weight by at most the learning rate; another seed's weights would differ tenfold.
    assert 0 < float(moved.max()) < 0.05 * 4**-1.5 * 1.01


def test_roles_are_measured_on_its_own_word_pieces(folder: Path, tmp_path: Path) -> None:
    words = [("the", 3, "det"), ("white", 3, "amod"), ("house", 0, "root")]
    tree = place([(word, word, "X", head, relation, True) for word, head, relation in words])
    write_conllu(tmp_path / "gold.conllu", [tree] * 3)
    made = [f"--{name}={tmp_path / name}" for name in ("out", "alignment", "positions")]
    read = ["--model", str(folder / "baseline"), "--source-bpe", str(folder / "bpe/source.model")]
    read += ["--train-source", str(folder / "bpe/train.source.safetensors")]
    read += ["--trees", f"gold={tmp_path / 'gold.conllu'}"]
    run(folder, "roles", *read, *made, "--device", "cpu")
    (told,) = read_tsv(tmp_path / "alignment")
    assert [told[name] for name in ("sentences", "measured", "tree_words", "aligned_words")] == ["3", "3", "9", "9"]


def test_it_is_trained_on_with_gates_cut_and_goes_back_to_transformers(folder: Path, tmp_path: Path) -> None:
    made, small = folder / "gates", folder / "pruned"
    gates = ["--scope", "all", "--target", "keep-4", "--start-model", str(folder / "baseline")]
    gates += ["--heads", str(made / "heads.tsv"), "--gates-log", str(made / "gates.jsonl")]
    run(folder, "gates", *trained(folder, "gates"), *gates)
    assert sum(int(row["open"]) for row in read_tsv(made / "heads.tsv")) == 4
    words = ["--start-model", str(made), "--gates", str(made / "heads.tsv")]
    assert main(["pruned", *words, "--model", str(small), "--heads", str(small / "heads.tsv")]) == 0
    assert len(load_classifier(small).shape.heads()) == 4
    assert main(["export", str(small), "-o", str(tmp_path / "out"), "--format", "huggingface"]) == 0
    assert read_json(tmp_path / "out/config.json")["num_attention_heads"] == 3
