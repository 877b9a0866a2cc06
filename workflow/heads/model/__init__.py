"""The one Transformer: attention with a gate on each head, its files, and the removal of heads."""
