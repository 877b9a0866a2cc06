"""From a trained model to translations: beam search, BLEU, streams of text, folders of models."""
