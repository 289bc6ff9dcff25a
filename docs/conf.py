"""Configuration of Sphinx."""

from importlib.metadata import metadata
from typing import get_origin

from docutils.parsers.rst.states import Inliner

project = "dpbayes_sklearn"
author = metadata(project)["Author"]
copyright = f"2026, {author}"
release = version = metadata(project)["Version"]

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "sphinx.ext.viewcode",
]
templates_path = ["_templates"]
html_theme = "furo"
html_title = f"{project} {release}"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3

# Inherited methods are part of an estimator; those of scikit-learn are documented by scikit-learn.
_STOP_AT = [
    "BaseEstimator",
    "_MetadataRequester",
    "ClassifierMixin",
    "RegressorMixin",
    "ValueError",
    "RuntimeError",
    "UserWarning",
]
_REQUESTS = [f"set_{method}_request" for method in ["fit", "partial_fit", "predict", "score"]]
numpydoc_show_class_members = False
autodoc_typehints = "none"
autodoc_default_options = {
    "members": True,
    "inherited-members": ",".join(_STOP_AT),
    "exclude-members": ",".join(_REQUESTS),
}


def skip_type_alias(app, what, name, obj, skip, options):
    """Leave out names for a type such as ``Codes = NDArray[np.uint8]``; they have no signature."""
    return skip or get_origin(obj) is not None


def plain_bar(inliner, match, lineno):
    """Read ``|z|`` as an absolute value, not as the name of a substitution."""
    end = match.end("start")
    return match.string[:end], [], match.string[end:], []


def setup(app):
    Inliner.dispatch["|"] = plain_bar
    app.connect("autodoc-skip-member", skip_type_alias)
