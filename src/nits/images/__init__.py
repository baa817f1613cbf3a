"""From images to rows of numbers and back, and `NITSImages`, which learns their probability.

Imports `nits.model`, `nits.training` and `nits.datasets`; the command line imports it.
"""

from nits.images.rows import to_images, to_rows

__all__ = ["to_images", "to_rows"]
