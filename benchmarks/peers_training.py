"""How fast we train compared with Hugging Face's Marian: the same sizes, text and thread, in one run.

Run by benchmarks/peers.py on a folder that has `train.en.gz` and `train.de.gz`.

Width 128, 3 + 3 layers, 4 heads, feed-forward 512, post-norm, 4,000 subwords per side, 2,048 source tokens per update,
dropout 0.1, Adam. Both start from the same weights, and their losses without dropout are compared first; then they take
turns, update by update, on the same pairs. Seconds are CPU seconds; the loss is the mean over the last half of updates.
"""

import gzip
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import MarianConfig, MarianMTModel

from heads.config.trainings import BpeSettings, LengthSettings, ModelSettings, TrainingSettings
from heads.model.encoder import sinusoids
from heads.model.shape import unpruned_shape
from heads.model.transformer import Transformer
from heads.text.batches import Batch, Pairs
from heads.text.encoding import encode_file
from heads.text.special_ids import BOS, EOS, PAD
from heads.text.vocabulary import Tokens, Vocabulary, train_bpe
from heads.training.loop import Training
from heads.training.schedule import TrainingPlan

SUBWORDS, LONGEST = 4000, 100
MODEL = ModelSettings(layers=3, heads=4, width=128, feedforward=512, dropout=0.1, pre_norm=False)
TRAINING = TrainingSettings(
    batch_tokens=2048,
    micro_batch_tokens=2048,
    max_subwords=LONGEST,
    label_smoothing=0.1,
    learning_rate=0.00212132,
    warmup_updates=200,
)


def encoded(folder: Path, place: Path) -> Pairs:
    """The training pairs of a corpus, in subwords learnt from it."""
    sides = []
    for side, language in (("source", "en"), ("target", "de")):
        text, model, tokens = (place / f"{side}.{kind}" for kind in ("txt", "model", "safetensors"))
        text.write_bytes(gzip.decompress((folder / f"train.{language}.gz").read_bytes()))
        train_bpe(text, model, BpeSettings(), SUBWORDS)
        encode_file(text, Vocabulary(model), tokens)
        sides.append(Tokens(tokens))
    source, target = sides
    return Pairs(source, target, LONGEST)


def marian(ours: Transformer, attention_dropout: float) -> MarianMTModel:
    """Their model with our weights; parameters that ours lacks (biases in attention) start at zero."""
    sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (
        ("layers", MODEL.layers), ("attention_heads", MODEL.heads), ("ffn_dim", MODEL.feedforward))}  # fmt: skip
    theirs = MarianMTModel(
        MarianConfig(
            vocab_size=SUBWORDS, decoder_vocab_size=SUBWORDS, d_model=MODEL.width, activation_function="relu",
            dropout=MODEL.dropout, attention_dropout=attention_dropout, activation_dropout=MODEL.dropout,
            scale_embedding=True, max_position_embeddings=2 * LONGEST, share_encoder_decoder_embeddings=False,
            tie_word_embeddings=False, pad_token_id=PAD, bos_token_id=BOS, eos_token_id=EOS,
            decoder_start_token_id=BOS, forced_eos_token_id=None, attn_implementation="sdpa", use_cache=False, **sides,
        )
    )  # fmt: skip
    for parameter in theirs.parameters():
        if parameter.dim() == 1:
            nn.init.zeros_(parameter)
    core = theirs.model
    with torch.no_grad():
        for name, part in (("source", core.encoder), ("target", core.decoder)):
            part.embed_tokens.weight.copy_(getattr(ours, f"{name}_embedding").subwords.weight)
            part.embed_positions.weight.copy_(sinusoids(2 * LONGEST, MODEL.width))
        theirs.lm_head.weight.copy_(ours.projection.weight)
        for mine, other in zip(
            [*ours.encoder, *ours.decoder], [*core.encoder.layers, *core.decoder.layers], strict=True
        ):
            pairs = [(mine.self_attention, other.self_attn), (mine.feedforward.inner, other.fc1),
                (mine.feedforward.outer, other.fc2), (mine.self_residual.norm, other.self_attn_layer_norm),
                (mine.feedforward_residual.norm, other.final_layer_norm)]  # fmt: skip
            if hasattr(mine, "cross_attention"):
                pairs += [(mine.cross_attention, other.encoder_attn),
                    (mine.cross_residual.norm, other.encoder_attn_layer_norm)]  # fmt: skip
            for one, its in pairs:
                names = {"query": "q_proj", "key": "k_proj", "value": "v_proj", "output": "out_proj"}
                for key, value in one.state_dict().items():
                    first, *rest = key.split(".")
                    its.get_parameter(".".join([names.get(first, first), *rest])).copy_(value)
    return theirs


