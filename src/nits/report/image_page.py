"""The report on a model of images: runs every section, and puts them on a page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nits.images.estimator import NITSImages
from nits.report import document, pictures, provenance, words
from nits.report.document import LAST, Options, Report, Sections, Stages
from nits.report.findings import Finding
from nits.report.pictures import Album, Bits

SECTIONS: Sections = {
    "bits": ("Bits per dimension", pictures.bits),
    "pictures": ("Images and samples", pictures.pictures),
    "surprise": ("Surprise", pictures.surprise),
    "training": ("Training", lambda album: provenance.of_history(album.model.history_)),
}


def of_images(
    model: NITSImages,
    images: Any,
    options: Options = Options(),  # noqa: B008 - a tuple
) -> Report:
    """Returns the report on a model beside images: an array, or the path of a folder."""
    with Stages(len(SECTIONS) + 2, quiet=options.quiet) as stages:
        stages.at("Drawing images")
        album = Album(model, images, options.seed)
        found, reasons = document.measured(SECTIONS, album, stages)
        files = document.files(options.model_file, None)
        found[LAST[0]] = provenance.of_model(model, options.seed, files)
        stages.at("Writing the page")
        folder = Path(images).name if isinstance(images, str | Path) else "those given"
        about = {
            "title": files[0].name if files else type(model).__name__,
            "judged": f"{album.words} of {folder}",
            "shape": model.shape_,
            "titles": document.titles(SECTIONS),
            "found": found,
            "reasons": reasons,
            "findings": _findings(found["bits"]),
        }
        text = document.rendered("images.html", about)
    return Report(text, found, reasons)


def _findings(bits: Bits) -> list[Finding]:
    here = words.fixed(bits.mean)
    own = here if bits.held_out is None else words.fixed(bits.held_out)
    title = "These images" if bits.held_out is None else "Held-out images"
    note = f"bits per dimension; {here} on the images here"
    alone = f"bits per dimension if each value had its share, {words.fixed(bits.uniform, 1)} if all"
    return [
        Finding(title, own, note, "bits"),
        Finding("Pixels alone", words.fixed(bits.alone), f"{alone} were alike", "bits"),
    ]
