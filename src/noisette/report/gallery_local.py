"""The pages of local protocols in the gallery: law, guarantee, a runnable example, and a picture of the error.

The classes are those with `examples` in `noisette.local`, and `PlanarLaplace`, whose promise is per metre. A picture
shows n times the variance against epsilon where there is a closed form, beside the least that any protocol reaches.
"""

import importlib
import pkgutil
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

from noisette import local
from noisette.charts import Chart, curves, law
from noisette.local.frequencies import FrequencyOracle
from noisette.local.means import MeanProtocol
from noisette.report.gallery_cards import call, card_of, five, introduction, slug

__all__ = ["index", "pages", "pictures"]

_EPSILONS = [Fraction(part * 2**i, 8) for i in range(1, 5) for part in (1, Fraction(3, 2))] + [Fraction(4)]
_SMALL, _LARGE = 16, 1024
_USAGE = ["import numpy as np", "from noisette.local import *"]


def _kinds() -> dict[type, list[Any]]:
    """The examples of each protocol."""
    kinds: dict[type, list[Any]] = {}
    for module in pkgutil.iter_modules(local.__path__, "noisette.local."):
        for example in getattr(importlib.import_module(module.name), "examples", []):
            kinds.setdefault(type(example), []).append(example)
    return kinds | {local.PlanarLaplace: [local.PlanarLaplace("0.01", step=10), local.PlanarLaplace("0.1", step=1)]}


def _name(kind: type) -> str:
    """The name of a page's files."""
    return f"local-{slug(kind)}"


def index() -> str:
    """Return the table of local protocols for README.md."""
    cards = {kind: card_of(kind) for kind in _kinds()}
    rows = [f"| [{kind.__name__}]({_name(kind)}.md) | {card.title} | {card.when} |" for kind, card in cards.items()]
    about = "Nobody is trusted: each person's own report is private. [Local privacy](../local.md) compares them."
    head = ["| | what it does | when to use it |", "|---|---|---|"]
    return "\n".join(["## Local protocols", "", about, "", *head, *rows, ""])


def pages() -> dict[str, str]:
    """Return a page for each protocol by file name."""
    return {f"{_name(kind)}.md": _page(kind, examples) for kind, examples in _kinds().items()}


def pictures() -> dict[str, Chart]:
    """Return a chart for each protocol by file name."""
    return {f"{_name(kind)}.svg": _picture(kind, examples) for kind, examples in _kinds().items()}


def _page(kind: type, examples: list[Any]) -> str:
    rows = [f"| `{call(m)}` | {m.guarantee()} | {_variance(m)} | {m.bits} |" for m in examples]
    head = ["| example | each report | n × variance | bits of a report |", "|---|---|---|---|"]
    picture = f"![{_picture(kind, examples).title}]({_name(kind)}.svg)"
    checked = "Tests enumerate the reports of every example for all pairs of values: the guarantee holds, and is tight."
    tested = [] if kind is local.PlanarLaplace else [checked, ""]
    return "\n".join([*introduction(kind, _USAGE), picture, "", "## Error", "", *head, *rows, "", *tested])


def _variance(m: Any) -> str:
    return f"{m.variance():.4g}" if hasattr(m, "variance") else "no closed form"


# Pictures


def _picture(kind: type, examples: list[Any]) -> Chart:
    if kind is local.SquareWave:
        return _two_laws(examples[0])
    for known, (draw, x, y) in _PICTURES.items():
        if known in kind.__mro__:
            return curves(draw(kind), x=x, y=y, title=f"{kind.__name__}: {y} against {x}")
    raise AssertionError(f"no picture for {kind.__name__}")


Lines = dict[str, list[tuple[float, float]]]


def _line(points: Iterable[tuple[Any, Any]]) -> list[tuple[float, float]]:
    """Points with five digits: the rest may differ from machine to machine."""
    return sorted((five(float(x)), five(float(y))) for x, y in points)


