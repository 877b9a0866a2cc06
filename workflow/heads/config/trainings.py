"""Sections of an experiment on vocabularies, the model and its trainings: types, bounds, defaults, descriptions.

The defaults are the paper's values. The order of keys is that of config.yaml and of the settings files of stages.
"""

from typing import Annotated

from pydantic import Field

from heads.config.fields import (
    AtLeastZero,
    BelowOne,
    Closed,
    Count,
    CountOrZero,
    EachOnce,
    Integer,
    Name,
    Number,
    Positive,
    PositiveShare,
    Share,
    Text,
    YesNo,
    one_of,
    required,
    section_of,
    setting,
)


class BpeSettings(Closed):
    """How the two vocabularies are learnt."""

    source_subwords: Annotated[Integer, Field(ge=8)] = setting(
        32000, "separate vocabularies of about 32k [second-hand]"
    )
    target_subwords: Annotated[Integer, Field(ge=8)] = setting(32000, "the same number [second-hand]")
    character_coverage: PositiveShare = setting(1.0, "OURS: every character of the training text has a subword")
    # SentencePiece accepts no fewer.
    train_sentences: Annotated[Integer, Field(ge=101)] = setting(
        5000000, "OURS: at most this many sentences are read to learn the subwords"
    )
    seed: CountOrZero = setting(1, "of the draw of these sentences")


class ModelSettings(Closed):
    """Sizes of the unpruned Transformer."""

    layers: Count = setting(6, "of the encoder, and of the decoder")
    heads: Count = setting(8, "of each attention layer")
    width: Count = setting(512, "of embeddings and states; a multiple of heads")
    feedforward: Count = setting(2048, "width inside the feed-forward layers")
    dropout: BelowOne = setting(0.1, "share of values set to zero in training")
    attention_dropout: BelowOne = setting(0.1, "share of attention weights set to zero in training; 0 is faster")
    pre_norm: YesNo = setting(True, '[repo]; the paper says "base as in Vaswani et al.", which is post-norm: false')


class TrainingSettings(Closed):
    """Settings shared by all trainings: batches, loss, optimiser, schedule, evaluation."""

    batch_tokens: Count = setting(16000, "source tokens per update [second-hand]")
    micro_batch_tokens: Count = setting(
        4000, "OURS: source tokens on the device at once; gradients are accumulated up to batch_tokens"
    )
    max_subwords: Count = setting(200, "longer pairs are left out [repo]")
    label_smoothing: BelowOne = setting(0.1, "share of the probability spread evenly over all subwords")
    optimizer: Annotated[str, one_of("adam", "muon")] = setting(
        "adam", "the paper's. OURS: muon updates the matrices of all layers, Adam the rest, at the same rate"
    )
    adam_beta1: BelowOne = setting(0.9, "decay of the mean of gradients")
    adam_beta2: BelowOne = setting(0.98, "the paper; the released scripts have 0.998 [repo]")
    adam_epsilon: Positive = setting(1e-9, "added to the root of the mean of their squares")
    learning_rate: Positive = setting(0.0316228, "at its peak, after warmup_updates; then it falls as 1 / sqrt(update)")
    learning_rate_scale: AtLeastZero = setting(
        0.0,
        "in its place the paper's formula: this * min(update^-0.5, update * warmup^-1.5), whatever the width. The "
        "paper has 4, which is 0.0316228 at the peak; 0: learning_rate",
    )
    warmup_updates: Count = setting(
        16000,
        "updates in which the rate rises. OURS: fine-tuning resumes the schedule where the baseline's ended; the "
        "authors' scripts restart it [repo].",
    )
    decay_share: Share = setting(
        0.0, "OURS: the rate falls to zero over this last share of a training's updates; 0: never"
    )
    rewarm_updates: CountOrZero = setting(
        0,
        "OURS: updates in which the rate rises from zero again when a trained model is fine-tuned, since the moments "
        "of its gradients are lost",
    )
    precision: Annotated[str, one_of("fp32", "bf16")] = setting(
        "bf16",
        "of products in training, if faster on this processor, and of states on a GPU; weights are fp32. "
        "Alternative: fp32",
    )
    evaluate_every: Count = setting(2048, "updates between two evaluations on dev [repo: checkpoint every 2048]")
    dev_bleu_sentences: CountOrZero = setting(
        500, "OURS: number of dev sentences, from the first on, that are translated greedily; 0: none"
    )

    @property
    def peak(self) -> float:
        """The highest learning rate of the schedule."""
        scale = self.learning_rate_scale
        return scale / self.warmup_updates**0.5 if scale else self.learning_rate


