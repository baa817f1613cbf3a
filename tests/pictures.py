"""Small images for the tests of models of images."""

import numpy as np
from numpy.typing import NDArray


def bands(count: int, seed: int = 0, channels: int = 1) -> NDArray[np.uint8]:
    """Images of 6 × 5 pixels: the upper half of one grey, the lower much lighter, some noise."""
    random = np.random.default_rng(seed)
    level = random.integers(10, 100, (count, 1, 1, channels))
    images = np.repeat(np.concatenate([level.repeat(3, 1), level.repeat(3, 1) + 120], 1), 5, 2)
    noisy = (images + random.integers(0, 6, images.shape)).astype(np.uint8)
    return noisy[..., 0] if channels == 1 else noisy
