"""From images to rows of numbers and back, and `NITSImages`, the estimator that learns their probability.

Imports `nits.model`, `nits.training` and `nits.datasets`; the command line imports it.
"""
