"""Layer-wise relevance propagation: how much of each generation step's top-1 logit arrives at each head.

Voita et al. 2019, sec. 4 and App. A.2, after Ding et al. 2017. `rules` says how one operation shares relevance out by
the paper's ratio, `product`, `split`, `attnlrp` and `released` how other rules do; `walk` leads it through the whole
model, `steps` does so for all generation steps of a batch, `rows` turns it into a table.
"""
