"""BLEU from counts per sentence, compared with sacrebleu on the same text and with counting by hand."""

from pathlib import Path

import numpy as np
import pytest
from sacrebleu.metrics import BLEU

from heads.__main__ import main
from heads.base.files import read_json, read_lines, read_tsv, write_text
from heads.translation.bleu import STATISTICS, bleu_of
from heads.translation.text_scores import bleu, bleu_statistics
from model_folders import TARGET, write_experiment


def counted(hypotheses: list[str], references: list[str]) -> np.ndarray:
    rows = bleu_statistics(hypotheses, references)
    return np.array([[row[column] for column in STATISTICS] for row in rows], float)


def random_text(seed: int) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(list("abcde"), rng.integers(0, 12))) for _ in range(30)]


def test_the_counts_of_a_sentence_are_its_ngrams_those_of_the_reference_at_most_as_often_as_there() -> None:
    (row,) = bleu_statistics(["the old cat the cat the"], ["the old cat sees the dog here"])
    assert [row["hypothesis_words"], row["reference_words"]] == [6, 7]
    # Single words: the twice of three times, old, one cat of two. Pairs: "the old", "old cat". Threes: "the old cat".
    assert [row[f"correct_{order}"] for order in (1, 2, 3, 4)] == [4, 2, 1, 0]
    assert [row[f"total_{order}"] for order in (1, 2, 3, 4)] == [6, 5, 4, 3]


def test_bleu_of_the_sums_of_any_sentences_is_what_sacrebleu_says_of_their_text() -> None:
    hypotheses, references = random_text(1), random_text(2)
    counts = counted(hypotheses, references)
    rng = np.random.default_rng(3)
    draws = [rng.integers(30, size=size) for size in (1, 1, 1, 2, 2, 3, 3, 5, 30, 60)]
    sums = np.stack([counts[draw].sum(0) for draw in draws])
    drawn = [([hypotheses[i] for i in draw], [references[i] for i in draw]) for draw in draws]
    expected = [BLEU().corpus_score(texts, [right]).score for texts, right in drawn]
    np.testing.assert_allclose(bleu_of(sums), expected, rtol=1e-12, atol=1e-12)
    assert [bleu(texts, right)["bleu"] for texts, right in drawn] == expected
    assert len({round(score, 6) for score in expected}) > 5


@pytest.mark.parametrize(
    ("hypothesis", "reference"),
    [("", "a b c d"), ("a b c", "a b c"), ("x y z w v", "a b c d e"), ("a x b y c z", "a b c d e f"),
     ("a b c d e f g h", "a b c d"), ("a b c d", "a b c d e f g h")],
    ids=["empty", "no four words", "no match", "single words match alone", "too long", "too short"],
)  # fmt: skip
def test_odd_sentences_score_as_sacrebleu_scores_them(hypothesis: str, reference: str) -> None:
    expected = BLEU().corpus_score([hypothesis], [[reference]]).score
    assert bleu_of(counted([hypothesis], [reference]).sum(0)) == pytest.approx(expected, abs=1e-12)


def test_the_command_writes_the_counts_of_every_translation_whose_sums_give_the_score(tmp_path: Path) -> None:
    experiment = write_experiment(tmp_path / "tiny")
    references = [*TARGET, *reversed(TARGET), "собаки видят маленькую реку .", *TARGET[:2]]
    write_text(tmp_path / "references.txt", "\n".join(references) + "\n")
    settings = "translate: {batch_tokens: 40, beam: 2, length_penalty: 0.6, sentences: 8}\n"
    write_text(tmp_path / "score.yaml", settings)
    words = {
        "settings": tmp_path / "score.yaml", "model": experiment.baseline,
        "source": experiment.bpe / "test.source.safetensors",
        "references": tmp_path / "references.txt", "target-bpe": experiment.bpe / "target.model",
        "translations": tmp_path / "t.txt", "bleu": tmp_path / "b.json", "statistics": tmp_path / "s.tsv",
    }  # fmt: skip
    assert main(["score", *(word for key, path in words.items() for word in (f"--{key}", str(path)))]) == 0
    rows = [[int(row[column]) for column in STATISTICS] for row in read_tsv(tmp_path / "s.tsv")]
    translations = read_lines(tmp_path / "t.txt")
    assert rows == counted(translations, references[:8]).tolist() and len(rows) == 8
    assert bleu_of(np.sum(rows, 0)) == pytest.approx(read_json(tmp_path / "b.json")["bleu"], abs=1e-9)