class LengthSettings(Closed):
    """How long a model is trained, when training stops early, and which last states are averaged."""

    updates: Count = required("how long")
    patience: CountOrZero = required("stop after this many evaluations without a better dev loss; 0: never")
    average_last: Count = required("number of last states that are averaged; 1: none")
    average_every: Count = required("updates between two of them")


class UnprunedSettings(LengthSettings):
    """How the unpruned model is trained, and the updates after which its weights are kept as checkpoints."""

    updates: Count = setting(200000, 'OURS: the paper gives no number, the scripts say "stop manually" [repo]')
    minutes: AtLeastZero = setting(
        0.0, "OURS: at most; its first 250 updates decide how many of `updates` fit in; 0: all"
    )
    patience: CountOrZero = setting(20, "OURS: stop after this many evaluations without a better dev loss; 0: never")
    average_last: Count = setting(
        5,
        "OURS: number of last states averaged, also after an early stop; theirs is not stated [repo]; 1: none",
    )
    average_every: Count = setting(2048, "updates between two of these states")
    checkpoint_updates: Annotated[tuple[Count, ...], EachOnce] = setting(
        (),
        "Updates after which weights are kept for the stage checkpoints (Michel et al., Fig 5); a change trains again. "
        "For their epochs 1 2 3 5 10 20 [second-hand], give the updates that end them. Empty: the finished model only.",
    )


class BaselineSettings(UnprunedSettings):
    """The unpruned model: how it is trained here, or where it is imported from."""

    pretrained: Text = setting(
        "",
        "OURS: a folder written by transformers' save_pretrained: a MarianMTModel with its tokeniser (OPUS-MT's), an "
        "M2M100, NLLB, BART, mBART or T5, or, if the corpus has labels, a BERT; its vocabularies and weights replace "
        "bpe, model and this training; empty: train",
    )
    fine_tuning_updates: CountOrZero = setting(
        0, "OURS: that model is first fine-tuned on this corpus for this many updates; 0: it is used as it is"
    )
    decoder: Annotated[str, one_of("", "self_attention")] = setting(
        "",
        "OURS: self_attention replaces that model's recurrent units with new attention, trained here; empty: as it is",
    )
    new_weights_rate: Positive = setting(
        10.0, "OURS: the learning rate of such new weights, as a multiple of that of all others"
    )
    labels: Annotated[tuple[Name, ...], EachOnce] = setting(
        (), "of such a BERT, in the order of its classifier; empty: as named in its config.json"
    )
    prefix: Text = setting(
        "", 'what each source begins with: ">>ru<<" if that model has several target languages, or a task of T5'
    )
    source_language: Text = setting("", "that model's name for it, if it has many: en, eng_Latn or en_XX")
    target_language: Text = setting("", "the same for the target: de, deu_Latn or de_DE")


class HardConcrete(Closed):
    """The distribution of a gate; `low` < 0 and `high` > 1 are the ends of the stretched interval."""

    temperature: Positive = setting(0.33, "[repo]")
    low: Annotated[Number, Field(lt=0)] = setting(-0.1, "[repo]")
    high: Annotated[Number, Field(gt=1)] = setting(1.1, "[repo]")
    log_alpha_init: Number = setting(
        3.0, "OURS: P(open) 0.98 at the start; the released code starts half closed, U(-0.61, 0.61)"
    )


