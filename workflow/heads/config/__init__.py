"""Settings: what config.yaml may contain, and the part of it that each stage gets. No torch."""
