"""What a model's heads do: attention, confidence, importance, roles, relevance, ablation, speed."""
