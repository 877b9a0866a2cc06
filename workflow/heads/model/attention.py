"""Multi-head attention (Vaswani et al. 2017, sec. 3.2) with a gate on every head, used throughout the project.

It has no biases (as in Vaswani's formula), so a layer without heads contributes exactly nothing. Imported models may
have biases; such a layer then still contributes its output bias.
B batch, Q/K query and key length, D width, H heads of the layer, E width of one head.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heads.model.dropout import drop
from heads.model.linear import Linear, linear
from heads.text.packed import Spans

# A layer without heads has matrices without rows; torch warns that there is nothing to initialise.
warnings.filterwarnings("ignore", message="Initializing zero-element tensors")

LEAST_SENTENCES, MOST_WEIGHTS = 8, 2**10
"""Where attention is faster without torch's own kernel: for so many sentences with so few weights each."""
VECTOR = 16
"""Fewest numbers of a row that torch's softmax computes at once: shorter rows take up to ten times as long."""
Trace = dict[str, Tensor]
"""Tensors that a traced forward pass records, by name, such as `enc_self.0.weights` [B, H, Q, K]."""


@dataclass(frozen=True, slots=True)
class KeyValues:
    """Keys and values [B, H, K, E] that queries attend to; cached and extended while decoding."""

    keys: Tensor
    values: Tensor

    def first(self, number: int) -> KeyValues:
        """The first `number` keys and values along K."""
        return KeyValues(self.keys[:, :, :number], self.values[:, :, :number])

    def contiguous(self) -> KeyValues:
        """The same with the entries of each head beside each other in memory."""
        return KeyValues(self.keys.contiguous(), self.values.contiguous())

    def write(self, newer: KeyValues, end: int) -> None:
        """Overwrite the entries just before `end` with newer ones."""
        start = end - newer.keys.shape[2]
        self.keys[:, :, start:end], self.values[:, :, start:end] = newer.keys, newer.values

    def joined(self, newer: KeyValues) -> KeyValues:
        """These keys and values followed by newer ones."""
        return KeyValues(torch.cat([self.keys, newer.keys], 2), torch.cat([self.values, newer.values], 2))

    def tensors(self) -> dict[str, Tensor]:
        """Keys and values by name; empty if there are no heads."""
        return {"keys": self.keys, "values": self.values} if self.keys.shape[1] else {}

    def rows(self, index: Tensor) -> KeyValues:
        """Keys and values of the batch members `index`, in that order."""
        return KeyValues(self.keys.index_select(0, index), self.values.index_select(0, index))

    def taken(self, rows: Tensor, places: Tensor) -> KeyValues:
        """Entries at `places` [b, k] along K of the batch members `rows` [b], in that order."""
        _, heads, length, width = self.keys.shape
        head = rows[:, None, None] * heads + torch.arange(heads, device=rows.device)[:, None]
        index = (head * length + places[:, None]).flatten()
        shape = (len(rows), heads, places.shape[1], width)
        return KeyValues(*(p.flatten(0, 2).index_select(0, index).view(shape) for p in (self.keys, self.values)))


