"""The weight models W: what hands out the PNN weights of each column."""

from nits.weights.causal_conv import SIZES, CausalConv, ConvSize
from nits.weights.independent import Independent
from nits.weights.masked_mlp import MaskedMLP
from nits.weights.weight_model import Replay, Stepper, WeightModel

__all__ = [
    "SIZES",
    "CausalConv",
    "ConvSize",
    "Independent",
    "MaskedMLP",
    "Replay",
    "Stepper",
    "WeightModel",
]
