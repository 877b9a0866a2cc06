"""Translate with trained models: beam search, BLEU, streams of text, and import and export of model folders."""