def _shares(kind: Any) -> Lines:
    """The protocol for two sizes of the domain, and the least variance that is possible."""
    best = {} if kind is local.SubsetSelection else {"least possible, ": local.SubsetSelection}
    return {
        f"{name}{k:,} values": _line((e, one(e, domain=k).variance()) for e in _EPSILONS)
        for name, one in {"": kind, **best}.items()
        for k in (_SMALL, _LARGE)
    }


def _hadamard(kind: Any) -> Lines:
    """The plain form, which has one variance for all sizes, and the one with the best number of blocks."""
    plain = {"plain": _line((e, kind(e, domain=_SMALL).variance()) for e in _EPSILONS)}
    least = {f"least possible, {_LARGE:,} values": _shares(local.SubsetSelection)[f"{_LARGE:,} values"]}
    blocked = {
        f"blocked, {k:,} values": _line((e, kind(e, domain=k, blocks=None).variance()) for e in _EPSILONS)
        for k in (_SMALL, _LARGE)
    }
    return plain | blocked | least


def _rappor(kind: Any) -> Lines:
    """Other shares f of permanent noise: what one report costs, and all reports of a value together."""
    made = [kind(f=Fraction(i, 16), p="1/4", q="3/4", domain=_SMALL, length=64, hashes=2) for i in range(2, 15)]
    return {
        "one report": _line((m.epsilon, m.variance()) for m in made),
        "all reports of a value": _line((m.guarantee_forever().epsilon, m.variance()) for m in made),
    }


def _queries(kind: Any) -> Lines:
    each = {"20 queries, ε/20 for each": _line((e, local.GRR(e / 20, domain=2).variance()) for e in _EPSILONS)}
    split = {1: "1 query", 20: "20 queries"}
    return {name: _line((e, kind(e, queries=k).variance()) for e in _EPSILONS) for k, name in split.items()} | each


def _means(kind: Any) -> Lines:
    kinds = dict.fromkeys((kind, local.Duchi, local.Piecewise, local.Hybrid))
    return {one.__name__: _line((e, one(e).variance()) for e in _EPSILONS) for one in kinds}


def _vectors(kind: Any) -> Lines:
    return {f"{d:,} coordinates": _line((e, kind(e, dimension=d).variance() / d) for e in _EPSILONS) for d in (2, 1000)}


def _places(kind: Any) -> Lines:
    made = [kind(Fraction(1, 4**i), step=Fraction(4**i, 10)) for i in range(1, 7)]
    return {f"{level:.0%} of reports": _line((m.epsilon, m.error(level)) for m in made) for level in (0.5, 0.95, 0.99)}


def _found(kind: Any) -> Lines:
    people = [10**i for i in range(4, 9)]
    return {f"ε = {e}": _line((n, kind(e, length=32).detectable(n)) for n in people) for e in (1, 2, 4)}


_EACH, _SHARE = "ε of each report", "n × variance of a share"
_PICTURES: dict[type, tuple[Callable[[Any], Lines], str, str]] = {
    local.Rappor: (_rappor, "ε", _SHARE),
    local.SplitQueries: (_queries, _EACH, _SHARE),
    local.HadamardResponse: (_hadamard, _EACH, _SHARE),
    FrequencyOracle: (_shares, _EACH, _SHARE),
    MeanProtocol: (_means, _EACH, "n × largest variance of the mean"),
    local.PrivUnitG: (_vectors, _EACH, "n × variance of a coordinate"),
    local.PlanarLaplace: (_places, "ε for each metre", "metres from the place"),
    local.PrefixTree: (_found, "number of people", "share that is found"),
}  # the first that fits


def _two_laws(m: Any) -> Chart:
    """The reports of the least and of the largest value."""
    least, *_, largest = m.values()
    laws = [{y: five(float(m.likelihood(y, value))) for y in m.reports()} for value in (least, largest)]
    title = f"{type(m).__name__}: what is reported, and how much it reveals"
    names = "at the least value", "at the largest"
    return law(laws[0], laws[1], names=names, epsilon=five(float(m.epsilon)), title=title, note=call(m))
