"""Basics that all other packages use: files, names in paths, provenance, a pool of processes. No torch."""
