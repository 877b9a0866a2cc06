"""Tables of the results of many runs, beside the numbers of the papers."""
