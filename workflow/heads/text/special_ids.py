"""The ids of the special tokens, the first ones of every vocabulary that is learnt here."""

PAD, BOS, EOS, UNK = range(4)
"""Padding, start, end, and unknown."""
