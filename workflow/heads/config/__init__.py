"""Settings: what config.yaml may say, and what each stage is given of it. No torch."""
