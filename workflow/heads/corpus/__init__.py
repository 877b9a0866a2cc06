"""Parallel corpora: downloads and archives, readers, filters, the embedded grammar. No torch."""
