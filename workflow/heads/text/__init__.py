"""Text as subwords: vocabularies, token files, batches."""
