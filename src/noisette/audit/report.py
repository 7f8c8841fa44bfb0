"""Audit one mechanism or all of them, and say what was found: a table for a person, JSON for a machine."""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from math import isfinite
from typing import TYPE_CHECKING, Any

from noisette.audit.contract import checks_of, discovered, names
from noisette.audit.finding import QUICK, THOROUGH, Finding
from noisette.errors import InputError
from noisette.names import closest
from noisette.terminal import progress

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["Audit", "as_json", "audited", "show"]

_PATIENCE = 1.0


@dataclass(frozen=True)
class Audit:
    """What all checks found about all examples of one mechanism."""

    name: str
    findings: dict[str, list[Finding]]

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(finding.passed for findings in self.findings.values() for finding in findings)

    @property
    def checks(self) -> list[str]:
        """The names of the checks."""
        return [finding.check for finding in next(iter(self.findings.values()))]

    @property
    def failures(self) -> list[tuple[str, Finding]]:
        """What failed, with the example."""
        return [(example, one) for example, findings in self.findings.items() for one in findings if not one.passed]

    def worst(self, check: str) -> Finding:
        """Return what a check found where it came closest to failing."""
        of_check = [f for findings in self.findings.values() for f in findings if f.check == check]
        return min(of_check, key=lambda f: (f.passed, not f.applies, f.margin))

    @property
    def verdict(self) -> str:
        """One sentence."""
        failed = [check for check in self.checks if not self.worst(check).passed]
        examples = f"{len(self.findings)} example{'s' if len(self.findings) > 1 else ''}"
        if failed:
            return f"{self.name} breaks its contract ({', '.join(failed)})."
        return f"{self.name} keeps its contract: {len(self.checks)} checks on {examples}."


def audited(name: str | None = None, *, quick: bool = False) -> list[Audit]:
    """Audit the mechanism of a name (case does not matter), or all.

    >>> [audit] = audited("geometric", quick=True)
    >>> audit.verdict
    'Geometric keeps its contract: 16 checks on 4 examples.'
    """
    chosen = [known for known in names() if name is None or known.lower() == name.lower()]
    if not chosen:
        raise InputError(f"No mechanism has this name: {closest(name or '', names(), 'choose one of')}")
    subjects = [(known, example) for known, example in discovered() if known in chosen]
    results: dict[str, dict[str, list[Finding]]] = {known: {} for known in chosen}
    with _progress(sum(len(checks_of(example)) for _, example in subjects)) as advance:
        for known, example in subjects:
            findings = results[known][repr(example)] = []
            for label, check in checks_of(example).items():
                advance(f"{known}: {label}")
                findings.append(check(example, QUICK if quick else THOROUGH))
    return [Audit(known, findings) for known, findings in results.items()]


@contextmanager
def _progress(total: int) -> Iterator[Any]:
    """A bar on standard error, for audits of more than a second."""
    start, bar = time.monotonic(), progress()
    task = bar.add_task("", total=total)

    def advance(label: str) -> None:
        if time.monotonic() - start > _PATIENCE and not bar.live.is_started:
            bar.start()
        bar.update(task, advance=1, description=label)

    try:
        yield advance
    finally:
        bar.stop()


def as_json(audits: list[Audit]) -> str:
    """Return every finding about every example; JSON has no infinity, so that one is the text "inf".

    >>> found = json.loads(as_json(audited("geometric", quick=True)))
    >>> found["passed"], found["mechanisms"][0]["examples"][0]["findings"][0]["check"]
    (True, 'sums to one')
    """
    mechanisms = [
        {
            "name": audit.name,
            "passed": audit.passed,
            "verdict": audit.verdict,
            "examples": [
                {"example": example, "findings": [_plain(finding) for finding in findings]}
                for example, findings in audit.findings.items()
            ],
        }
        for audit in audits
    ]
    passed = all(audit.passed for audit in audits)
    return json.dumps({"passed": passed, "mechanisms": mechanisms}, indent=2, allow_nan=False)


def _plain(finding: Finding) -> dict[str, Any]:
    held = asdict(finding).items()
    return {name: str(value) if isinstance(value, float) and not isfinite(value) else value for name, value in held}


def show(audits: list[Audit], console: "Console") -> None:
    """Print a table for each mechanism: each check where it came closest to failing, a verdict, and what shows it."""
    for audit in audits:
        console.print(_table(audit))
        console.print(audit.verdict, style="green" if audit.passed else "bold red")
        for example, finding in audit.failures:
            line = f"{example}, {finding.check}: {finding.witness}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        console.print()
    failed = sum(not audit.passed for audit in audits)
    if len(audits) > 1:
        console.print(
            f"{failed} of {len(audits)} mechanisms fail." if failed else "All mechanisms keep their contracts."
        )


def _table(audit: Audit) -> Any:
    from rich.table import Table
    from rich.text import Text

    table = Table(title=audit.name, title_justify="left", box=None, pad_edge=False)
    table.add_column("")
    table.add_column("check", no_wrap=True)
    table.add_column("measured", justify="right", no_wrap=True)
    table.add_column("allowed", no_wrap=True)
    table.add_column("finding")
    for check in audit.checks:
        worst = audit.worst(check)
        mark = Text("–") if not worst.applies else Text("✓", "green") if worst.passed else Text("✗", "bold red")
        table.add_row(mark, check, *_numbers(worst), worst.sentence)
    return table


def _numbers(finding: Finding) -> tuple[str, str]:
    if finding.measured is None:
        return "", ""
    sign = "≤" if finding.bound == "at most" else "≥"
    return f"{finding.measured:.4g}", f"{sign} {finding.allowed:.4g}"
