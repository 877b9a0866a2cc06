"""Inspect or prune one model on any text, without an experiment or a workflow."""
