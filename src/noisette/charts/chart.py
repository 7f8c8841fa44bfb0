"""A chart: a Vega-Lite specification with its data, a plain value until somebody wants a picture.

The specification needs nothing but Python; notebooks and web pages draw it themselves. Pictures and pages that work
without a network are rendered by vl-convert, which the extra `plot` brings.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, Final

from noisette.charts.legible import legible
from noisette.charts.theme import CONFIG
from noisette.errors import InputError

__all__ = ["Chart", "renderer"]

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v5.json"
_VERSION, _MIME = "5.20", "application/vnd.vegalite.v5+json"
_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>
<body><div id="chart"></div><script type="module">{library}</script>
<script type="module">draw("#chart", {spec}, {{actions: false, renderer: "svg"}})</script></body></html>
"""
_SHARP = 1.5  # pixels of a PNG for each point, unless the specification says another `scale`


@dataclass(frozen=True, repr=False)
class Chart:
    """A picture as data: `spec` is its Vega-Lite specification, with the values that are drawn and the theme.

    Texts that no renderer could draw are made legible first, whoever wrote them.

    >>> chart = Chart({"mark": "point", "data": {"values": [{"x": 1}]}, "title": {"text": "one"}})
    >>> chart, chart.values
    (Chart('one'), [{'x': 1}])
    """

    spec: Mapping[str, Any]

    def __post_init__(self) -> None:
        object.__setattr__(self, "spec", {"$schema": SCHEMA, "config": CONFIG, **legible(self.spec)})

    @property
    def title(self) -> str:
        """What is drawn, and for charts of answers the unit and the guarantee in a second line."""
        title = self.spec.get("title", {})
        below = title.get("subtitle", "")
        return "\n".join(filter(None, [title.get("text", ""), *([below] if isinstance(below, str) else below)]))

    @property
    def values(self) -> list[dict[str, Any]]:
        """All values that the chart carries, of all its layers."""
        return list(_values(self.spec))

    @property
    def texts(self) -> list[str]:
        """The texts that are written into the chart at places of their own, such as the names of lines."""
        return [row["text"] for row in self.values if "text" in row]

    def to_json(self) -> str:
        """The specification as JSON, for any program that reads Vega-Lite."""
        return _as_json(self.spec)

    def svg(self) -> str:
        """The chart as SVG text; needs the extra `plot`."""
        return str(_drawn(self, renderer().vegalite_to_svg))

    def save(self, path: str | Path) -> "Chart":
        """Save the chart as SVG, PNG, HTML (needs no network) or JSON, by the ending; return it.

        The same chart gives the same file.
        """
        ending = Path(path).suffix.lower()
        if ending not in _WRITERS:
            raise InputError("A chart is saved by the ending of its name: .svg, .png, .html or .json.")
        Path(path).write_bytes(_WRITERS[ending](self))
        return self

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """Notebooks draw the specification; where they cannot, they show the picture."""
        bundle: dict[str, Any] = {_MIME: self.spec, "text/plain": repr(self)}
        try:
            return {**bundle, "image/svg+xml": self.svg()}
        except InputError:  # without the extra
            return bundle

    def __repr__(self) -> str:
        return f"Chart({self.title.partition(chr(10))[0]!r})"


def renderer() -> Any:
    """Return vl-convert, or say how to install it."""
    try:
        import vl_convert
    except ImportError:
        raise InputError("Pictures of charts need vl-convert: pip install 'noisette[plot]'.") from None
    return vl_convert


def _as_json(spec: Any) -> str:
    return json.dumps(spec, ensure_ascii=False, allow_nan=False)


def _png(chart: Chart) -> bytes:
    scale = chart.spec.get("usermeta", {}).get("scale", _SHARP)
    return bytes(_drawn(chart, renderer().vegalite_to_png, scale=scale))


def _drawn(chart: Chart, draw: Callable[..., Any], **options: Any) -> Any:
    """A picture; the renderer fails where it cuts a text to its place between the two halves of an emoji."""
    for text in (chart.to_json(), _as_json(legible(chart.spec, beyond=False))):
        with suppress(ValueError):
            return draw(text, vl_version=_VERSION, **options)
    raise InputError("The renderer cannot draw this chart: save it as .json or .html, which browsers draw.")


def _html(chart: Chart) -> bytes:
    """A page with all scripts inside, and without the menu that would send the data to an editor on the web.

    Whatever the data hold stays data: no text of theirs can end the script.
    """
    spec = chart.to_json().replace("<", "\\u003c")
    title = escape(chart.title.partition("\n")[0])
    return _PAGE.format(title=title, library=_library(), spec=spec).encode()


@cache
def _library() -> str:
    """The scripts that draw; putting them together takes seconds."""
    bundle = str(renderer().javascript_bundle("window.draw = vegaEmbed", vl_version=_VERSION))
    return bundle.replace("</script", "<\\/script")


_WRITERS: Final[dict[str, Callable[[Chart], bytes]]] = {
    ".svg": lambda chart: chart.svg().encode(),
    ".png": _png,
    ".html": _html,
    ".json": lambda chart: chart.to_json().encode(),
}


def _values(spec: Any) -> Iterator[dict[str, Any]]:
    if isinstance(spec, Mapping):
        for name, part in spec.items():
            if name == "data":
                yield from filter(None, part.get("values", ()))
            else:
                yield from _values(part)
    elif isinstance(spec, list):
        for part in spec:
            yield from _values(part)
