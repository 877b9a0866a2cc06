"""A BERT in the format of transformers, which classifies or embeds sentences."""
