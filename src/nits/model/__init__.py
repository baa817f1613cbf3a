"""Joint densities: one made of heads and a weight model (`joint`), and wrappers of densities.

The wrappers are `mixture`, `whitened` and `random_roles`; `roles` is a network for questions with
any columns given. `reading` is what the weight model reads of the columns, and `blocks` the one
plan for cutting rows and columns. Imports `nits.pnn`, `nits.kernels`, `nits.heads` and
`nits.weights`; training, tables and images import it.
"""
