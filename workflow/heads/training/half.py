"""A copy of a model in bf16 that computes the updates of a GPU, while the model's own weights, in fp32, learn.

Autocast converts every weight, every gradient and the states between products one at a time: more than a third of all
operations of an update. Here all weights are converted at once, and so are all gradients; states stay in bf16, as they
do in fairseq (Ott et al. 2019) and Megatron-LM.
"""

import copy

import torch

from heads.model.encoder import Encoder
from heads.model.sublayers import Gates

HALF = torch.bfloat16


class HalfCopy:
    """A model's copy in bf16; it only holds what it was last given by `refresh`."""

    def __init__(self, model: Encoder) -> None:
        self.model = copy.deepcopy(model).to(HALF).train()
        self.pairs = list(zip(model.parameters(), self.model.parameters(), strict=True))

    @torch.no_grad()
    def refresh(self) -> None:
        """Take over the model's weights."""
        torch._foreach_copy_([half for _, half in self.pairs], [own for own, _ in self.pairs])

    @torch.no_grad()
    def give_gradients(self) -> None:
        """Add the copy's gradients to those of the model, and clear them."""
        learning = [(own, half, half.grad) for own, half in self.pairs if half.grad is not None]
        found = [torch.empty_like(own) for own, _, _ in learning]
        torch._foreach_copy_(found, [gradient for _, _, gradient in learning])
        for (own, half, _), gradient in zip(learning, found, strict=True):
            half.grad = None
            own.grad = gradient if own.grad is None else own.grad + gradient


def halved(gates: Gates | None) -> Gates | None:
    """Gates in bf16, all converted at once."""
    if not gates:
        return gates
    layers = [layer for of_kind in gates.values() for layer in of_kind]
    half = iter(torch.cat(layers).to(HALF).split([len(layer) for layer in layers]))
    return {kind: [next(half) for _ in of_kind] for kind, of_kind in gates.items()}