class Attention(nn.Module):
    """Multi-head attention with a gate on every head's output."""

    def __init__(
        self,
        width: int,
        heads: int,
        head_width: int,
        dropout: float,
        *,
        biases: bool = False,
        by_distance: bool = False,
        scaled: bool = True,
    ) -> None:
        """biases: of the four maps. by_distance: whether something is added to the products, see `forward`. scaled:
        whether products are divided by sqrt(E) (Vaswani et al. 2017, eq. 1).
        """
        super().__init__()
        self.scale = None if scaled else 1.0
        """The factor of products; None: 1 / sqrt(E)."""
        self.heads, self.head_width, self.dropout, self.by_distance = heads, head_width, dropout, by_distance
        self.query = Linear(width, heads * head_width, bias=biases)
        self.key = Linear(width, heads * head_width, bias=biases)
        self.value = Linear(width, heads * head_width, bias=biases)
        self.output = Linear(heads * head_width, width, bias=biases)

    def split(self, states: Tensor) -> Tensor:
        """Split [B, Q, H*E] into heads [B, H, Q, E]."""
        per_head: Tensor = states.unflatten(-1, (self.heads, self.head_width)).transpose(1, 2)
        return per_head

    def together(self, states: Tensor, spans: Spans | None, *maps: nn.Linear) -> list[Tensor]:
        """Apply several linear maps to `states` [B, Q, D] or [N, D] in one product, with heads as by `laid_out`."""
        return self.laid_out(linear(states, *joined(maps)), spans, len(maps))

    def laid_out(self, found: Tensor, spans: Spans | None, maps: int) -> list[Tensor]:
        """Heads [B, H, Q, E] of each map from [B, Q, maps * H * E], or from [N, maps * H * E] of sentences in `spans`.

        torch's kernel for sentences without padding, where there is one, takes them as they are: [N, H, E].
        """
        if spans is None:
            return [self.split(part) for part in found.chunk(maps, -1)]
        if taken_by_flash(found, self.head_width) and not self.by_distance:
            each = found.chunk(maps, -1) if maps > 1 else [found]
            return [part.unflatten(-1, (self.heads, self.head_width)) for part in each]
        return spans.padded_heads(found, maps, self.heads)

    def project(self, states: Tensor, spans: Spans | None = None) -> KeyValues:
        """Keys and values of `states` [B, K, D], or [N, D] of sentences with `spans`."""
        return KeyValues(*self.together(states, spans, self.key, self.value))

    def forward(
        self,
        states: Tensor,
        attended: KeyValues | None,
        *,
        mask: Tensor | None = None,
        causal: bool = False,
        gate: Tensor | None = None,
        trace: Trace | None = None,
        name: str = "",
        spans: tuple[Spans | None, Spans | None] = (None, None),
        bias: Tensor | None = None,
    ) -> Tensor:
        """Attend from `states` [B, Q, D] to `attended`, or to themselves if it is None; returns [B, Q, D].

        mask: [B, 1, Q or 1, K], True at visible keys; None makes all keys visible. Not together with `causal`.
        gate: [H] factor on each head's output. trace: if given, filled with `name`.weights/.values/.heads. spans: of
        queries and of keys, if states have no padding: they are [N, D] then, without mask and trace. bias: [B or 1, H,
        Q or 1, K], added to the products.
        """
        own, others = spans
        if attended is None:
            queries, *rest = self.together(states, own, self.query, self.key, self.value)
            attended = KeyValues(*rest)
        else:
            (queries,) = self.laid_out(self.query(states), own, 1)
        if own is not None and others is not None and others.mask is not None and not causal:
            mask = others.mask[:, None, None]
        if bias is not None:
            mask, causal = with_mask(bias, causal_mask(queries) if causal else mask), False
        if own is not None and others is not None and queries.dim() == 3:
            dropout = self.dropout if self.training else 0.0
            per_head = attend_by_flash(queries, attended, own, others, dropout, self.scale, causal=causal)
        elif trace is None:
            per_head = self.untraced(queries, attended, mask, causal=causal)
        else:
            weights = attention_weights(queries, attended.keys, mask=mask, causal=causal, scale=self.scale)
            per_head = weights @ attended.values
            trace[f"{name}.weights"], trace[f"{name}.values"] = weights, attended.values
        if gate is not None:
            per_head = per_head * (gate[:, None] if per_head.dim() == 3 else gate[:, None, None])
        if trace is not None:
            trace[f"{name}.heads"] = per_head
        merged: Tensor = self.output(merged_heads(per_head, own))
        return merged

    def without_heads(self, states: Tensor) -> Tensor:
        """Output [B, Q, D] of an attention without heads: its output bias, or zeros."""
        nothing = torch.zeros_like(states)
        return nothing if self.output.bias is None else nothing + self.output.bias

    def untraced(self, queries: Tensor, attended: KeyValues, mask: Tensor | None, *, causal: bool) -> Tensor:
        """Heads [B, H, Q, E] without their weights, in fp32 on a CPU, where bf16 gradients take ten times as long."""
        keys, values, dropout = attended.keys, attended.values, self.dropout if self.training else 0.0
        if queries.dtype is not torch.bfloat16 or queries.device.type != "cpu":
            return attend(queries, keys, values, mask, dropout, self.scale, causal=causal)
        with torch.autocast("cpu", enabled=False):
            return attend(queries.float(), keys.float(), values.float(), mask, dropout, self.scale, causal=causal)


def attend(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float, scale: float | None, *,
    causal: bool,
) -> Tensor:  # fmt: skip
    """Heads [B, H, Q, E] by torch's attention, or by products if they are faster. dropout: of weights.

    scale: factor of the products, here and below; None: 1 / sqrt(E).
    """
    if torch.compiler.is_compiling() or not faster_by_products(queries, keys):
        if mask is not None and mask.is_floating_point():
            mask = mask.to(queries.dtype)
        return F.scaled_dot_product_attention(queries, keys, values, mask, dropout, causal, scale=scale)
    return attend_by_products(queries, keys, values, causal_mask(queries) if causal else mask, dropout, scale)


