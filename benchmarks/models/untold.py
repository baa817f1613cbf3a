"""What `NITSDensity` chooses for a table if it is told nothing, as settings of a benchmark."""

from __future__ import annotations

import nits
from models.fitted import OPTIMIZERS, Settings
from nits.datasets import Split
from nits.tables import defaults
from nits.training.schedules import Cosine


def settings(split: Split) -> Settings:
    """Returns the estimator's defaults for the training rows; the minutes take the place of its steps."""
    plan = defaults.plan(*split.train.shape)
    recipe = nits.Recipe()
    (optimizer,) = (name for name, value in OPTIMIZERS.items() if value == plan.optimizer)
    return {
        "model": "nits-mlp",
        "source": "ours: the defaults of NITSDensity",
        "members": 1,
        "pnn": list(nits.NITSDensity().pnn),
        "whiten": nits.NITSDensity().whiten,
        "knots": plan.knots,
        "hidden": plan.hidden,
        "blocks": plan.blocks,
        "dropout": plan.dropout,
        "activation": "relu",
        "order": [],
        "optimizer": optimizer,
        "batch_size": plan.batch_size,
        "learning_rate": plan.learning_rate,
        "weight_decay": recipe.weight_decay,
        "warmup": Cosine().warmup,
        "floor": 1.0 if optimizer == "schedule-free" else Cosine().floor,
        "average": recipe.average,
        "clip": recipe.clip,
        "patience": recipe.patience,
        "epochs": 0,
        "start_from_data": recipe.start_from_data,
    }