class SubsetSettings(Closed):
    """Gates for an exact number of heads: how they learn and cool down, and whether they are binary in training."""

    learning_rate: Positive = setting(0.2, "of their logits; 0.5 for BERT [repo]")
    temperature_first: Positive = setting(
        0.1, "falls by the same factor each update; for BERT they start at 1000 [repo]"
    )
    temperature_last: Positive = setting(1e-8, "where it stays [repo]")
    cooldown_share: PositiveShare = setting(
        0.6, "OURS: of the updates; theirs are 15000 [repo], after which heads are almost fixed"
    )
    straight_through: YesNo = setting(False, "true: gates are zeros and ones in training too")


class GatesSettings(Closed):
    """The fine-tuning with gates."""

    updates: Count = setting(50000, "OURS")
    average_last: Count = setting(5, "as in baseline, so that both sides of a comparison are averaged")
    average_every: Count = setting(2048, "as in baseline")
    gate_learning_rate: Positive = setting(0.01, "OURS: gates have their own rate, which is constant")
    record_every: Count = setting(500, "updates between two records of the gates, for the animation")
    fixed_gates_share: BelowOne = setting(
        0.0,
        "OURS: in this last share of updates, gates are the zeros and ones of the finished model and cost nothing; the "
        "rest of the model adapts to them",
    )
    hard_concrete: HardConcrete = section_of(HardConcrete, "the distribution of a gate, stretched from low to high")
    subset: SubsetSettings = section_of(
        SubsetSettings,
        "gates for an exact number of heads, dsp-12 (Li et al. 2021); their values for IWSLT [repo]",
    )

    @property
    def length(self) -> LengthSettings:
        """How long it lasts: as said, since gates never stop early."""
        return LengthSettings(
            updates=self.updates, patience=0, average_last=self.average_last, average_every=self.average_every
        )


class ScratchSettings(LengthSettings):
    """The heads that gates left, trained from scratch."""

    updates: Count = setting(250000, "OURS: as many as the pruned model had, baseline and gates together")
    patience: CountOrZero = setting(20, "as in baseline")
    average_last: Count = setting(5, "as in baseline")
    average_every: Count = setting(2048, "as in baseline")
    learning_rate_factor: Positive = setting(
        1.0, "OURS: the rate as a multiple of that under training, if that is for a pretrained model"
    )

    def trained_by(self, training: TrainingSettings) -> TrainingSettings:
        """These training settings with the learning rate of models trained from scratch."""
        return training.model_copy(
            update={"learning_rate": training.peak * self.learning_rate_factor, "learning_rate_scale": 0.0}
        )


class SelectedSettings(LengthSettings):
    """The baseline cut down to chosen heads and fine-tuned."""

    updates: Count = setting(50000, "as many as for gates")
    patience: CountOrZero = setting(0, "0: never stop early, as for gates")
    average_last: Count = setting(5, "as in baseline")
    average_every: Count = setting(2048, "as in baseline")


class ParserSettings(Closed):
    """Where the Stanza models come from, and how they are trained if `model` is empty."""

    model: Text = setting(
        "",
        "A folder of Stanza models; empty: train them on the corpus's parser_trees. With a network, this makes a "
        "folder:\n"
        """python -c "import stanza; stanza.download('en', model_dir='data/stanza', """
        """processors='tokenize,pos,lemma,depparse')\"""",
    )
    train_sentences: CountOrZero = setting(
        0, "at most, from the whole treebank, one in 20 of them to pick the best step; 0: all"
    )
    tagger_steps: Count = setting(20000, "OURS: at most; it stops when the tags no longer improve")
    tagger_batch_sentences: Count = setting(250, "Stanza's default, like all sizes below")
    parser_steps: Count = setting(20000, "OURS: at most; it stops when the trees no longer improve")
    parser_batch_words: Count = setting(5000, "words of one step")
    width: Annotated[Integer, Field(ge=2)] = setting(400, "of the LSTMs and scorers; half of it for characters")
    embedding: Count = setting(100, "of words, characters and tags; OURS: no pretrained vectors")
    dropout: BelowOne = setting(0.5, "share of values set to zero in training")
    word_dropout: BelowOne = setting(0.33, "share of words hidden in training")
    seed: CountOrZero = setting(1, "of the parser's training")
