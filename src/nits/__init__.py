"""nits: exact densities of tables and images with the Neural Inverse Transform Sampler."""

from nits import heads, weights
from nits.distributions import PNN, QuantizedPNN
from nits.mixture import Mixture
from nits.model import NITS
from nits.pnn import parameters as pnn_parameters
from nits.schedules import Cosine, Plateau, Recipe
from nits.training import fit

__version__ = "0.1.0"
__all__ = [
    "NITS",
    "PNN",
    "Cosine",
    "Mixture",
    "Plateau",
    "QuantizedPNN",
    "Recipe",
    "fit",
    "heads",
    "pnn_parameters",
    "weights",
]
