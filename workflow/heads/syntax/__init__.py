"""Dependency trees: CoNLL-U, tokenising, parsing, their scores and alignment with subwords. No torch but Stanza's."""
