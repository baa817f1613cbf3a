"""What happened during training: every figure, and a plot of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass
class History:
    """The figures of a training run; lists have one entry per evaluation.

    Log-likelihoods are in nats per row.

    train: Mean over the steps since the previous evaluation.
    validation: Of the averaged weights, on at most 16,384 validation rows.
    start: The same before the first step; None without validation rows. If no evaluation is better,
        `fit` returns the weights of the start, and `best_step` is 0.

    >>> import nits, torch
    >>> model = nits.NITS.independent(2)
    >>> history = nits.fit(model, torch.randn(50, 2), max_steps=3, progress=False)
    >>> isinstance(history, nits.History), history.stopped
    (True, 'budget')
    """

    step: list[int] = field(default_factory=list)
    epoch: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    train: list[float] = field(default_factory=list)
    validation: list[float] = field(default_factory=list)
    learning_rate: list[float] = field(default_factory=list)
    rows_per_second: list[float] = field(default_factory=list)
    start: float | None = None
    best_step: int = 0
    skipped: int = 0  # steps with a gradient that was not finite
    outside: int = 0  # training rows outside the support, which were left out
    kernels: list[str] = field(default_factory=list)  # what ran: "native", "compiled", "plain"
    stopped: str = ""  # "budget", "patience" or "interrupted"
    final_validation: float | None = None  # of the weights returned, on all validation rows

    def to_dict(self) -> dict[str, Any]:
        """Returns the figures as plain lists and numbers."""
        return asdict(self)

    @classmethod
    def from_dict(cls, figures: dict[str, Any]) -> History:
        """Returns the history that `to_dict` wrote."""
        return cls(**figures)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draws the training curve with matplotlib and returns its axes."""
        from matplotlib import pyplot as plt

        if ax is None:
            ax = plt.subplots(figsize=(6, 4), layout="constrained")[1]
        ax.plot(self.step, self.train, label="training", color="0.6")
        if self.validation:
            ax.plot(self.step, self.validation, label="validation, averaged weights", color="C0")
            ax.axvline(self.best_step, color="C0", linestyle=":", linewidth=1)
        low = min((self.validation or self.train)[len(self.train) // 10 :], default=0.0)
        high = max([*self.train, *self.validation], default=1.0)
        ax.set_ylim(low - 0.1 * (high - low + 1e-9), high + 0.1 * (high - low + 1e-9))
        ax.set(xlabel="step", ylabel="log-likelihood, nats per row")
        ax.legend(frameon=False)
        return ax
