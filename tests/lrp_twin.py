"""A second, plain implementation of `heads.analysis.lrp` to compare with: one sentence and one step at a time.

It follows the formulas in each rule's paper, with neuron relevances and all their divisions written out, on its own
forward pass. Layer norms, sums and attentions are turned into matrices of contributions. Only the weights are taken
from the model.
"""

import itertools
import math
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from heads.model.attention import Attention
from heads.model.encoder import sinusoids
from heads.model.feedforward import FeedForward
from heads.model.shape import ModelShape
from heads.model.ssru import Ssru
from heads.model.sublayers import Layer, Residual, SelfAttention
from heads.model.transformer import Transformer

STABILISER = 1e-12


def ratio(relevance: Tensor, total: Tensor) -> Tensor:
    """Relevance per unit of contribution."""
    return relevance / (total + STABILISER * (1.0 - 2.0 * (total < 0)))


class Matrices:
    """App. A.2, in proportion to contributions with biases left out, by the matrices of all operations."""

    def __init__(self, *, through_softmax: bool) -> None:
        self.through_softmax = through_softmax

    def share(self, contributions: Tensor, bias: Tensor, relevance: Tensor) -> Tensor:
        """Relevance [.., U] of inputs from that of outputs [.., V], given the contributions [.., V, U]."""
        return (contributions * ratio(relevance, contributions.sum(-1))[..., None]).sum(-2)

    def matrix(self, inputs: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor) -> Tensor:
        """Back through a linear map with `weight` [V, U], for inputs [Q, U]."""
        bias = torch.zeros(len(weight)).to(weight) if bias is None else bias
        return self.share(inputs[..., None, :] * weight, bias, relevance)

    def norm(self, norm: nn.Module, inputs: Tensor, relevance: Tensor) -> Tensor:
        """Back through a layer norm [Q, D], by the matrix (identity - 1/D) * gain / standard deviation."""
        if not isinstance(norm, nn.LayerNorm):  # without mean each output has one input
            return relevance
        slope = norm.weight / (inputs.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
        centring = torch.eye(inputs.shape[-1]).to(inputs) - 1 / inputs.shape[-1]
        return self.share(slope[..., None] * centring * inputs[..., None, :], norm.bias, relevance)

    def fork(self, stream: Tensor, change: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Back through the sum of two."""
        shared = self.share(torch.stack([stream, change], -1)[..., None, :], torch.zeros(1), relevance[..., None])
        return shared[..., 0], shared[..., 1]

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, relevance: Tensor) -> list[Tensor]:
        """Back through one head: to queries [Q, E], keys [K, E] and values [K, E].

        mask: [Q, K], added to scores. Through the softmax all three contribute by their Jacobian matrices.
        """

        def core(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
            return (query @ key.T / math.sqrt(query.shape[-1]) + mask).softmax(-1) @ value

        parts = (query, key, value)
        with torch.enable_grad():
            jacobians = torch.autograd.functional.jacobian(core, parts)
        contributions = [(matrix * part).flatten(2) for matrix, part in zip(jacobians, parts, strict=True)]
        if not self.through_softmax:
            contributions[:2] = [torch.zeros_like(part) for part in contributions[:2]]
        flat = torch.cat(contributions, -1).flatten(0, 1)
        shared = self.share(flat, torch.zeros(len(flat)).to(flat), relevance.flatten())
        sizes = [part.numel() for part in parts]
        return [subword.reshape(part.shape) for subword, part in zip(shared.split(sizes), parts, strict=True)]


class Plain(Matrices):
    """The same through values alone, with the matrices multiplied out by hand: the obvious version."""

    def __init__(self) -> None:
        super().__init__(through_softmax=False)

    def matrix(self, inputs: Tensor, weight: Tensor, bias: Tensor | None, relevance: Tensor) -> Tensor:
        """The sum over outputs as a product."""
        return inputs * (ratio(relevance, inputs @ weight.T) @ weight)

    def norm(self, norm: nn.Module, inputs: Tensor, relevance: Tensor) -> Tensor:
        """The matrix is diagonal except for the mean."""
        if not isinstance(norm, nn.LayerNorm):
            return relevance
        slope = norm.weight / (inputs.var(-1, correction=0, keepdim=True) + norm.eps).sqrt()
        spread = slope * ratio(relevance, (inputs - inputs.mean(-1, keepdim=True)) * slope)
        return inputs * (spread - spread.mean(-1, keepdim=True))

    def fork(self, stream: Tensor, change: Tensor, relevance: Tensor) -> tuple[Tensor, Tensor]:
        """Two summands."""
        factor = ratio(relevance, stream + change)
        return stream * factor, change * factor

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, relevance: Tensor) -> list[Tensor]:
        """A linear map of the values."""
        weights = (query @ key.T / math.sqrt(query.shape[-1]) + mask).softmax(-1)
        at_values = value * (weights.T @ ratio(relevance, weights @ value))
        return [torch.zeros_like(query), torch.zeros_like(key), at_values]


class Products(Matrices):
    """The paper's rule for products, loop by loop: of v = product of u', each u gets u / sum of u'."""

    def __init__(self) -> None:
        super().__init__(through_softmax=True)

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, relevance: Tensor) -> list[Tensor]:
        """Sum of products, product, softmax unchanged, sum of products, product."""
        weights = (query @ key.T / math.sqrt(query.shape[-1]) + mask).softmax(-1)
        back = [torch.zeros_like(part) for part in (query, key, value)]
        for q, k in itertools.product(range(len(query)), range(len(key))):
            at_weight = torch.zeros(()).to(query)
            for e in range(value.shape[1]):
                product, both = weights[q, k] * value[k, e], weights[q, k] + value[k, e]
                amount = product * ratio(relevance[q, e], weights[q] @ value[:, e])
                back[2][k, e] += value[k, e] * ratio(amount, both)
                at_weight += weights[q, k] * ratio(amount, both)
            for f in range(query.shape[1]):
                amount = query[q, f] * key[k, f] * ratio(at_weight, query[q] @ key[k])
                back[0][q, f] += query[q, f] * ratio(amount, query[q, f] + key[k, f])
                back[1][k, f] += key[k, f] * ratio(amount, query[q, f] + key[k, f])
        return back


class Signs(Matrices):
    """Alpha-beta, z-plus with alpha 1: positive and negative contributions share separate parts of the relevance."""

    def __init__(self, alpha: float, *, through_softmax: bool) -> None:
        super().__init__(through_softmax=through_softmax)
        self.alpha = alpha

    def share(self, contributions: Tensor, bias: Tensor, relevance: Tensor) -> Tensor:
        """One output after the other."""
        rows, inputs = contributions.reshape(-1, *contributions.shape[-2:]), contributions.shape[-1]
        shared = torch.zeros(len(rows), inputs, dtype=contributions.dtype)
        for place, (matrix, amounts) in enumerate(zip(rows, relevance.reshape(len(rows), -1), strict=True)):
            for row, amount in zip(matrix, amounts, strict=True):
                raising, lowering = row * (row > 0), row * (row < 0)
                alpha = self.alpha if self.alpha == 1 or (lowering.any() and raising.any()) else float(raising.any())
                shared[place] += alpha * amount * raising / max(float(raising.sum()), 1e-300)
                shared[place] += (1 - alpha) * amount * lowering / min(float(lowering.sum()), -1e-300)
        return shared.reshape(*contributions.shape[:-2], inputs)


class AttnLrp(Matrices):
    """AttnLRP: biases count in denominators, products split in half, the softmax by its expansion (prop. 3.1-3.4)."""

    def share(self, contributions: Tensor, bias: Tensor, relevance: Tensor) -> Tensor:
        """An output of zero has no relevance to share."""
        total = contributions.sum(-1) + bias
        factor = torch.where(relevance == 0, 0.0, relevance / torch.where(total == 0, 1.0, total))
        return (contributions * factor[..., None]).sum(-2)

    def attention(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor, relevance: Tensor) -> list[Tensor]:
        """The propositions one by one, in relevances."""
        scores = query @ key.T / math.sqrt(query.shape[-1])
        weights = (scores + mask).softmax(-1)
        if not self.through_softmax:
            at_values = value * (weights.T @ (relevance / (weights @ value)))
            return [torch.zeros_like(query), torch.zeros_like(key), at_values]
        products = weights[:, :, None] * value * (relevance / (2 * weights @ value))[:, None]
        at_weights, at_values = products.sum(2), products.sum(0)
        at_scores = scores * (at_weights - weights * at_weights.sum(1, keepdim=True))
        products = query[:, None] * key * (at_scores / (2 * query @ key.T))[:, :, None]
        return [products.sum(1), products.sum(0), at_values]


@dataclass
class Sum:
    """A residual sum: its input, and the sub-layer output that was computed from `attended` and added."""

    name: str
    residual: Residual
    part: Attention | FeedForward | Ssru
    stream: Tensor
    entered: Tensor
    attended: Tensor
    change: Tensor
    outputs: list[Tensor]
    """[Q, E], of each head; empty for other parts."""


class Twin:
    """One sentence pair in a model, with everything needed for walks from its generation steps."""

    def __init__(self, model: Transformer, source: Tensor, target: Tensor, rule: Matrices) -> None:
        """source: [S] ids. target: [T] ids of the decoder's input."""
        self.model, self.rule = model, rule
        # What is not divided by the root of a head's width is as if queries were longer by it.
        self.query_factor = 1.0 if model.shape.scaled_products else math.sqrt(model.shape.head_width)
        self.added: dict[str, Tensor] = {}
        """By attention: what is added to the products of each head [H, Q, K]."""
        self.sums: dict[str, list[Sum]] = {"encoder": [], "decoder": []}
        states = embedded(model.shape, model.source_embedding.subwords.weight, source)
        for layer in cast(list[Layer], model.encoder):
            states = self.attend("encoder", f"enc_self.{layer.index}", states, layer)
            states = self.transform("encoder", f"enc_ffn.{layer.index}", states, layer)
        self.encoder_top, self.memory = states, model.encoder_norm(states)
        states = embedded(model.shape, model.target_embedding.subwords.weight, target)
        for layer in cast(list[Layer], model.decoder):
            past = self.remember if model.shape.recurrent else self.attend
            states = past("decoder", f"dec_self.{layer.index}", states, layer)
            states = self.attend("decoder", f"dec_enc.{layer.index}", states, layer)
            states = self.transform("decoder", f"dec_ffn.{layer.index}", states, layer)
        self.decoder_top, self.output = states, model.decoder_norm(states)
        self.logits = self.output @ model.projection.weight.T + model.projection.bias

    def attend(self, side: str, name: str, stream: Tensor, layer: Layer) -> Tensor:
        """An attention sub-layer forward."""
        cross = name.startswith("dec_enc")
        part = layer.cross_attention if cross else layer.self_attention
        residual = layer.cross_residual if cross else layer.self_residual
        entered = residual.norm(stream) if residual.pre_norm else stream
        attended = self.memory if cross else entered
        per_head = [torch.zeros(len(stream), 0).to(stream)]
        for head in range(part.heads):
            rows = slice(head * part.head_width, (head + 1) * part.head_width)
            query, key, value = (rows_of(m, rows) for m in (part.query, part.key, part.value))
            queries, keys = entered @ query[0].T + query[1], attended @ key[0].T + key[1]
            queries = queries * self.query_factor
            scores = queries @ keys.T / math.sqrt(part.head_width)
            scores = scores + self.masks(name, layer, len(queries), len(keys))[head]
            per_head.append(scores.softmax(-1) @ (attended @ value[0].T + value[1]))
        change = torch.cat(per_head, -1) @ part.output.weight.T + rows_of(part.output, slice(None))[1]
        self.sums[side].append(Sum(name, residual, part, stream, entered, attended, change, per_head))
        self.added[name] = self.masks(name, layer, len(entered), len(attended))
        return residual.leave(stream, change)

    def masks(self, name: str, layer: Layer, queries: int, keys: int) -> Tensor:
        """What is added to the products of each head [H, Q, K]: minus infinity after a query, and biases of distances.

        Without heads there is one all the same.
        """
        found = torch.zeros(max(1, len(self.model.shape.live_heads[name[:-2]][layer.index])), queries, keys).double()
        part = layer.parts[0]
        if isinstance(part, SelfAttention) and part.distances is not None and not name.startswith("dec_enc"):
            for place, column in enumerate(part.columns):
                for query, key in itertools.product(range(queries), range(keys)):
                    bucket = part.distances.buckets[max(-5, min(5, key - query)) + 5]
                    found[place, query, key] = part.distances.weight[bucket, column]
        return found + torch.full_like(found, -torch.inf).triu(1) if name.startswith("dec_self") else found

    def remember(self, side: str, name: str, stream: Tensor, layer: Layer) -> Tensor:
        """A recurrent unit forward, from its formula."""
        part, residual = layer.recurrence, layer.recurrence_residual
        entered = residual.norm(stream) if residual.pre_norm else stream
        cells = [torch.zeros_like(stream[0])]
        for forget, candidate in zip(*gates_and_candidates(part, entered), strict=True):
            cells.append(forget * cells[-1] + (1 - forget) * candidate)
        change = torch.stack(cells[1:]).clamp(min=0)
        self.sums[side].append(Sum(name, residual, part, stream, entered, entered, change, []))
        return residual.leave(stream, change)

    def transform(self, side: str, name: str, stream: Tensor, layer: Layer) -> Tensor:
        """A feed-forward sub-layer forward."""
        part, residual = layer.feedforward, layer.feedforward_residual
        entered = residual.norm(stream) if residual.pre_norm else stream
        hidden = part.activate(part.inner(entered))
        change = part.outer(hidden if part.factor is None else hidden * part.factor(entered))
        self.sums[side].append(Sum(name, residual, part, stream, entered, entered, change, []))
        return residual.leave(stream, change)

    def walk(self, step: int) -> tuple[dict[str, Tensor], float]:
        """From one step's top-1 logit: relevance [H] at each attention's heads, and the total at the embeddings."""
        met: dict[str, Tensor] = {}
        best = int(self.logits[step].argmax())
        relevance = torch.zeros_like(self.output)
        weight = self.model.projection.weight[best : best + 1]
        bias, logit = self.model.projection.bias[best : best + 1], self.logits[step, best : best + 1]
        relevance[step] = self.rule.matrix(self.output[step][None], weight, bias, logit[None])[0]
        relevance = self.rule.norm(self.model.decoder_norm, self.decoder_top, relevance)
        at_memory = torch.zeros_like(self.memory)
        for taken in reversed(self.sums["decoder"]):
            relevance, beyond = self.through_sum(taken, relevance, met)
            at_memory = at_memory + beyond
        prefix = relevance.sum()
        relevance = self.rule.norm(self.model.encoder_norm, self.encoder_top, at_memory)
        for taken in reversed(self.sums["encoder"]):
            relevance, _ = self.through_sum(taken, relevance, met)
        return met, float(relevance.sum() + prefix)

    def through_sum(self, taken: Sum, relevance: Tensor, met: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Back through a residual sum: relevance of the stream, and of the memory (zero but for cross-attention)."""
        norm, beyond = taken.residual.norm, torch.zeros(())
        if not taken.residual.pre_norm:
            relevance = self.rule.norm(norm, taken.stream + taken.change, relevance)
        if isinstance(taken.part, Attention) and taken.part.heads == 0:
            met[taken.name] = torch.zeros(0)
            if taken.part.output.bias is None:  # nothing was added, so there is no sum
                return relevance, beyond
            return self.rule.fork(taken.stream, taken.change, relevance)[0], beyond
        stream, change = self.rule.fork(taken.stream, taken.change, relevance)
        if isinstance(taken.part, FeedForward):
            inside = self.through_feedforward(taken.part, taken.entered, change)
        elif isinstance(taken.part, Ssru):
            inside = self.through_recurrence(taken.part, taken.entered, change)
        else:
            inside, attended, met[taken.name] = self.through_attention(taken, taken.part, change)
            if taken.name.startswith("dec_enc"):
                beyond = attended
            else:
                inside = inside + attended
        if taken.residual.pre_norm:
            inside = self.rule.norm(norm, taken.stream, inside)
        return stream + inside, beyond

    def through_feedforward(self, part: FeedForward, inputs: Tensor, relevance: Tensor) -> Tensor:
        """Back through two linear maps; the activation between them changes nothing."""
        hidden = part.activate(part.inner(inputs))
        if part.factor is not None:
            factors = part.factor(inputs)
            relevance = self.rule.matrix(hidden * factors, part.outer.weight, part.outer.bias, relevance) / 2
            ours = self.rule.matrix(inputs, part.inner.weight, part.inner.bias, relevance)
            return ours + self.rule.matrix(inputs, part.factor.weight, part.factor.bias, relevance)
        relevance = self.rule.matrix(hidden, part.outer.weight, part.outer.bias, relevance)
        return self.rule.matrix(inputs, part.inner.weight, part.inner.bias, relevance)

    def through_recurrence(self, part: Ssru, inputs: Tensor, relevance: Tensor) -> Tensor:
        """Back through cells as sums of the remains of earlier candidates; gates count as constants."""
        forget, candidates = gates_and_candidates(part, inputs)
        at_candidates = torch.zeros_like(candidates)
        for now, neuron in itertools.product(range(len(inputs)), range(inputs.shape[1])):
            left = [float(forget[then + 1 : now + 1, neuron].prod()) for then in range(now + 1)]
            given = [(1 - forget[then, neuron]) * factor * candidates[then, neuron] for then, factor in enumerate(left)]
            shared = self.rule.share(torch.stack(given)[None], torch.zeros(1).to(inputs), relevance[now, neuron][None])
            at_candidates[: now + 1, neuron] += shared
        return self.rule.matrix(inputs, part.candidate.weight, None, at_candidates)

    def through_attention(self, taken: Sum, part: Attention, relevance: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Back through an attention: relevance of query states [Q, D], of attended states [K, D], and at heads [H]."""
        asking, attended, met = torch.zeros_like(taken.entered), torch.zeros_like(taken.attended), []
        outputs = torch.cat(taken.outputs, -1)
        at_heads = self.rule.matrix(outputs, part.output.weight, part.output.bias, relevance)
        for head, at_head in enumerate(at_heads.split(part.head_width, -1)):
            met.append(at_head.sum())
            rows = slice(head * part.head_width, (head + 1) * part.head_width)
            query, key, value = (rows_of(m, rows) for m in (part.query, part.key, part.value))
            given = ((taken.entered, query), (taken.attended, key), (taken.attended, value))
            parts = [states @ weight.T + bias for states, (weight, bias) in given]
            mask = self.added[taken.name][head]
            back = self.rule.attention(parts[0] * self.query_factor, parts[1], parts[2], mask, at_head)
            asking = asking + self.rule.matrix(taken.entered, *query, back[0])
            for (weight, bias), amount in ((key, back[1]), (value, back[2])):
                attended = attended + self.rule.matrix(taken.attended, weight, bias, amount)
        return asking, attended, torch.stack(met)


def embedded(shape: ModelShape, matrix: Tensor, ids: Tensor) -> Tensor:
    """Embeddings, scaled where the shape says so, with positions [Q, D] of ids [Q]."""
    if shape.distance_buckets:
        return matrix[ids]
    signals = sinusoids(len(ids), shape.width, layout=shape.positions).to(matrix)
    return matrix[ids] * (math.sqrt(shape.width) if shape.scaled_embedding else 1) + signals


def gates_and_candidates(part: Ssru, inputs: Tensor) -> tuple[Tensor, Tensor]:
    """Forget gates and candidates [Q, D] of a recurrent unit for `inputs`."""
    forget = 1 / (1 + (-(inputs @ part.forget.weight.T + part.forget.bias)).exp())
    return forget, inputs @ part.candidate.weight.T


def rows_of(linear: nn.Linear, rows: slice) -> tuple[Tensor, Tensor]:
    """Weight and bias of some outputs of a map; zeros where it has no bias."""
    bias = torch.zeros(len(linear.weight)).to(linear.weight) if linear.bias is None else linear.bias
    return linear.weight[rows], bias[rows]
