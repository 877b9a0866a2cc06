"""M2M100, NLLB, BART and mBART, trained by fairseq, in the format of transformers."""
