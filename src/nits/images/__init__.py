"""From images to rows of numbers and back, and `NITSImages`, which learns their probability.

Imports `nits.model`, `nits.training` and `nits.datasets`; the command line imports it.
"""

from nits.images.rows import to_images, to_rows
from nits.images.symmetries import symmetries

__all__ = ["symmetries", "to_images", "to_rows"]
