"""Maximum likelihood: `fit` and its parts, from checked rows to checkpoints that resume exactly.

Imports densities from `nits.model` and knows neither tables nor images, whose estimators import it.
"""
