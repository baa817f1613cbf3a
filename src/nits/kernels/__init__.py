"""The one door through which many PNNs are evaluated.

Imports `nits.pnn`; heads import it.
"""
