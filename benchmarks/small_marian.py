"""Train a small MarianMTModel with transformers on a corpus of files, as an example for `make pretrained`.

Run: python benchmarks/small_marian.py FOLDER OUT on a folder that has `{train,dev}.{en,de}.gz` (Multi30k: 20 minutes on
one idle core). None of our own code is used: SentencePiece learns the subwords, and transformers segments the text,
computes the loss and translates. Its `save_pretrained` writes OUT, which looks like a folder of OPUS-MT: two
SentencePiece models with their subwords in one vocab.json, tied matrices, SiLU, post-norm, and padding as the last id,
with an embedding of zeros, from which the decoder starts. OUT is written at every evaluation on the dev set; a training
that was killed resumes from there, with fresh moments of the optimiser.
"""

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import sacrebleu
import sentencepiece
import torch
import torch.nn.functional as F
from transformers import GenerationConfig, MarianConfig, MarianMTModel, MarianTokenizer

LAYERS, HEADS, WIDTH, FEEDFORWARD, DROPOUT = 3, 4, 128, 512, 0.1
SUBWORDS = 3000
UPDATES, BATCH_TOKENS, LONGEST = 2000, 2048, 100
PEAK_RATE, WARMUP = 0.002, 200
LOOK_EVERY, DEV_SENTENCES = 200, 200

STATE = "trainer_state.json"

Pair = tuple[list[int], list[int]]


def tokenizer_of(texts: dict[str, list[str]], place: Path) -> MarianTokenizer:
    """A tokeniser with subwords learnt from both sides in one numbering, </s> and <unk> first and <pad> last."""
    numbers = {"</s>": 0, "<unk>": 1}
    for side, lines in texts.items():
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=str(place / side), vocab_size=SUBWORDS, model_type="unigram",
            character_coverage=1.0, bos_id=-1, eos_id=0, unk_id=1, minloglevel=2, num_threads=1,
        )  # fmt: skip
        (place / f"{side}.model").rename(place / f"{side}.spm")
        subwords = sentencepiece.SentencePieceProcessor(model_file=str(place / f"{side}.spm"))
        for index in range(subwords.get_piece_size()):
            numbers.setdefault(subwords.id_to_piece(index), len(numbers))
    numbers["<pad>"] = len(numbers)
    (place / "vocab.json").write_text(json.dumps(numbers, ensure_ascii=False), encoding="utf-8")
    sides = (str(place / name) for name in ("source.spm", "target.spm", "vocab.json"))
    return MarianTokenizer(*sides, model_max_length=512)


def fresh_model(tokenizer: MarianTokenizer) -> MarianMTModel:
    """A random model with the settings of OPUS-MT's configurations."""
    pad, size = tokenizer.pad_token_id, len(tokenizer.get_vocab())
    sides = {f"{side}_{name}": value for side in ("encoder", "decoder") for name, value in (
        ("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", FEEDFORWARD))}  # fmt: skip
    model = MarianMTModel(
        MarianConfig(
            vocab_size=size, decoder_vocab_size=size, d_model=WIDTH, activation_function="swish", dropout=DROPOUT,
            attention_dropout=0.0, activation_dropout=0.0, scale_embedding=True, max_position_embeddings=512,
            share_encoder_decoder_embeddings=True, pad_token_id=pad, eos_token_id=tokenizer.eos_token_id,
            bos_token_id=tokenizer.eos_token_id, decoder_start_token_id=pad, forced_eos_token_id=None, **sides,
        )
    )  # fmt: skip
    torch.nn.init.normal_(model.model.shared.weight, std=WIDTH**-0.5)
    model.generation_config = GenerationConfig(
        num_beams=4, max_length=512, bad_words_ids=[[pad]], pad_token_id=pad, eos_token_id=tokenizer.eos_token_id,
        bos_token_id=tokenizer.eos_token_id, decoder_start_token_id=pad,
    )  # fmt: skip
    return model


def batches(pairs: list[Pair], generator: np.random.Generator) -> Iterator[list[Pair]]:
    """Endless batches of pairs of similar length, with at most BATCH_TOKENS per side; every pair once per epoch."""
    while True:
        order = sorted(pairs, key=lambda pair: (len(pair[0]) + len(pair[1]), generator.random()))
        found: list[list[Pair]] = [[]]
        for pair in order:
            if (len(found[-1]) + 1) * max(len(pair[0]), len(pair[1])) > BATCH_TOKENS:
                found.append([])
            found[-1].append(pair)
        for index in generator.permutation(len(found)):
            yield found[index]


