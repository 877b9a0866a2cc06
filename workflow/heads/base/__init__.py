"""Basics that all other packages use: files, downloads, names in paths, provenance, a pool of processes. No torch."""
