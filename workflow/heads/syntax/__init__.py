"""Dependency trees: CoNLL-U, tokenising, parsing, scores, and alignment with subwords. No torch except Stanza's."""
