"""T5, mT5, UMT5, FLAN-T5, ByT5 and MADLAD-400 in the format of transformers."""
