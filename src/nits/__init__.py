"""nits: exact densities of tables and images with the Neural Inverse Transform Sampler.

Names are imported when they are first used, so that `nits --help` need not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from nits import heads, weights
    from nits.dequantized import Dequantized
    from nits.distributions import PNN, QuantizedPNN
    from nits.estimator import NITSDensity
    from nits.image_estimator import NITSImages
    from nits.mixture import Mixture
    from nits.model import NITS
    from nits.persistence import load
    from nits.pnn import parameters as pnn_parameters
    from nits.schedules import Constant, Cosine, Plateau, Recipe
    from nits.training import fit
    from nits.whitened import Whitened

__version__ = "0.1.0"
__all__ = [
    "NITS",
    "PNN",
    "Constant",
    "Cosine",
    "Dequantized",
    "Mixture",
    "NITSDensity",
    "NITSImages",
    "Plateau",
    "QuantizedPNN",
    "Recipe",
    "Whitened",
    "fit",
    "heads",
    "load",
    "pnn_parameters",
    "weights",
]

_PLACES = {
    "NITS": "model",
    "PNN": "distributions",
    "Constant": "schedules",
    "Cosine": "schedules",
    "Dequantized": "dequantized",
    "Mixture": "mixture",
    "NITSDensity": "estimator",
    "NITSImages": "image_estimator",
    "Plateau": "schedules",
    "QuantizedPNN": "distributions",
    "Recipe": "schedules",
    "Whitened": "whitened",
    "fit": "training",
    "load": "persistence",
    "pnn_parameters": "pnn",
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
