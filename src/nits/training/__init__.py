"""Maximum likelihood: `fit` and its parts, from checked rows to a checkpoint that resumes bit for bit.

Imports densities from `nits.model` and knows neither tables nor images, whose estimators import it.
"""
