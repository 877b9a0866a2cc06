"""The training loop, its checkpointing, training in several processes, and devices."""