def their_logits(model: MarianMTModel, batch: Batch) -> Tensor:
    """Marian's logits [B, T, V]."""
    output = model(
        input_ids=batch.source,
        attention_mask=batch.source_mask.long(),
        decoder_input_ids=batch.target_input,
        decoder_attention_mask=batch.target_mask.long(),
    )
    logits: Tensor = output.logits
    return logits


def their_step(model: MarianMTModel, optimizer: torch.optim.Optimizer, pairs: Pairs) -> Callable[..., float]:
    """A function that makes one update of Marian with a given learning rate."""

    def step(members: NDArray[np.int64], rate: float) -> float:
        """Update the weights on these pairs and return the loss before it."""
        optimizer.param_groups[0]["lr"] = rate
        optimizer.zero_grad(set_to_none=True)
        batch = pairs.batch(members)
        logits = their_logits(model, batch)
        loss = F.cross_entropy(
            logits.flatten(0, 1),
            batch.target_output.masked_fill(~batch.target_mask, -100).flatten(),
            label_smoothing=TRAINING.label_smoothing,
        )
        loss.backward()
        optimizer.step()
        return float(loss.detach())

    return step


def first_losses(ours: Transformer, theirs: MarianMTModel, batch: Batch) -> tuple[float, float]:
    """The cross-entropy of both on one batch without dropout, which is equal if the models are the same."""
    with torch.no_grad():
        states = ours.eval()(batch.source, batch.source_mask, batch.target_input)
        logits = [ours.projection(states), their_logits(theirs.eval(), batch)]
    one, other = (
        float(F.cross_entropy(each[batch.target_mask], batch.target_output[batch.target_mask])) for each in logits
    )
    return one, other


def compare(folder: Path, updates: int, attention_dropout: float) -> None:
    """Train all in turn; print CPU seconds, target tokens per CPU second, losses and ratios."""
    with TemporaryDirectory() as place:
        pairs = encoded(folder, Path(place))
    torch.manual_seed(1)
    sizes = MODEL.model_copy(update={"attention_dropout": attention_dropout})
    first = Transformer(unpruned_shape(sizes, SUBWORDS, SUBWORDS))
    theirs = marian(first, attention_dropout)
    length = LengthSettings(updates=updates, patience=0, average_last=1, average_every=1)
    order = [m for epoch in range(1 + updates // 100) for m in pairs.epoch(TRAINING.batch_tokens, 1, epoch)][:updates]
    print("first losses: {:.6f} ours, {:.6f} theirs".format(*first_losses(first, theirs, pairs.batch(order[0]))))
    trainings = {}
    for precision in ("fp32", "bf16"):
        ours = Transformer(first.shape)
        ours.load_state_dict(first.state_dict())
        plan = TrainingPlan(TRAINING.model_copy(update={"precision": precision}), length, 1, 0, torch.device("cpu"))
        trainings[f"ours {precision}"] = Training(ours.train(), pairs, plan)
    optimizer = torch.optim.Adam(theirs.train().parameters(), betas=(0.9, 0.98), eps=1e-9, fused=True)
    step = their_step(theirs, optimizer, pairs)
    seconds = dict.fromkeys(["theirs", *trainings], 0.0)
    losses: dict[str, list[float]] = {name: [] for name in seconds}
    tokens = 0
    for number, members in enumerate(order):
        rate = 0.0
        for name in [*trainings, "theirs"]:
            started = time.process_time()
            if name == "theirs":
                losses[name].append(step(members, rate))
            else:
                row = trainings[name].step(members)
                rate = float(row["learning_rate"])
                losses[name].append(float(row["loss"]))
            if number >= 3:
                seconds[name] += time.process_time() - started
        tokens += int(pairs.target.lengths[members].sum() + len(members)) if number >= 3 else 0
    for name, spent in seconds.items():
        print(
            f"{name:10} {spent:8.2f} CPU s  {tokens / spent:8,.0f} target tokens/s  "
            f"{seconds['theirs'] / spent:5.2f} times  loss {np.mean(losses[name][updates // 2 :]):.4f}"
        )
