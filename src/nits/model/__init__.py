"""Joint densities: heads and a weight model make one (`joint`), others are made of it (`mixture`, `whitened`).

`reading` is what the weight model reads of the columns and `blocks` the one plan for cutting rows
and columns. Imports `nits.pnn`, `nits.kernels`, `nits.heads` and `nits.weights`; training, tables
and images import it.
"""
