"""Settings: what config.yaml may say, and what each stage is told of it. No torch."""
