"""The algorithm of Voita et al.'s released code, step by step: one sentence and one generation step at a time.

Relevance of every neuron, with the code's cropping and rescaling after each operation and around each residual block.
Operations are functions that torch differentiates.
"""

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from heads.model.attention import Attention
from heads.model.feedforward import FeedForward
from lrp_twin import Matrices, Sum, Twin

Parts = list[Tensor]
Core = Callable[..., Tensor]


def attended(heads: int, mask: Tensor) -> Core:
    """The attention of heads side by side, as a function of queries, keys and values."""

    def function(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        found = []
        for q, k, v in zip(*(part.chunk(heads, -1) for part in (query, key, value)), strict=True):
            found.append((q @ k.T / math.sqrt(q.shape[-1]) + mask).softmax(-1) @ v)
        return torch.cat(found, -1)

    return function


class Code2019(Matrices):
    """Every operation is a function of inputs plus eps; relevance / outputs is propagated back by gradients.

    Layer norms pass relevance on unchanged.
    """

    def __init__(self, eps: float) -> None:
        super().__init__(through_softmax=True)
        self.eps = eps

    def scaled(self, parts: Sequence[Tensor], relevance: Tensor) -> Parts:
        """Parts rescaled so that their absolute sum is the total relevance."""
        return [part * (relevance.sum() / (sum(float(p.abs().sum()) for p in parts) + self.eps)) for part in parts]

    def through(self, function: Core, parts: Sequence[Tensor], relevance: Tensor) -> Parts:
        """Input times gradient, made positive and scaled."""
        with torch.enable_grad():
            moved = [(part.detach() + self.eps).requires_grad_() for part in parts]
            outputs = function(*moved)
            gradients = torch.autograd.grad(outputs, moved, grad_outputs=relevance / outputs.detach())
        received = [(part.detach() * slope).abs() for part, slope in zip(moved, gradients, strict=True)]
        return self.scaled(received, relevance)

    def matrix(self, inputs: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor) -> Tensor:
        """A map [V, U] of inputs [Q, U]: no bias; no weight below eps."""
        raising = weight.detach().maximum(torch.full_like(weight, self.eps))
        return self.through(lambda x: x @ raising.T, [inputs], relevance)[0]

    def fork(self, stream: Tensor, change: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """A sum [Q, D]."""
        at_stream, at_change = self.through(lambda a, b: a + b, [stream, change], relevance)
        return at_stream, at_change

    def core(self, heads: int, parts: Parts, mask: Tensor, relevance: Tensor) -> Parts:
        """An attention, from heads side by side [Q, H E] to queries, keys and values."""
        return self.through(attended(heads, mask), parts, relevance)


class ReleasedTwin(Twin):
    """One sentence pair, walked as in the released code."""

    rule: Code2019

    def walk(self, step: int) -> tuple[dict[str, Tensor], float]:
        """See `Twin.walk`; starts with relevance 1."""
        met: dict[str, Tensor] = {}
        start = torch.zeros_like(self.logits)
        start[step, self.logits[step].argmax()] = 1.0
        projection = self.model.projection
        relevance = self.rule.matrix(self.output, projection.weight, projection.bias, start)
        at_memory, amount = torch.zeros_like(self.memory), 0.0
        for taken in reversed(self.sums["decoder"]):
            relevance, beyond = self.through_sum(taken, relevance, met)
            at_memory, amount = at_memory + beyond, amount + float(beyond.abs().sum())
        prefix = relevance.sum()
        if amount:
            at_memory = at_memory * amount / at_memory.abs().sum()
        relevance = at_memory
        for taken in reversed(self.sums["encoder"]):
            relevance, _ = self.through_sum(taken, relevance, met)
        return met, float(relevance.sum() + prefix)

    def through_sum(self, taken: Sum, relevance: Tensor, met: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """See `Twin.through_sum`."""
        original, beyond = relevance.abs().sum(), torch.zeros(())
        if isinstance(taken.part, Attention) and taken.part.heads == 0:
            met[taken.name] = torch.zeros(0)
            return relevance, beyond
        stream, inside = self.rule.fork(taken.stream, taken.change, relevance)
        if isinstance(taken.part, FeedForward):
            inside = self.through_feedforward(taken.part, taken.entered, inside)
        else:
            assert isinstance(taken.part, Attention), "the codes know no recurrent unit"
            inside, beyond, met[taken.name] = self.through_attention(taken, taken.part, inside)
        amount = inside.abs().sum() + stream.abs().sum()
        relevance = (inside + stream) * amount / (inside + stream).abs().sum()
        if taken.name.startswith("dec_enc"):
            factor = original / (relevance.abs().sum() + beyond.abs().sum())
            return relevance * factor, beyond * factor
        return relevance, beyond

    def through_attention(self, taken: Sum, part: Attention, relevance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """See `Twin.through_attention`; a self-attention gives all relevance to its query states."""
        outputs = torch.cat(taken.outputs, -1)
        at_heads = self.rule.matrix(outputs, part.output.weight, None, relevance)
        met = torch.stack([head.sum() for head in at_heads.chunk(part.heads, -1)])
        mask = torch.zeros(len(taken.entered), len(taken.attended)).to(outputs)
        if taken.name.startswith("dec_self"):
            mask = torch.full_like(mask, -torch.inf).triu(1)
        query, key, value = part.query.weight, part.key.weight, part.value.weight
        parts = [taken.entered @ query.T, taken.attended @ key.T, taken.attended @ value.T]
        back = self.rule.core(part.heads, parts, mask, at_heads)
        if not taken.name.startswith("dec_enc"):
            inside = self.rule.matrix(taken.entered, torch.cat([query, key, value]), None, torch.cat(back, -1))
            return inside, torch.zeros(()), met
        asking = self.rule.matrix(taken.entered, query, None, back[0])
        return asking, self.rule.matrix(taken.attended, torch.cat([key, value]), None, torch.cat(back[1:], -1)), met
