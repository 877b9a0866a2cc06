"""The Transformer: attention with a gate on each head, model files, and the removal of heads."""