def padded(rows: list[list[int]], fill: int) -> torch.Tensor:
    """The rows of ids, padded to the shape [rows, longest]."""
    longest = max(map(len, rows))
    return torch.tensor([row + [fill] * (longest - len(row)) for row in rows])


def loss_of(model: MarianMTModel, batch: list[Pair], smoothing: float) -> torch.Tensor:
    """Mean cross-entropy per target token, in nats."""
    pad = model.config.pad_token_id
    source, target = (padded([pair[side] for pair in batch], pad) for side in (0, 1))
    before = torch.cat([torch.full_like(target[:, :1], pad), target[:, :-1]], 1)
    logits = model(input_ids=source, attention_mask=(source != pad).long(), decoder_input_ids=before, use_cache=False)
    return F.cross_entropy(logits.logits.flatten(0, 1), target.flatten(), ignore_index=pad, label_smoothing=smoothing)


def rate_at(update: int) -> float:
    """The learning rate at an update: linear warm-up, then linear decay to zero."""
    return PEAK_RATE * min(update / WARMUP, (UPDATES - update) / (UPDATES - WARMUP))


@torch.no_grad()
def dev_loss(model: MarianMTModel, dev: list[Pair]) -> float:
    """Loss on the dev set without label smoothing, approximately nats per target token."""
    model.eval()
    losses = [float(loss_of(model, dev[start : start + 100], 0.0)) for start in range(0, len(dev), 100)]
    model.train()
    return float(np.mean(losses))


def dev_bleu(model: MarianMTModel, tokenizer: MarianTokenizer, texts: dict[str, list[str]]) -> float:
    """BLEU on the first dev sentences, with the model's own search."""
    model.eval()
    inputs = tokenizer(texts["source"][:DEV_SENTENCES], return_tensors="pt", padding=True)
    found = tokenizer.batch_decode(model.generate(**inputs, max_length=LONGEST), skip_special_tokens=True)
    return float(sacrebleu.corpus_bleu(found, [texts["target"][:DEV_SENTENCES]]).score)


def trained(texts: dict[str, dict[str, list[str]]], out: Path) -> None:
    """Train, with regular evaluations on the dev set, and save the model at each."""
    with TemporaryDirectory() as place:
        state = out / STATE
        before = json.loads(state.read_text(encoding="utf-8"))["global_step"] if state.exists() else 0
        tokenizer = MarianTokenizer.from_pretrained(out) if before else tokenizer_of(texts["train"], Path(place))
        pairs = {}
        for split, sides in texts.items():
            source = tokenizer(sides["source"])["input_ids"]
            target = tokenizer(text_target=sides["target"])["input_ids"]
            pairs[split] = [pair for pair in zip(source, target, strict=True) if max(map(len, pair)) <= LONGEST]
        model = MarianMTModel.from_pretrained(out) if before else fresh_model(tokenizer)
        optimizer = torch.optim.Adam(model.parameters(), betas=(0.9, 0.98), eps=1e-9)
        order = islice(batches(pairs["train"], np.random.default_rng(1)), before, None)
        model.train()
        for update in range(before + 1, UPDATES + 1):
            for group in optimizer.param_groups:
                group["lr"] = rate_at(update)
            loss = loss_of(model, next(order), 0.1)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            with torch.no_grad():
                model.model.shared.weight[model.config.pad_token_id] = 0.0
            if update % LOOK_EVERY == 0 or update == UPDATES:
                found = f"loss {float(loss):.3f}, dev loss {dev_loss(model, pairs['dev']):.3f}"
                print(f"update {update}: {found}, {time.process_time():.0f} CPU s", flush=True)
                model.save_pretrained(out)
                tokenizer.save_pretrained(out)
                state.write_text(json.dumps({"global_step": update}), encoding="utf-8")
        print(f"BLEU {dev_bleu(model, tokenizer, texts['dev']):.2f} on the first {DEV_SENTENCES} dev sentences")


def main() -> None:
    """Read the text and train."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="holds {train,dev}.{en,de}.gz")
    parser.add_argument("out", type=Path, help="the model's folder")
    arguments = parser.parse_args()
    torch.manual_seed(1)
    texts: dict[str, dict[str, list[str]]] = {}
    for split in ("train", "dev"):
        texts[split] = {}
        for side, language in (("source", "en"), ("target", "de")):
            with gzip.open(arguments.folder / f"{split}.{language}.gz", "rt", encoding="utf-8") as lines:
                texts[split][side] = [line.strip() for line in lines]
    trained(texts, arguments.out)


if __name__ == "__main__":
    main()
