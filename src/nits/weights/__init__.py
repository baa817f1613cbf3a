"""The weight models W, which map the columns before to the PNN weights θ of each column.

`weight_model` says what each of them does. `Independent` is the smallest, `MaskedMLP` is for
tables, `CausalConv` and `CausalWindow` for images; `Guided` adds a straight-line guess to one of
the others, `Heard` hides some features of the context from it, and `Clusters` is a Gaussian
mixture. Each has a stepper for sampling. They know features and numbers of weights, not what these
mean. Imports `nits.heads` and what lies below it; `nits.model` builds on it.
"""

from nits.weights.causal_conv import CausalConv, ConvSize
from nits.weights.causal_window import CausalWindow, WindowSize
from nits.weights.clusters import Clusters
from nits.weights.guided import Guided
from nits.weights.heard import Heard
from nits.weights.image_sizes import SIZES
from nits.weights.independent import Independent
from nits.weights.masked_mlp import MaskedMLP
from nits.weights.weight_model import Replay, Stepper, WeightModel

__all__ = [
    "SIZES",
    "CausalConv",
    "CausalWindow",
    "Clusters",
    "ConvSize",
    "Guided",
    "Heard",
    "Independent",
    "MaskedMLP",
    "Replay",
    "Stepper",
    "WeightModel",
    "WindowSize",
]
