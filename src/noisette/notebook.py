"""A magic for notebooks: `%load_ext noisette`, then cells of SQL that begin with `%%noisette visits --spend 0.1`.

    %%noisette visits --spend 0.1 --into by_ward
    SELECT ward, count(*) AS n FROM visits GROUP BY ward

`visits` is a variable that holds a curator; it may be left out where the notebook has only one. `--error 30` asks for
an error instead of a price, `--explain` shows what to expect and spends nothing, `--into` keeps the answer by a name.
`%noisette visits` shows the tables and what is left of the budget.
"""

import argparse
import shlex
from typing import Any, NoReturn

from noisette.curator import Curator
from noisette.errors import InputError

__all__ = ["asked", "load"]


class _Options(argparse.ArgumentParser):
    """Options of the magic; what is wrong with them is an error of ours, and the notebook goes on."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message[:1].upper()}{message[1:]}: write %%noisette visits --spend 0.1.")


def _options() -> _Options:
    parser = _Options(prog="%%noisette", add_help=False, allow_abbrev=False)
    parser.add_argument("curator", nargs="?")
    parser.add_argument("--spend")
    parser.add_argument("--error", type=float)
    parser.add_argument("--level", type=float, default=0.95)
    parser.add_argument("--analyst")
    parser.add_argument("--explain", action="store_true")
    parser.add_argument("--into")
    return parser


def asked(line: str, cell: str | None, names: dict[str, Any]) -> Any:
    """What a line and the cell below it ask for; `names` are the variables of the notebook.

    >>> import noisette as nz, pyarrow
    >>> names = {"people": nz.open(pyarrow.table({"age": [34, 51, 68]}), budget=1)}
    >>> answer = asked("people --spend 0.5 --into counted", "SELECT count(*) AS n FROM data", names)
    >>> names["counted"]["n"].name
    'n'
    """
    options = _options().parse_args(shlex.split(line))
    curator = _curator(options.curator, names)
    if cell is None or not cell.strip():
        return curator
    price = {"spend": options.spend, "error": options.error, "level": options.level, "analyst": options.analyst}
    found = (curator.explain if options.explain else curator.ask)(cell, **price)
    if options.into:
        if not options.into.isidentifier():
            raise InputError("--into takes a name for the answer, such as --into by_ward.")
        names[options.into] = found
    return found


def _curator(name: str | None, names: dict[str, Any]) -> Curator:
    found = {key: value for key, value in names.items() if isinstance(value, Curator) and not key.startswith("_")}
    if name is None and len({id(value) for value in found.values()}) == 1:
        return next(iter(found.values()))
    if name in found:
        return found[name]
    which = f"{', '.join(sorted(found))}" if found else "none yet: open data first, visits = nz.open(...)"
    raise InputError(f"Name the variable that holds the curator, %%noisette visits; there is {which}.")


def load(ipython: Any) -> None:
    """Make `%noisette` and `%%noisette` known to a notebook."""

    def magic(line: str, cell: str | None = None) -> Any:
        return asked(line, cell, ipython.user_ns)

    ipython.register_magic_function(magic, magic_kind="line_cell", magic_name="noisette")
