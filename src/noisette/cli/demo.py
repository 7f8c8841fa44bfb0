"""`noisette demo`: a guided tour on data it makes itself."""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["demo"]

_BAR = 44


def demo() -> None:
    """Take a tour of the kernel: noise, promises, errors to expect, and the audit, on data made up on the spot."""
    from rich.console import Console

    console = Console(highlight=False)
    console.print("\n[bold]Noisette[/bold]: a small noise around every answer, so that no person shows through.\n")
    for number, chapter in enumerate(_CHAPTERS, start=1):
        title, *text = (chapter.__doc__ or "").strip().splitlines()
        console.rule(f"[bold]{number}. {title}[/bold]", align="left")
        console.print(" ".join(line.strip() for line in text).strip() + "\n")
        chapter(console)
        console.print()


def _a_private_count(console: Any) -> None:
    """A private count

    A ward has 130 patients who smoke. One person more or less moves the count by one. The geometric mechanism hides
    that: whatever is released, it was at most e^(1/2) times as likely with any one person as without.
    """
    import noisette as nz

    m = nz.calibrate(nz.Geometric, nz.Pure("1/2"), sensitivity=1)
    console.print("[dim]>>> m = nz.calibrate(nz.Geometric, nz.Pure('1/2'), sensitivity=1)[/dim]")
    console.print(f"promise       {m.guarantee(1)}   (exact, tight)")
    console.print(f"error         ± {m.interval(0.95):g} in 95 % of releases, known before anything is spent")
    console.print("five releases " + "  ".join(str(m(130)) for _ in range(5)))


def _what_one_person_changes(console: Any) -> None:
    """What one person changes

    The probability of each release with the person (█) and without (░): nowhere do they differ by more than e^(1/2).
    """
    import noisette as nz

    m = nz.Geometric(2)
    top = float(m.pmf(0, 0))
    for y in range(125, 137):
        here, there = float(m.pmf(y, 131)), float(m.pmf(y, 130))
        bars = [math.floor(_BAR * p / top) for p in (here, there)]
        console.print(f"{y:4d} {'█' * bars[0]}\n     {'░' * bars[1]}  ratio {here / there:.3f}")
    console.print(f"     e^(1/2) = {math.exp(0.5):.3f}, e^(-1/2) = {math.exp(-0.5):.3f}")


def _exact_noise_at_array_speed(console: Any) -> None:
    """Exact noise at array speed

    A million draws from the exact law, from the operating system's entropy, and how often each value came up against
    how often it should.
    """
    import time

    import numpy as np

    from noisette.exact import vector
    from noisette.laws import DiscreteLaplace

    vector.discrete_laplace(3, 1000)
    start = time.perf_counter()
    z = vector.discrete_laplace(3, 10**6)
    took = time.perf_counter() - start
    law = DiscreteLaplace(3)
    for value in range(-6, 7, 2):
        seen, due = float(np.mean(z == value)), float(law.pmf(value))
        console.print(f"{value:+3d} {'█' * round(seen / float(law.pmf(0)) * _BAR):<{_BAR}} {seen:.4f}, law {due:.4f}")
    console.print(f"a million draws in {1000 * took:.0f} ms")


def _which_mechanism(console: Any) -> None:
    """Which mechanism for ten counts?

    Ten counts over the same people, each moved by one person, at (1, 1e-6): the same promise, different errors.
    """
    import noisette as nz

    console.print(str(nz.accuracy.compare(nz.sensitivity.counts(10), nz.Approx(1, "1e-6"), answers=10)))


def _the_auditor(console: Any) -> None:
    """The auditor

    A mechanism that adds half the noise it should, and the same one honest. The auditor runs both on two neighbouring
    answers and tells how much privacy loss it can prove; the claim is epsilon = 1.
    """
    import numpy as np

    import noisette as nz
    from noisette.audit import epsilon_lower_bound

    honest, careless = nz.Geometric(1), nz.Geometric("1/2")
    for name, m in (("honest", honest), ("careless", careless)):
        batch = partial(lambda m, x, n: m(np.full(n, x)), m)
        bound = epsilon_lower_bound(m, 0, 1, runs=100_000, batch=batch)
        verdict = "[red]convicted[/red]" if bound > 1 else "[green]nothing against it[/green]"
        console.print(f"{name:9s} epsilon is at least {bound:.3f}: {verdict}")
    console.print("\nNext: [bold]noisette audit[/bold] checks every mechanism, and the README goes on from here.")


_CHAPTERS: list[Callable[[Any], None]] = [
    _a_private_count,
    _what_one_person_changes,
    _exact_noise_at_array_speed,
    _which_mechanism,
    _the_auditor,
]
