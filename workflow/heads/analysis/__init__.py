"""Analyses of a model's heads: attention, confidence, importance, roles, relevance, ablation, speed."""
