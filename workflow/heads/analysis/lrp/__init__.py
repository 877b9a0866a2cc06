"""Layer-wise relevance propagation: how much of each generation step's top-1 logit arrives at each head.

Voita et al. 2019, sec. 4 and App. A.2, after Ding et al. 2017. `rules` says what a rule has to define; `ratio`, `split`
and `released` hold the rules. `backward` leads relevance through the whole model, `steps` does so for all generation
steps of a batch, and `rows` turns the result into a table.
"""
