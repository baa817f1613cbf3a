"""nits: exact densities of tables and images with the Neural Inverse Transform Sampler.

Names are imported when they are first used, so that `nits --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nits import datasets, heads, images, weights
    from nits.images.dequantized import Dequantized
    from nits.images.estimator import NITSImages
    from nits.model.calibrated import Calibrated
    from nits.model.joint import NITS
    from nits.model.mixture import Mixture
    from nits.model.random_roles import RandomRoles
    from nits.model.roles import Roles
    from nits.model.symmetric import Symmetric
    from nits.model.tempered import Tempered
    from nits.model.whitened import Whitened
    from nits.persistence import load, save
    from nits.pnn.binned import QuantizedPNN
    from nits.pnn.distributions import PNN
    from nits.pnn.plain import parameters as pnn_parameters
    from nits.tables.classifier import NITSClassifier
    from nits.tables.estimator import NITSDensity
    from nits.tables.questions.conditions import missing
    from nits.tables.regressor import NITSRegressor
    from nits.training.fit import fit
    from nits.training.history import History
    from nits.training.optimizers import AdamW, Muon, ScheduleFree
    from nits.training.recipe import Recipe
    from nits.training.rows import Rows
    from nits.training.schedules import Constant, Cosine, Plateau

__version__ = "0.2.0"
__all__ = [
    "NITS",
    "PNN",
    "AdamW",
    "Calibrated",
    "Constant",
    "Cosine",
    "Dequantized",
    "History",
    "Mixture",
    "Muon",
    "NITSClassifier",
    "NITSDensity",
    "NITSImages",
    "NITSRegressor",
    "Plateau",
    "QuantizedPNN",
    "RandomRoles",
    "Recipe",
    "Roles",
    "Rows",
    "ScheduleFree",
    "Symmetric",
    "Tempered",
    "Whitened",
    "datasets",
    "fit",
    "heads",
    "images",
    "load",
    "missing",
    "pnn_parameters",
    "save",
    "weights",
]

_PLACES = {
    "NITS": "model.joint",
    "PNN": "pnn.distributions",
    "AdamW": "training.optimizers",
    "Calibrated": "model.calibrated",
    "Constant": "training.schedules",
    "Cosine": "training.schedules",
    "Dequantized": "images.dequantized",
    "History": "training.history",
    "Mixture": "model.mixture",
    "Muon": "training.optimizers",
    "NITSClassifier": "tables.classifier",
    "NITSDensity": "tables.estimator",
    "NITSImages": "images.estimator",
    "NITSRegressor": "tables.regressor",
    "Plateau": "training.schedules",
    "QuantizedPNN": "pnn.binned",
    "RandomRoles": "model.random_roles",
    "Recipe": "training.recipe",
    "Roles": "model.roles",
    "Rows": "training.rows",
    "ScheduleFree": "training.optimizers",
    "Symmetric": "model.symmetric",
    "Tempered": "model.tempered",
    "Whitened": "model.whitened",
    "fit": "training.fit",
    "load": "persistence",
    "missing": "tables.questions.conditions",
    "save": "persistence",
    "pnn_parameters": "pnn.plain",
}


def __getattr__(name: str) -> Any:
    """Imports a public name, or a module of the package."""
    if name in _PLACES:
        module = import_module(f"nits.{_PLACES[name]}")
        value = getattr(module, "parameters" if name == "pnn_parameters" else name)
        globals()[name] = value
        return value
    try:
        return import_module(f"nits.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"nits.{name}":
            raise
        raise AttributeError(f"module 'nits' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
