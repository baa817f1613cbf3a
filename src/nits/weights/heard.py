"""A weight model that reads some features of the context only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from nits.weights.weight_model import Stepper, WeightModel


class Heard(WeightModel):
    """Another weight model, for which the rest of the context is not there.

    So networks that read all that is given, and others that do not, can be members of one mixture.

    model: Whose context are the features that it reads.
    context: Number of features of the whole context.
    heard: Which of them the model reads.

    >>> import nits, torch
    >>> net = nits.weights.MaskedMLP([1, 1], [6, 6], context=1, hidden=8, blocks=1)
    >>> part = nits.weights.Heard(net, context=3, heard=[2])
    >>> features, context = torch.randn(2, 5), torch.randn(3, 5)
    >>> torch.equal(part(features, context), net(features, context[2:]))
    True
    """

    def __init__(self, model: WeightModel, context: int, heard: Sequence[int]) -> None:
        super().__init__(model.inputs, model.outputs, context)
        if len(heard) != model.context:
            raise ValueError(
                f"heard must name the {model.context} features that the model reads, but names "
                f"{len(heard)}; name as many."
            )
        self.model, self.heard = model, list(heard)
        self.sampled_at_once = model.sampled_at_once

    def hear(self, context: Tensor | None) -> Tensor | None:
        """Returns what the model reads of the context."""
        return context[self.heard] if context is not None and self.heard else None

    def forward(self, features: Tensor, context: Tensor | None = None) -> Tensor:
        """Maps features, shape (Σ inputs, N), and context, (C, N), to weights, (Σ outputs, N)."""
        theta: Tensor = self.model(features, self.hear(context))
        return theta

    def parts(
        self, features: Tensor, context: Tensor | None, sizes: Sequence[int]
    ) -> Iterable[Tensor]:
        """Returns the weights in parts of these sizes, each when it is asked for."""
        return self.model.parts(features, self.hear(context), sizes)

    def stepper(self, n: int, context: Tensor | None = None) -> Stepper:
        """Starts the evaluation of n rows column by column."""
        return self.model.stepper(n, self.hear(context))

    def start_at(self, theta: Tensor) -> None:
        """Makes the output theta whatever the input."""
        self.model.start_at(theta)
