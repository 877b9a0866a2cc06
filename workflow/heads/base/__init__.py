"""What every other room stands on: files, names in paths, provenance, a pool of processes. No torch."""
