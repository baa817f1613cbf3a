"""How a fitted model of images is shown: a report on it."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

if TYPE_CHECKING:
    from nits.report.document import Report


class Shown:
    """The method that shows a model."""

    def report(self, images: Any, *, random_state: int = 0, verbose: bool = False) -> Report:
        """Returns a report on the model beside images: a page of HTML (docs/report.md)."""
        check_is_fitted(self, "model_")
        page = import_module("nits.report.image_page")  # a room above this one
        options = import_module("nits.report.document").Options
        found: Report = page.of_images(self, images, options(seed=random_state, quiet=not verbose))
        return found
