"""Dependency trees: CoNLL-U, tokenising, parsing, their scores and alignment with pieces. No torch but Stanza's."""
