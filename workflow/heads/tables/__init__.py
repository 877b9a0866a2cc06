"""Tables: the results of many runs, a row each, beside the papers' numbers."""
