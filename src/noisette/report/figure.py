"""Charts inside a page: the picture itself, in the page's colours, with nothing that leads elsewhere."""

import re
from html import escape

from noisette.charts import Chart
from noisette.errors import InputError

__all__ = ["figure"]

_SPACES = re.compile(r' (?:xmlns(?::\w+)?|version)="[^"]*"')


def figure(chart: Chart, caption: str = "") -> str:
    """A chart as markup; without the extra `plot` a sentence that says what is missing.

    >>> from noisette.charts import bars
    >>> figure(bars(["a"], {"n": ([3], [2], [4])}, title="a < b")).partition(">")[0]
    '<figure role="img" aria-label="a &lt; b"'
    """
    label = escape(chart.title.replace("\n", ", "))
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    try:
        drawn = chart.svg()
    except InputError as missing:
        return f'<p class="note">{label}: {escape(str(missing))}</p>'
    head, _, body = drawn.partition(">")
    return f'<figure role="img" aria-label="{label}">{_SPACES.sub("", head)}>{body}{below}</figure>'
