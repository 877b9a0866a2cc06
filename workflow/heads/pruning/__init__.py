"""Choosing the heads to keep: stochastic gates with their penalty, subset gates, and measures."""
