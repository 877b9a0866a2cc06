"""Parallel corpora and labelled examples: readers, filters, the embedded grammar. No torch."""
