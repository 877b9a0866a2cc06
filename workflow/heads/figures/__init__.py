"""Figures: data frames of many runs in, a matplotlib figure out."""
