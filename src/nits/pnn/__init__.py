"""The paper: an increasing network of one variable, its density, quantiles and moments.

Start with `plain`, which is the method in its plainest form. `network` computes the same without
losing a digit, `roots` inverts it. `distributions`, `binned` and `affine` have the faces that
PyTorch users know. Knows nothing of columns, tables or training; imports `nits.checks` alone, and
everything else may import it.
"""
