"""Weight models to JSON and back: how a file describes a network without its weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from nits.heads import Head
from nits.weights import activations
from nits.weights.allowance import Allowance, size
from nits.weights.causal_conv import CausalConv, ConvSize
from nits.weights.causal_window import CausalWindow, WindowSize
from nits.weights.clusters import Clusters
from nits.weights.guided import Guided
from nits.weights.heard import Heard
from nits.weights.independent import Independent
from nits.weights.masked_mlp import MaskedMLP
from nits.weights.weight_model import WeightModel


def described(weights: WeightModel) -> dict[str, Any]:
    """Returns the kind of a weight model and its sizes."""
    if isinstance(weights, Guided):
        inner = described(weights.model)
        return {
            "kind": "guided",
            "context": weights.context,
            "straight": weights.straight,
            "heard": weights.heard,
            "model": inner,
        }
    if isinstance(weights, Heard):
        return {
            "kind": "heard",
            "context": weights.context,
            "heard": weights.heard,
            "model": described(weights.model),
        }
    if isinstance(weights, Clusters):
        return {"kind": "clusters", "components": weights.components}
    if isinstance(weights, Independent):
        return {"kind": "independent", "context": weights.context}
    if isinstance(weights, MaskedMLP):
        return {"kind": "masked_mlp", "context": weights.context, **weights.sizes()}
    if isinstance(weights, CausalConv):
        return {"kind": "causal_conv", "context": weights.context, **weights.sizes()}
    if isinstance(weights, CausalWindow):
        return {"kind": "causal_window", "context": weights.context, **weights.sizes()}
    raise TypeError(
        "a file can describe Guided, Heard, Clusters, Independent, MaskedMLP, CausalConv and "
        f"CausalWindow, but not {type(weights).__name__}; save its state_dict yourself."
    )


def weights_of(about: dict[str, Any], heads: Sequence[Head], allowance: Allowance) -> WeightModel:
    """Returns a weight model like the one that was described, for heads in modelling order.

    Its weights are those of seed 0, so that reading a file leaves torch's global generator alone.
    """
    inputs = [head.inputs for head in heads]
    outputs = [head.weights for head in heads]
    if about["kind"] == "guided":
        allowance.lines(about, inputs)
        inner = weights_of(about["model"], heads, allowance)
        return Guided(inner, heads, int(about["context"]), about["straight"], about["heard"])
    if about["kind"] == "heard":
        allowance.heard(about)
        inner = weights_of(about["model"], heads, allowance)
        return Heard(inner, int(about["context"]), about["heard"])
    if about["kind"] == "clusters":
        allowance.clusters(about, outputs)
        return Clusters(heads, about["components"])
    about = {"context": 0, **about}
    context = about["context"]
    if about["kind"] == "independent":
        size(context, "context", allowance.numbers)
        allowance.take(sum(outputs))
        return Independent(inputs, outputs, context, generator=0)
    if about["kind"] == "masked_mlp":
        allowance.masked_mlp(about, inputs, outputs)
        return MaskedMLP(
            inputs,
            outputs,
            context,
            hidden=about["hidden"],
            blocks=about["blocks"],
            dropout=about["dropout"],
            activation=activations.named(about["activation"]),
            codes=about.get("codes"),
            generator=0,
        )
    if about["kind"] in ("causal_conv", "causal_window"):
        return _of_images(about, heads[0], inputs, outputs, allowance)
    raise ValueError(f"there is no weight model {about['kind']!r}; install a newer nits.")


def _of_images(
    about: dict[str, Any],
    head: Head,
    inputs: Sequence[int],
    outputs: Sequence[int],
    allowance: Allowance,
) -> CausalConv | CausalWindow:
    """Returns a network of pixels, which all have one head."""
    windows = about["kind"] == "causal_window"
    if windows:
        allowance.causal_window(about, about["shape"], outputs[0])
    else:
        allowance.causal_conv(about, about["shape"], inputs[0], outputs[0])
    channels, height, width = about["shape"]
    rest: dict[str, Any] = {
        "shape": (channels, height, width),
        "present": torch.tensor(about["present"], dtype=torch.bool),
        "units": head.units,
        "generator": 0,
    }
    if windows:
        window = WindowSize(*about["size"])
        return CausalWindow(inputs, outputs, about["context"], size=window, **rest)
    filters, blocks, dilations, dropout = about["size"]
    size_ = ConvSize(filters, blocks, tuple(dilations), dropout)
    return CausalConv(inputs, outputs, about["context"], size=size_, **rest)
