"""Charts as files."""

from pathlib import Path
from typing import Any

from noisette.errors import InputError

__all__ = ["saved"]

_TIMELESS: dict[str, dict[str, None]] = {".svg": {"Date": None}, ".png": {}, ".pdf": {"CreationDate": None}}


def saved(figure: Any, path: str | Path | None) -> Any:
    """Save the chart if it has a path, as SVG, PNG or PDF by its ending, and return it.

    The same chart gives the same file: no date is written, and the names inside an SVG are not drawn at random.
    """
    if path is None:
        return figure
    ending = Path(path).suffix.lower()
    if ending not in _TIMELESS:
        raise InputError("A chart is saved as SVG, PNG or PDF: let its name end in .svg, .png or .pdf.")
    from matplotlib import rc_context

    with rc_context({"svg.hashsalt": "noisette"}):
        figure.savefig(path, dpi=160, metadata=_TIMELESS[ending])
    return figure
