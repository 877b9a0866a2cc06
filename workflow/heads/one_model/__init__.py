"""One model, looked at or pruned on a text of its own, without an experiment or a workflow."""
