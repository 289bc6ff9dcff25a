"""Examples of the gallery must run without a warning, leave no file behind and draw a figure."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx_gallery.sorting import ExampleTitleSortKey

EXAMPLES = Path(__file__).parents[2] / "examples"
before: dict[str, Any] = {}


class JourneysFirst(ExampleTitleSortKey):  # type: ignore[misc]
    """Sort examples by title, after those that lead from a file to a card."""

    def __call__(self, filename: str) -> tuple[bool, Any]:
        """Return the key of an example."""
        return not filename.startswith("plot_journey"), super().__call__(filename)


def strict(gallery_conf: dict[str, Any], fname: object, when: str) -> None:
    """Make warnings errors while an example runs; afterwards look for files that it has left."""
    if when == "before":
        before.update(filters=warnings.filters[:], files=set(EXAMPLES.iterdir()))
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "FigureCanvasAgg is non-interactive")
        return
    warnings.filters[:] = before["filters"]  # type: ignore[index]
    if left := set(EXAMPLES.iterdir()) - before["files"]:
        raise ExtensionError(f"{fname} leaves files behind: {sorted(map(str, left))}")


def every_example_has_a_figure(app: Sphinx, error: Exception | None) -> None:
    """Refuse an example without a figure, unless the build has failed already."""
    images = Path(app.srcdir) / "auto_examples" / "images"
    for example in EXAMPLES.glob("plot_*.py") if error is None else ():
        if not any(images.glob(f"sphx_glr_{example.stem}_0*.png")):
            raise ExtensionError(f"{example.name} draws no figure.")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the last check."""
    app.connect("build-finished", every_example_has_a_figure)
    return {"parallel_read_safe": True}
