"""Maps of who is nearest to a place: where people are, and where laws answer."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from noisette.charts.chart import Chart
from noisette.charts.spec import Spec, titled
from noisette.charts.spec import rows as table
from noisette.charts.theme import INK, ORANGE
from noisette.errors import InputError

__all__ = ["nearest"]

_LEAST = 1e-6  # a probability that is drawn as nothing
_WIDTH = 260
Ends = tuple[int, int]


def nearest(
    people: Sequence[tuple[int, int]],
    laws: Mapping[str, Any],
    *,
    columns: Ends,
    rows: Ends,
    place: tuple[int, int],
    title: str = "",
    note: str = "",
) -> Chart:
    """Draw a map of invented or public people, and one for each law: P(each point), an array of rows by columns.

    >>> chart = nearest([(0, 0)], {"even": [[0.5, 0.5]]}, columns=(0, 1), rows=(0, 0), place=(1, 0))
    >>> [row["p"] for row in chart.values if "p" in row]
    [0.5, 0.5]
    """
    shape = (rows[1] - rows[0] + 1, columns[1] - columns[0] + 1)
    grids = {name: np.asarray(law, dtype=float) for name, law in laws.items()}
    if any(grid.shape != shape for grid in grids.values()):
        raise InputError("A law has a probability for each point: an array of rows by columns.")
    most = max((float(grid.max()) for grid in grids.values()), default=1.0)
    frame = _Frame(columns, rows, place, most)
    parts = [frame.people(people), *(frame.law(name, grid) for name, grid in grids.items())]
    return Chart({"title": titled(title, note), "concat": parts, "columns": 3})


class _Frame:
    """The map that all panels share."""

    def __init__(self, columns: Ends, rows: Ends, place: tuple[int, int], most: float) -> None:
        self.columns, self.rows, self.place, self.most = columns, rows, place, most
        self.step = _WIDTH / (columns[1] - columns[0] + 1)

    def people(self, people: Sequence[tuple[int, int]]) -> Spec:
        """Where people are; points with many are darker."""
        x, y = np.asarray(people).T
        dots = {"type": "circle", "color": INK, "opacity": 0.3, "size": max(4.0, self.step**2)}
        return self._panel(f"{len(x):,} people, and the place", table(x=x.tolist(), y=y.tolist()), dots, {})

    def law(self, name: str, grid: Any) -> Spec:
        """Where a law answers, on a logarithmic scale of colours."""
        down, across = np.nonzero(grid >= _LEAST)
        data = table(
            x=(across + self.columns[0]).tolist(), y=(down + self.rows[0]).tolist(), p=grid[down, across].tolist()
        )
        squares = {"type": "square", "size": (1.25 * self.step) ** 2, "opacity": 1}
        colour = {
            "field": "p", "type": "quantitative", "legend": {"title": "P(point)", "format": ".0e", "tickCount": 4},
            "scale": {"type": "log", "scheme": "yellowgreenblue", "domain": [_LEAST, self.most]},
        }  # fmt: skip
        return self._panel(name, data, squares, {"color": colour})

    def _panel(self, title: str, data: Spec, mark: Spec, encoding: Spec) -> Spec:
        x, y = (
            {"type": "quantitative", "axis": {"title": None, "grid": False, "tickCount": 5},
             "scale": {"domain": [ends[0] - 0.5, ends[1] + 0.5], "nice": False, "zero": False}}
            for ends in (self.columns, self.rows)
        )  # fmt: skip
        ring = {"type": "point", "color": ORANGE, "size": 110, "strokeWidth": 2.5, "filled": False}
        places = {"x": {"field": "x"}, "y": {"field": "y"}}
        return {
            "title": {"text": title, "fontSize": 12, "fontWeight": "normal", "offset": 6},
            "width": _WIDTH, "height": self.step * (self.rows[1] - self.rows[0] + 1),
            "encoding": {"x": x, "y": y},
            "layer": [
                {"data": data, "mark": mark, "encoding": {**places, **encoding}},
                {"data": table(x=[self.place[0]], y=[self.place[1]]), "mark": ring, "encoding": places},
            ],
        }  # fmt: skip
