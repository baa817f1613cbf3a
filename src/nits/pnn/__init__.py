"""The paper: an increasing network of one variable, its density, quantiles and moments.

Start with `plain`, the formulas as they stand. `network` computes the same without losing a digit,
`roots` inverts it, `moments` integrates it, `initial` has weights to start training from, and
`distributions` the classes that PyTorch users know. Nothing here knows of columns, tables or
training. It imports `nits.checks` alone, and every other room may import it.
"""