def merged_heads(per_head: Tensor, spans: Spans | None) -> Tensor:
    """Heads [B, H, Q, E] side by side [B, Q, H * E]; with `spans`, or from heads [N, H, E], [N, H * E]."""
    if per_head.dim() == 3:
        return per_head.flatten(1)
    if spans is not None:
        return spans.packed_heads(per_head)
    merged = per_head.transpose(1, 2)
    if torch.compiler.is_compiling():
        # The layout that torch's attention leaves in memory is another one in the exported graph: views of it fail.
        merged = merged.clone(memory_format=torch.contiguous_format)
    return merged.flatten(2)


def taken_by_flash(states: Tensor, head_width: int) -> bool:
    """Whether flash attention, which needs a GPU, half precision and a certain width, takes heads of these states."""
    return states.device.type == "cuda" and states.element_size() == 2 and head_width % 8 == 0 and head_width <= 256


def attend_by_flash(
    queries: Tensor,
    attended: KeyValues,
    own: Spans,
    others: Spans,
    dropout: float,
    scale: float | None = None,
    *,
    causal: bool,
) -> Tensor:
    """Heads [N, H, E] of sentences without padding. dropout: of weights, which `torch.nn.attention.varlen` lacks."""
    lengths = (own.starts, others.starts, own.longest, others.longest)
    found: Tensor = torch.ops.aten._flash_attention_forward(
        queries, attended.keys, attended.values, *lengths, dropout, causal, return_debug_mask=False, scale=scale
    )[0]
    return found


def with_mask(bias: Tensor, mask: Tensor | None) -> Tensor:
    """A bias [B, H, Q, K] of products, with minus infinity where the mask, which broadcasts with it, is False."""
    return bias if mask is None else bias.masked_fill(~mask, -torch.inf)


def joined(maps: Sequence[nn.Linear]) -> tuple[Tensor, Tensor | None]:
    """Concatenated matrices and biases of several maps of the same states; all maps have a bias or none does."""
    biases: list[Tensor] = [each.bias for each in maps if each.bias is not None]
    return torch.cat([each.weight for each in maps]), torch.cat(biases) if biases else None


def faster_by_products(queries: Tensor, keys: Tensor) -> bool:
    """Whether torch's attention takes longer than its products by themselves, as on a CPU for many short sentences."""
    many = len(queries) >= LEAST_SENTENCES and queries.shape[2] * keys.shape[2] <= MOST_WEIGHTS
    return many and queries.device.type == "cpu" and queries.dtype is torch.float32


def attend_by_products(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, dropout: float, scale: float | None = None
) -> Tensor:
    """Heads [B, H, Q, E] by two products and a softmax. dropout: of weights."""
    (count, heads, length, width), places = queries.shape, keys.shape[2]
    scores = torch.bmm(queries.reshape(-1, length, width), keys.reshape(-1, places, width).mT)
    scores = scores.mul_(width**-0.5 if scale is None else scale).view(count, heads, length, places)
    if mask is not None:
        # Added, as masked_fill takes three times as long, and again for the gradient.
        scores.add_(as_summand(mask, scores.dtype))
    if places < VECTOR:
        scores = F.pad(scores, (0, VECTOR - places), value=-torch.inf)
    weights = drop(scores.softmax(-1)[..., :places], dropout, training=True).reshape(-1, length, places)
    return torch.bmm(weights, values.reshape(-1, places, width)).view(count, heads, length, width)


def as_summand(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """What is added to products for a mask: zeros, and minus infinity where it is False, or itself from `with_mask`."""
    if mask.dtype is not torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype, device=mask.device).masked_fill_(~mask, -torch.inf)


def causal_mask(queries: Tensor) -> Tensor:
    """The mask [Q, Q] with which each query sees its own place and earlier ones."""
    return torch.ones(queries.shape[2], queries.shape[2], dtype=torch.bool, device=queries.device).tril()


def attention_weights(
    queries: Tensor, keys: Tensor, *, mask: Tensor | None, causal: bool, scale: float | None = None
) -> Tensor:
    """Softmax attention weights [B, H, Q, K], computed explicitly for analyses that need them."""
    products = queries @ keys.transpose(-1, -2)
    scores = products / math.sqrt(queries.shape[-1]) if scale is None else products * scale
    if causal:
        mask = causal_mask(queries)
    return (scores if mask is None else scores + as_summand(mask, scores.dtype)).softmax(-1)
