"""The weight models W: what reads the columns so far and hands out the next column's PNN weights."""

from nits.weights.independent import Independent
from nits.weights.masked_mlp import MaskedMLP
from nits.weights.weight_model import Stepper, WeightModel

__all__ = ["Independent", "MaskedMLP", "Stepper", "WeightModel"]
