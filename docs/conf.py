"""Configuration of Sphinx."""

import inspect
import re
import sys
from importlib.metadata import metadata
from pathlib import Path
from typing import get_origin

from docutils.parsers.rst.states import Inliner

project = "dpbayes_sklearn"
author = metadata(project)["Author"]
copyright = f"2026, {author}"
release = version = metadata(project)["Version"]

sys.path.insert(0, str(Path(__file__).parent / "_ext"))
extensions = [
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "strict_gallery",
]
templates_path = ["_templates"]
html_theme = "furo"
html_math_renderer = "mathml"
html_static_path = ["_static"]
html_extra_path = ["schemas"]
html_css_files = ["custom.css"]
html_title = f"{project} {release}"

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3


def figure_style(gallery_conf, fname):
    """Use constrained layout and no upper or right spine in the gallery."""
    import matplotlib as mpl

    mpl.rcParams.update(
        {
            "figure.constrained_layout.use": True,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "savefig.facecolor": "white",
        }
    )


sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "auto_examples",
    "within_subsection_order": "strict_gallery.JourneysFirst",
    "reset_modules": ("matplotlib", figure_style, "strict_gallery.strict"),
    "reset_modules_order": "both",
    "abort_on_example_error": True,
    "download_all_examples": False,
    "thumbnail_size": (640, 400),
    "show_memory": False,
    "show_signature": False,
    "ignore_pattern": r"journey_data\.py",
}

suppress_warnings = ["config.cache"]  # the gallery's configuration holds a function

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
_ROUTED = ["fit", "partial_fit", "predict", "score"]
_SKLEARNS = ["set_output", *(f"set_{method}_request" for method in _ROUTED)]
numpydoc_show_class_members = False
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"  # fit() instead of BayesianNaiveBayes.fit()
autodoc_default_options = {
    "members": True,
    "inherited-members": ",".join(_STOP_AT),
    "exclude-members": ",".join(_SKLEARNS),
}


def skip_type_alias(app, what, name, obj, skip, options):
    """Leave out names for a type such as ``Codes = NDArray[np.uint8]``; they have no signature."""
    return skip or get_origin(obj) is not None


def plain_bar(inliner, match, lineno):
    """Read ``|z|`` as an absolute value, not as the name of a substitution."""
    end = match.end("start")
    return match.string[:end], [], match.string[end:], []


def real_signature(app, what, name, obj, options, signature, return_annotation):
    """Show the parameters of ``__init__``, not those of the ``__new__`` that hints at mistypes."""
    if what != "class" or signature != "(*_, **params)":
        return None
    own = inspect.signature(obj.__init__)
    plain = [p.replace(annotation=p.empty) for p in list(own.parameters.values())[1:]]
    return str(own.replace(parameters=plain, return_annotation=own.empty)), return_annotation


def without_empty_end(app, docname, source):
    """Take away the empty line that doctest needs before a closing fence."""
    source[0] = re.sub(r"\n\n(```+)$", r"\n\1", source[0], flags=re.M)


def setup(app):
    app.connect("source-read", without_empty_end)
    Inliner.dispatch["|"] = plain_bar
    app.connect("autodoc-skip-member", skip_type_alias)
    app.connect("autodoc-process-signature", real_signature)
