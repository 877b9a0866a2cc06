"""How far the costs of single heads agree between random halves of a text: what noise leaves to be found.

python halves.py MODEL TARGET_BPE SOURCE REFERENCES SENTENCES OUT

Costs are changes of greedy BLEU with a head masked alone, r is Pearson's over all heads: its mean over random halves,
what 95 % of them lie between, and by Spearman and Brown what r two texts of one domain, as long as this, would have.
"""

import sys
from pathlib import Path

import numpy as np
import torch

import heads.analysis.masking as masking
from heads.analysis.ablation import gates_without
from heads.analysis.metrics import counted_bleu
from heads.base.files import write_tsv
from heads.config.analyses import AblationSettings
from heads.translation.bleu import bleu_of
from heads.translation.text_scores import tokeniser_of

DRAWS = 1000


def counts_of(folder: Path, target_bpe: Path, source: Path, references: Path, sentences: int) -> np.ndarray:
    """BLEU's counts [heads + 1, S, C] of the model's answers, with no head masked and then with each alone."""
    device = torch.device("cpu")
    model = masking.load_with_heads(folder, device)
    text, search = masking.read_text(source, references, target_bpe), AblationSettings(sentences=sentences, beam=1)
    translate, lines, _ = masking.evaluation_of(model, device, text, search, much_alike=True)
    answers = [translate(None), *(translate(gates_without(model, {head})) for head in model.shape.heads())]
    tokeniser = tokeniser_of(text.references, text.tokeniser)
    return np.stack([counted_bleu(said, lines, tokeniser) for said in answers]).astype(float)


def costs(counts: np.ndarray) -> np.ndarray:
    """BLEU lost without each head, from counts [heads + 1, S, C]."""
    scores = bleu_of(counts.sum(1))
    return scores[0] - scores[1:]


def halves(counts: np.ndarray) -> np.ndarray:
    """Pearson's r of the costs on two random halves of the sentences, for each draw."""
    draw, number = np.random.default_rng(1), counts.shape[1]
    orders = [draw.permutation(number) for _ in range(DRAWS)]
    both = [(counts[:, order[: number // 2]], counts[:, order[number // 2 :]]) for order in orders]
    return np.array([np.corrcoef(costs(one), costs(other))[0, 1] for one, other in both])


if __name__ == "__main__":
    torch.set_num_threads(1)
    *paths, sentences, out = sys.argv[1:]
    counts = counts_of(*map(Path, paths), sentences=int(sentences))
    found = halves(counts)
    low, high = np.quantile(found, [0.025, 0.975])
    row = {
        "sentences": counts.shape[1], "bleu": float(bleu_of(counts[0].sum(0))),
        "cost_deviation": float(costs(counts).std()),
        "r": float(found.mean()), "r_low": float(low), "r_high": float(high),
        "r_of_whole": float(2 * found.mean() / (1 + found.mean())),
    }  # fmt: skip
    write_tsv(Path(out), [row], [*row])
