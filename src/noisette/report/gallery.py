"""The gallery of mechanisms, written from their docstrings: `python -m noisette.audit.gallery > docs/mechanisms.md`."""

import inspect
import sys
from typing import Any

from noisette.audit.discover import discovered

__all__ = ["gallery"]

_HEAD = """# Mechanisms

Written by `python -m noisette.audit.gallery` from the docstrings, which the audit checks; do not edit by hand.
"""


def gallery() -> str:
    """Return a page with the theorem, an example and the figures of every mechanism.

    >>> "## Geometric" in gallery()
    True
    """
    kinds: dict[type, list[Any]] = {}
    for _, example in discovered():
        kinds.setdefault(type(example), []).append(example)
    return "\n".join([_HEAD, *(_chapter(kind, examples) for kind, examples in kinds.items())])


def _chapter(kind: type, examples: list[Any]) -> str:
    theorem = inspect.getdoc(sys.modules[kind.__module__]) or ""
    prose, _, usage = (inspect.getdoc(kind) or "").partition(">>>")
    rows = [f"| `{_call(m)}` | {m.guarantee()} | {m.variance():.4g} | ± {m.interval(0.95):.4g} |" for m in examples]
    return "\n".join(
        [
            f"## {kind.__name__}\n\n{theorem}\n\n{prose.strip()}\n",
            f"```python\n>>> import math\n>>> from noisette import *\n>>> {usage.strip()}\n```\n",
            "| example | guarantee, one step apart | variance | 95 % |\n|---|---|---|---|",
            *rows,
            "",
        ]
    )


def _call(m: Any) -> str:
    fields = ", ".join(f"{name}={value}" for name, value in vars(m).items())
    return f"{type(m).__name__}({fields})"


if __name__ == "__main__":
    print(gallery(), end="")
