"""Text as pieces: vocabularies, token files, batches."""
