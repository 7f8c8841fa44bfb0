"""The gallery: a page for each mechanism and local protocol: `python -m noisette.report.gallery docs/gallery`.

A module's docstring states the law and the theorem, or that of the class it inherits them from; its paragraphs `When:`
and `Textbook:` say when to use it and where it is taught. The class has the runnable example, `examples` the figures
and the picture: the law at x and at x + 1.
"""

import hashlib
import math
import sys
from collections.abc import Hashable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from noisette.audit.contract import checks_of, discovered
from noisette.charts import Chart, law
from noisette.charts.laws import Law
from noisette.mechanisms.contract import Output
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure
from noisette.report import gallery_local
from noisette.report.gallery_cards import HEAD, call, card_of, five, introduction, slug

__all__ = ["pages", "pictures", "stamp"]

_DELTA = 1e-6
_HARDLY = 0.01  # two laws that differ less look the same


def pages() -> dict[str, str]:
    """Return the texts of the gallery by file name: README.md, a page for each mechanism and each local protocol.

    >>> "## Law and guarantee" in pages()["geometric.md"]
    True
    """
    kinds = _kinds()
    index = {"README.md": f"{_index(list(kinds))}\n{gallery_local.index()}"}
    return index | {f"{slug(kind)}.md": _page(kind, kinds[kind]) for kind in kinds} | gallery_local.pages()


def pictures() -> dict[str, Chart]:
    """Return the charts of the gallery by file name, one for each page."""
    own = {f"{slug(kind)}.svg": _picture(examples[0]) for kind, examples in _kinds().items()}
    return own | gallery_local.pictures()


def stamp(chart: Chart) -> str:
    """A comment at the end of a picture that says which chart it shows, whatever rendered it."""
    return f"<!-- chart {hashlib.sha256(chart.to_json().encode()).hexdigest()} -->"


def _kinds() -> dict[type, list[Any]]:
    """The examples of each mechanism."""
    kinds: dict[type, list[Any]] = {}
    for _, example in discovered():
        kinds.setdefault(type(example), []).append(example)
    return kinds


_GROUPS = {
    "additive": "Numbers",
    "partitions": "Groups whose keys nobody listed",
    "quantiles": "Quantiles and ranges",
    "selection": "The best of several candidates",
    "sparse_vector": "Many queries, few of them above a line",
    "stability": "Answers that hardly ever change",
    "smooth": "Answers that one record moves far on few tables only",
    "spatial": "Places",
    "randomized_response": "Answers that people give themselves",
}


def _index(kinds: list[type]) -> str:
    lines = [
        "# Mechanisms",
        "",
        HEAD,
        "",
        "[Which mechanism do I want?](../toolbox.md) begins with what you want to do.",
        "",
    ]
    for group, title in _GROUPS.items():
        found = [kind for kind in kinds if kind.__module__.split(".")[2] == group]
        rows = [
            f"| [{kind.__name__}]({slug(kind)}.md) | {card_of(kind).title} | {card_of(kind).when} |" for kind in found
        ]
        lines += [f"## {title}", "", "| | what it does | when to use it |", "|---|---|---|", *rows, ""]
    return "\n".join(lines)


def _page(kind: type, examples: list[Any]) -> str:
    usage = ["import math", "from noisette import *", "from noisette.mechanisms import *"]
    return "\n".join(
        [
            *introduction(kind, usage),
            *(f"![Its law at two neighbouring inputs, and the privacy loss between them]({slug(kind)}.svg)", ""),
            *("## Error", ""),
            *("| example | guarantee, one step apart | 95 % |", "|---|---|---|"),
            *(f"| `{call(m)}` | {m.guarantee()} | ± {m.interval(0.95):.4g} |" for m in examples),
            "",
            f"Checked by the audit for every example: {', '.join(checks_of(examples[0]))}.",
            "",
        ]
    )


# Pictures


def _picture(m: Any) -> Chart:
    """The laws at two neighbouring inputs: those of its pairs that differ most to the eye."""
    pairs = list(_pairs(m))
    nearest = [pair for pair in pairs if pair[2] == min(distance for *_, distance in pairs)]
    x, y, distance = max(nearest, key=lambda pair: _apart(_law(m, pair[0]), _law(m, pair[1])))
    laws = _law(m, x), _law(m, y)
    promise = m.guarantee(distance)
    names = (f"at {x}", f"at {y}") if len(f"{x}{y}") <= 70 else ("at x", "at x', one step apart")
    title = f"{type(m).__name__}: what is released, and how much it reveals"
    return law(*laws, names=names, epsilon=_epsilon(promise), title=title, note=f"{promise} · {call(m)}")


def _epsilon(promise: Guarantee) -> float | None:
    """The bound on the loss, if there is one."""
    match promise:
        case Pure() | Approx():
            return five(float(promise.epsilon))
        case ZCDP():
            return None
        case Profile():
            return five(promise.epsilon_at(_DELTA))


def _pairs(m: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Inputs one step apart: a number and the next one, else the mechanism's own pairs.

    Where scores are so far apart that one candidate is all but certain, the same step is taken from even ones, too.
    """
    for x, y, distance in m.pairs():
        if isinstance(x, int | Fraction) and m.kind is not Output.OUTCOME:
            yield math.floor(x), math.floor(x) + 1, 1
            continue
        yield x, y, distance
        if m.kind is not Output.OUTCOME and isinstance(x, list) and _apart(_law(m, x), _law(m, y)) < _HARDLY:
            yield [0] * len(x), [b - a for a, b in zip(x, y, strict=True)], distance


def _law(m: Any, x: Any) -> Law:
    """P(outcome); of a vector that of its first number."""
    if m.kind is Output.OUTCOME:
        return {outcome: five(p) for outcome, p in m.outcomes(x).items()}
    support = np.asarray(m.support(x))
    firsts = support[:, 0] if support.ndim > 1 else support
    found: dict[Hashable, float] = {}
    for outcome, p in zip(firsts.tolist(), np.asarray(m.pmf(support, x), dtype=float).tolist(), strict=True):
        found[outcome] = found.get(outcome, 0.0) + p
    return {outcome: five(p) for outcome, p in found.items()}


def _apart(here: Law, there: Law) -> float:
    """The total variation distance, without digits that depend on the order of its terms."""
    return five(math.fsum(abs(here.get(y, 0.0) - there.get(y, 0.0)) for y in {*here, *there}) / 2)


def main(folder: str) -> None:
    """Write all files of the gallery, and remove those that belong to nothing any more."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    files = pages() | {name: f"{chart.svg()}{stamp(chart)}\n" for name, chart in pictures().items()}
    for old in place.iterdir():
        if old.name not in files:
            old.unlink()
    for name, content in files.items():
        (place / name).write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
