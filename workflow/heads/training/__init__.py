"""The one training loop, its checkpointing, several processes, devices."""
