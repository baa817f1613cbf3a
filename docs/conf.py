"""How Sphinx builds the site for `make docs`; tutorials run while it builds."""

import logging
import os
import sys
from pathlib import Path

import nits

os.environ["MATPLOTLIBRC"] = str(Path(__file__).parent / "matplotlibrc")  # for the tutorials
logging.getLogger("traitlets").setLevel(logging.WARNING)  # it tells of every kernel it starts
sys.path.insert(0, str(Path(__file__).parent / "extensions"))

project = "nits"
author = "The nits authors"
project_copyright = author
version = release = nits.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx_copybutton",
    "sphinx_design",
    "accessible",
    "docstrings",
    "repository",
]
exclude_patterns = ["extensions/**", "README.md"]
source_suffix = {".md": "myst-nb"}
highlight_language = "text"
nitpicky = False

myst_enable_extensions = ["attrs_inline", "colon_fence", "deflist"]
myst_heading_anchors = 3
myst_url_schemes = {"http": None, "https": None, "mailto": None, "source": "source:{{path}}"}

# What a page shows was computed when the site was built: nothing is kept between builds.
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
nb_execution_show_tb = True
nb_merge_streams = True
nb_execution_in_temp = True

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_preserve_defaults = True
autodoc_class_signature = "mixed"
python_use_unqualified_type_names = True
maximum_signature_line_length = 90

copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = "nits"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sphinx = False
html_copy_source = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6a75", "color-brand-content": "#0b6a75"},
    "dark_css_variables": {"color-brand-primary": "#5cc3cf", "color-brand-content": "#5cc3cf"},
    "top_of_page_buttons": [],
}
pygments_style = "a11y-high-contrast-light"
pygments_dark_style = "a11y-high-contrast-dark"
