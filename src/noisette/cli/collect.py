"""`noisette collect`: rounds of local privacy, and what their reports say."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO

import typer
from typer.core import TyperGroup

from noisette.cli.common import Json, Level, as_json, patience, text_of
from noisette.errors import InputError
from noisette.terminal import echo
from noisette.text import aligned

if TYPE_CHECKING:
    from noisette.local.collector import Collected, Collector

__all__ = ["collect"]

_ROUND = 1 << 24  # bytes: no round is longer
_MERGE = "--merge takes partial aggregates, which `noisette collect … -o FILE` writes."


class _Files(TyperGroup):
    """`collect FILES` is short for `collect reports FILES`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the name of a command, or files."""
        named = not args or args[0] in self.commands or args[0] in ("--help", "-h")
        return super().parse_args(ctx, args if named else ["reports", *args])


collect = typer.Typer(
    cls=_Files, help="Collect reports of local privacy: each person's own report is private.", no_args_is_help=True
)


@collect.command()
def new(
    file: Annotated[Path, typer.Argument(help="The round file to write, which clients and collectors read.")],
    epsilon: Annotated[str | None, typer.Option(help="What a report may cost its sender: 1, or 0.5, or 1/3.")] = None,
    values: Annotated[int | None, typer.Option(help="How many values there are, coded 0, 1, …")] = None,
    names: Annotated[
        Path | None, typer.Option(help="Or a text file with a value on each line.", metavar="FILE")
    ] = None,
    number: Annotated[int, typer.Option("--round", help="The number of the round.")] = 1,
    bits: Annotated[int | None, typer.Option(help="The most bits that a report may have.")] = None,
    protocol: Annotated[str | None, typer.Option(help="GRR, OLH, …; else the one with the least variance.")] = None,
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--with", help="A parameter of --protocol, such as low=0: for means, vectors, places.", metavar="NAME=VALUE"
        ),
    ] = None,
) -> None:
    """Write a round file: the protocol with the least variance for these values, or the one that you name."""
    from noisette.local.wire import Round

    named = None if names is None else tuple(text_of(names).splitlines())
    count = len(named) if named is not None else values
    if named is not None and values is not None:
        raise InputError("Give --values or --names, not both.")
    if count is not None:
        if epsilon is None or given:
            raise InputError("With --values or --names give --epsilon, and no --with.")
        chosen, why = _chosen(count, epsilon, bits, protocol)
    elif protocol is not None:
        chosen, why = _named(protocol, epsilon, given or []), f"{protocol}, as you named it."
    else:
        raise InputError("Say how many values there are (--values 1000, or --names FILE), or name a --protocol.")
    made = Round(chosen, number=number, values=named)
    _write(file, made.to_json() + "\n")
    echo(why)
    echo(f"{made.record_bytes} bytes a report, {_price(chosen)}; {file.name} is public.")


def _write(file: Path, text: str) -> None:
    try:
        with file.open("x", encoding="utf-8") as out:
            out.write(text)
    except FileExistsError:
        raise InputError(f"The file {file.name} is there already: name another one, or remove it.") from None
    except OSError:
        raise InputError(f"The file {file.name} cannot be written: check its folder.") from None


def _chosen(count: int, epsilon: str, bits: int | None, name: str | None) -> tuple[Any, str]:
    """The protocol for the shares of `count` values, and why."""
    from noisette import local

    choice = local.choose(count, epsilon, bits)
    candidates = {type(c.protocol).__name__: c.protocol for c in reversed(choice.candidates)}
    if name is None:
        return choice.protocol, choice.why
    if name not in candidates:
        raise InputError(f"--protocol must be one of {', '.join(sorted(candidates))} here.")
    return candidates[name], f"{name}: {candidates[name].variance():.4g}/n."


def _named(name: str, epsilon: str | None, given: list[str]) -> Any:
    """The protocol of that name with the parameters given as NAME=VALUE."""
    from dataclasses import MISSING, fields

    from noisette.local.wire import KINDS

    if name not in KINDS:
        raise InputError(f"--protocol must be one of {', '.join(KINDS)}.")
    parameters = dict(part.partition("=")[::2] for part in given)
    if epsilon is not None:
        parameters["epsilon"] = epsilon
    known = {field.name: field for field in fields(KINDS[name])}
    needed = {field.name for field in known.values() if field.default is MISSING}
    if not needed <= set(parameters) <= set(known):
        least, more = ", ".join(n for n in known if n in needed), ", ".join(n for n in known if n not in needed)
        raise InputError(
            f"{name} needs {least}{f', and takes {more}' if more else ''}: give each as --with NAME=VALUE."
        )
    return KINDS[name](**{key: int(x) if x.isdecimal() else x for key, x in parameters.items()})


def _price(protocol: Any) -> str:
    """What a report costs its sender, in words."""
    from noisette.privacy import Pure

    each = "for each" if isinstance(protocol.guarantee(), Pure) else "for each metre between two places, in each"
    return f"ε = {float(protocol.epsilon):g} {each}"


@collect.command()
def reports(
    files: Annotated[
        list[Path], typer.Argument(help="A round file, then reports and partial aggregates; - is the input.")
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a partial aggregate.", metavar="FILE")
    ] = None,
    merge: Annotated[
        bool, typer.Option("--merge", help="All files are partial aggregates, which know their round.")
    ] = False,
    level: Level = 0.95,
    top: Annotated[int, typer.Option(help="How many values are shown, from the largest share on.", min=1)] = 20,
    json: Json = False,
) -> None:
    """Estimate from reports, each counted once; partial aggregates merge in any order.

    A file that is refused is named, the others count, and the command ends with 1.
    """
    from noisette.local.collector import Collector
    from noisette.local.partial import is_partial, round_in

    start = _start(files[0])
    if merge and not is_partial(start):
        raise InputError(_MERGE)
    files, collector = (files, None) if is_partial(start) else (files[1:], Collector(round_in(start)))
    with patience("Collecting"):
        collector, faults = _collected(files, collector)
        found = None if collector is None or (faults and len(faults) == len(files)) else collector.result()
    if collector is not None and found is not None:
        if output is not None:
            _save(collector, output)
        echo(as_json(_record(found, level)) if json else _shown(found, level, top))
    for fault in faults:
        echo(fault, err=True)
    if faults:
        raise typer.Exit(2 if found is None else 1)


def _start(file: Path) -> bytes:
    with _opened(file) as stream:
        return stream.read(_ROUND)


def _collected(files: list[Path], collector: "Collector | None") -> tuple["Collector | None", list[str]]:
    """What the files hold, and why some are refused; without a collector the first that is not names the round."""
    faults = []
    for file in files:
        with _opened(file) as stream:  # a file that is not there is no reason to go on without it
            try:
                into = collector or _of_its_round(file)
                into.read(stream)
            except InputError as fault:
                faults.append(f"The file {file.name} is refused and does not count: {fault}")
            else:
                collector = into
    return collector, faults


def _of_its_round(file: Path) -> "Collector":
    from noisette.local.collector import Collector
    from noisette.local.partial import is_partial, round_in

    start = _start(file)
    if not is_partial(start):
        raise InputError(_MERGE)
    return Collector(round_in(start))


def _opened(file: Path) -> BinaryIO:
    try:
        return sys.stdin.buffer if str(file) == "-" else file.open("rb")
    except OSError:
        raise InputError(f"The file {file.name} cannot be read: check its path and its permissions.") from None


def _save(collector: "Collector", file: Path) -> None:
    try:
        with file.open("wb") as out:
            collector.save(out)
    except OSError:
        raise InputError(f"The file {file.name} cannot be written: check its folder.") from None


def _record(found: "Collected", level: float) -> dict[str, Any]:
    protocol = found.round.protocol
    said = {"round": found.round.number, "protocol": type(protocol).__name__, "epsilon": str(protocol.epsilon)}
    counts = {"people": found.aggregate.people, "repeated": found.repeated, "rejected": found.rejected}
    return said | counts | {"level": level, "estimates": found.rows(level)}


def _shown(found: "Collected", level: float, top: int) -> str:
    protocol, rows = found.round.protocol, found.rows(level)
    shares = bool(rows) and "share" in rows[0]
    largest = (sorted(rows, key=lambda row: -row["share"]) if shares else rows)[:top]
    lines = [f"round {found.round.number}: {type(protocol).__name__}, {found.aggregate.people:,} reports count"]
    if largest:
        name, what = list(largest[0])[:2]
        form = ".2%" if shares else ".6g"
        table = [
            [str(row[name]), format(row[what], form), f"{row['low']:{form}} to {row['high']:{form}}"] for row in largest
        ]
        lines.append(aligned([name, what, f"{level:.0%} error bar"], table))
    lines += [f"{len(rows) - len(largest):,} more rows; --json has all"] if len(rows) > len(largest) else []
    rejected = ", ".join(f"{count:,} {reason}" for reason, count in found.rejected.items())
    lines.append(f"came again: {found.repeated:,}; rejected: {rejected}")
    lines.append(f"{_price(protocol)} report, whoever reads it; reports of one person add up")
    return "\n".join(lines)
