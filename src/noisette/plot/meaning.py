"""What a guarantee means for one person: what an attacker can decide, and what an observer can come to believe.

Two worlds: the table with a person's data, and the one without (or with other data in its place). The attacker sees
everything that was released and says which world it is. A *false alarm* takes the world without for the one with; a
*miss* is the opposite.
"""

import itertools
import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from noisette.errors import InputError
from noisette.exact.number import Number, fraction, nearest_float
from noisette.plot.save import saved
from noisette.plot.style import GREY, INK, apart, matplotlib_figure
from noisette.privacy import ZCDP, Approx, Guarantee, Profile, Pure, as_promise

__all__ = ["odds", "posterior_bounds", "tradeoff", "tradeoff_curve"]

# Okabe-Ito colours, in the order of what is drawn: the strongest promise first.
_ORDER = ("#0072B2", "#009E73", "#E69F00", "#D55E00", "#CC79A7", "#56B4E9")
_DOWN = 2.0**-40  # covers the rounding of a handful of float operations
_TOLERANCE, _PROBES = 2e-4, 64  # how near the known curve, and how many deltas it may take
_LARGEST = 512.0  # beyond this epsilon there is nothing to draw
_POINTS = 61


def tradeoff_curve(guarantee: Guarantee | Number, alphas: ArrayLike) -> NDArray[np.float64]:
    """Return the least miss rate that any attacker has at each false-alarm rate, rounded down.

    (epsilon, delta)-DP allows no test below 1 - delta - e^epsilon alpha, nor below e^-epsilon (1 - delta - alpha); the
    curve is the largest of these over all epsilon with delta(epsilon).   [Wasserman-Zhou 2010; Dong-Roth-Su 2022]
    It takes some dozens of epsilons up to 512, so chosen that others would hardly raise it (usually by less than 2e-4;
    fewer can only lower it, so that it stays true). A bare number is a pure epsilon.

    >>> [round(float(beta), 4) for beta in tradeoff_curve(1, [0, 0.05, 0.5, 1])]
    [1.0, 0.8641, 0.1839, 0.0]
    """
    alpha = np.asarray(alphas, dtype=float)
    if not np.all((alpha >= 0) & (alpha <= 1)):
        raise InputError("False-alarm rates must lie between 0 and 1.")
    with np.errstate(divide="ignore"):
        log_alpha = np.log(alpha)
    least = np.zeros_like(alpha)
    for epsilon, delta in _known_deltas(_read(guarantee)):
        steep = 1 - delta - np.exp(np.minimum(epsilon + log_alpha, 0.0))
        flat = math.exp(-epsilon) * (1 - delta - alpha)
        least = np.maximum(least, np.maximum(steep, flat) - _DOWN)
    return least


def _known_deltas(guarantee: Guarantee) -> list[tuple[float, float]]:
    """Pairs (epsilon, delta), until no other epsilon would raise the curve by more than the tolerance, or enough.

    delta is convex in x = e^epsilon, and a line of the curve is a point (x, delta). Between two points it lies below
    their chord and above its neighbours' chords, prolonged; where these meet is where it is worth asking next, and how
    far that is below the chord is the most that the curve can rise there.
    """
    known = {epsilon: guarantee.delta_at(epsilon) for epsilon in _own(guarantee)}
    epsilon = 2.0**-6
    while min(known.values()) > _TOLERANCE / 2 and epsilon <= _LARGEST:
        known[epsilon] = guarantee.delta_at(epsilon)
        epsilon *= 2
    for _ in range(_PROBES):
        gap, epsilon = _widest(sorted(known.items()))
        if gap <= _TOLERANCE or epsilon in known:
            break
        known[epsilon] = guarantee.delta_at(epsilon)
    return sorted(known.items())


def _own(guarantee: Guarantee) -> set[float]:
    stated = nearest_float(guarantee.epsilon, up=True) if isinstance(guarantee, Pure | Approx) else 0.0
    return {0.0, stated} if stated <= _LARGEST else {0.0}


def _widest(known: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The largest rise that is possible between two points, and the epsilon at which it would be."""
    x = np.exp([epsilon for epsilon, _ in known])
    delta = np.minimum.accumulate([d for _, d in known])  # delta falls with epsilon, even if its bounds do not
    slopes = np.concatenate(([-1.0], np.diff(delta) / np.diff(x), [0.0]))
    before, chord, after = slopes[:-2], slopes[1:-1], slopes[2:]
    bent = (before < chord) & (chord < after)
    step = np.zeros_like(chord)  # from the left point to where the prolonged chords meet
    step[bent] = (np.diff(x) * (after - chord))[bent] / (after - before)[bent]
    rise = (chord - before) * step
    if not rise.size:
        return 0.0, 0.0
    best = int(np.argmax(rise))
    return float(rise[best]), float(np.log(x[best] + step[best]))


def posterior_bounds(prior: Number, guarantee: Guarantee | Number, *, chance: Number = 0) -> tuple[float, float]:
    """Return between which beliefs an observer ends who held the belief `prior` before seeing the answers.

    A belief is the probability of one of the two worlds. Answers of epsilon-DP change its odds p/(1 - p) by a factor
    between e^-epsilon and e^epsilon. With a delta no such bounds hold for all answers; with a `chance` they hold for
    all but answers of that probability in all, since P(loss > t) <= delta(epsilon) / (1 - e^(epsilon - t)).

    >>> [round(belief, 4) for belief in posterior_bounds("0.1", 1)]
    [0.0393, 0.232]
    >>> posterior_bounds("0.1", Approx(1, "1e-6"))
    (0.0, 1.0)
    """
    belief, allowed = _probability(prior, "prior"), _probability(chance, "chance")
    return _shifted(float(belief), _largest_loss(_read(guarantee), allowed))


def _probability(value: Number, name: str) -> Fraction:
    number = fraction(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} must lie between 0 and 1: it is a probability.")
    return number


def _shifted(prior: float, loss: float) -> tuple[float, float]:
    """The belief with its odds divided and multiplied by e^loss, rounded outwards."""
    if prior in (0.0, 1.0):
        return prior, prior
    factor = math.exp(-loss)
    low, high = prior * factor / (prior * factor + 1 - prior), prior / (prior + (1 - prior) * factor)
    return low * (1 - 2.0**-50), min(1.0, high * (1 + 2.0**-50))


def _largest_loss(guarantee: Guarantee, chance: Fraction) -> float:
    """What |ln P/Q| exceeds with at most that chance in either world, half of it for each sign; maybe infinite."""
    shares = [Fraction(1, 2**i) for i in range(1, 7)] if chance else []
    losses = [guarantee.epsilon_at(chance / 2 * share) - math.log1p(-float(share)) for share in shares]
    return min([guarantee.epsilon_at(0), *losses]) * (1 + _DOWN)


def _read(guarantee: Guarantee | Number) -> Guarantee:
    return guarantee if isinstance(guarantee, Profile) else as_promise(guarantee, "guarantee")


def tradeoff(
    *guarantees: Guarantee | Number, labels: Sequence[str] | None = None, path: str | Path | None = None
) -> Any:
    """Draw the least miss rate of any attacker against the false-alarm rate and return the matplotlib Figure.

    One line for each guarantee; what lies below it is impossible. Who does not look at the answers and guesses can
    have any point of the diagonal. With a path the chart is saved, as SVG, PNG or PDF by its ending.

    >>> type(tradeoff(1, Approx(2, "1e-6"))).__name__
    'Figure'
    """
    promises = [_read(guarantee) for guarantee in guarantees]
    names = list(labels) if labels is not None else [_name(promise) for promise in promises]
    if not promises or len(names) != len(promises):
        raise InputError("Give at least one guarantee, and one label for each if any.")
    alphas = _rates(*(1 / (1 + math.exp(e)) for promise in promises for e in _own(promise)))
    lines = [tradeoff_curve(promise, alphas) for promise in promises]
    corners = [float(np.interp(0.0, alphas - betas, alphas)) for betas in lines]  # as many false alarms as misses
    order = sorted(range(len(lines)), key=lambda i: -corners[i])  # the strongest first
    figure, axes = _square("What an attacker can decide", "false alarms", "misses, at least")
    axes.plot([0, 1], [1, 0], color=GREY, linewidth=1.4, linestyle=(0, (4, 3)))
    _write(axes, "pure guessing", (0.8, 0.2), (6, 6), rotation=-45, fontsize=11, color="#555555")
    for i, colour in zip(order, _colours(), strict=False):
        axes.fill_between(alphas, lines[i], color=colour, alpha=0.13, linewidth=0)
        axes.plot(alphas, lines[i], color=colour, linewidth=2.2, solid_capstyle="round", solid_joinstyle="round")
    _name_corners(axes, [corners[i] for i in order], [names[i] for i in order])
    _name_region(axes, corners)
    return saved(figure, path)


def odds(*epsilons: Number, mark: Number | None = None, path: str | Path | None = None) -> Any:
    """Draw what an observer can believe after seeing answers of epsilon-DP, against the belief before; return a Figure.

    One band for each epsilon; without answers there is only the diagonal. `mark` shows what one belief can become.
    With a path the chart is saved, as SVG, PNG or PDF by its ending.

    >>> type(odds("0.1", 1, 3, mark="0.1")).__name__
    'Figure'
    """
    if not epsilons:
        raise InputError("Give at least one epsilon.")
    losses = sorted(float(Pure(epsilon).epsilon) for epsilon in epsilons)
    figure, axes = _square("What an observer can come to believe", "belief before", "belief after")
    axes.plot([0, 1], [0, 1], color=GREY, linewidth=1.4, linestyle=(0, (4, 3)))
    priors = _rates()
    for loss, colour in reversed(list(zip(losses, _colours(), strict=False))):
        low, high = np.array([_shifted(float(prior), loss) for prior in priors]).T
        around = np.concatenate([priors, priors[::-1]]), np.concatenate([high, low[::-1]])
        axes.fill(*around, facecolor=(colour, 0.13), edgecolor=colour, linewidth=2.2)
    _name_bands(axes, losses)
    if mark is not None:
        _mark(axes, mark, losses)
    return saved(figure, path)


def _rates(*corners: float) -> NDArray[np.float64]:
    """Probabilities from 0 to 1, closer together near the ends, and these."""
    return np.union1d(np.sin(np.linspace(0, np.pi / 2, _POINTS)) ** 2, corners)


def _colours() -> Iterator[str]:
    return itertools.cycle(_ORDER)


def _name(guarantee: Guarantee) -> str:
    match guarantee:
        case Pure():
            return f"ε = {float(guarantee.epsilon):g}"
        case Approx():
            return f"ε = {float(guarantee.epsilon):g}, δ = {float(guarantee.delta):g}".replace("e-0", "e-")
        case ZCDP():
            return f"ρ = {float(guarantee.rho):g} (zCDP)"
        case Profile():
            return str(guarantee)


def _square(title: str, across: str, up: str) -> tuple[Any, Any]:
    """A figure with axes for two probabilities."""
    figure_class = matplotlib_figure()
    from matplotlib.ticker import MultipleLocator, PercentFormatter

    figure = figure_class(figsize=(6.2, 6.2), layout="constrained")
    axes = figure.add_subplot()
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    axes.set_title(title, loc="left", fontsize=13, color=INK)
    axes.set_xlabel(across, fontsize=12)
    axes.set_ylabel(up, fontsize=12)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(MultipleLocator(0.2))
        axis.set_major_formatter(PercentFormatter(1, decimals=0, symbol=" %"))
    axes.tick_params(labelsize=11, colors=INK)
    axes.grid(color="#e4e4e4", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _write(axes: Any, text: str, at: tuple[float, float], shift: tuple[float, float] = (0, 0), **style: Any) -> None:
    """Write on a patch that lets little through, so that a line underneath does not disturb."""
    style = {"fontsize": 12, "ha": "center", "va": "center", "rotation_mode": "anchor", **style}
    patch = {"boxstyle": "round,pad=0.08", "facecolor": "white", "alpha": 0.6, "edgecolor": "none"}
    axes.annotate(text, at, xytext=shift, textcoords="offset points", bbox=patch, zorder=5, **style)


def _name_corners(axes: Any, corners: Sequence[float], names: Sequence[str]) -> None:
    """Write each name into the bend of its line, moved apart where they would overlap."""
    heights = apart(sorted(corners))[::-1]
    for corner, name, height, colour in zip(corners, names, heights, _colours(), strict=False):
        _write(axes, name, (corner, height), (9, 9), color=colour, ha="left")


def _name_region(axes: Any, corners: Sequence[float]) -> None:
    """Write into the one region if there is room, else where nothing is drawn."""
    style: dict[str, Any] = {"fontsize": 11, "color": "#555555"}
    if len(corners) == 1 and corners[0] > 0.2:
        _write(axes, "impossible for\nany attacker", (corners[0] / 2, corners[0] / 2), rotation=-45, **style)
    else:
        _write(axes, "below a line: impossible\nfor any attacker", (0.78, 0.9), **style)


def _name_bands(axes: Any, losses: Sequence[float]) -> None:
    """Write each name along its band's upper edge, which rises by 45° halfway: outside it where there is room."""
    heights = [1 / (1 + math.exp(-loss / 2)) for loss in losses]
    outer = [*heights[1:], 0.97]
    for loss, height, beyond, colour in zip(losses, heights, outer, _colours(), strict=False):
        side = 1 if beyond - height > 0.04 else -1
        _write(axes, f"ε = {loss:g}", (1 - height, height), (-7.5 * side, 7.5 * side), color=colour, rotation=45)


def _mark(axes: Any, mark: Number, losses: Sequence[float]) -> None:
    """Show what one belief can rise to."""
    prior = float(_probability(mark, "mark"))
    axes.axvline(prior, color=GREY, linewidth=1, linestyle=(0, (4, 3)), zorder=0)
    for loss, colour in zip(losses, _colours(), strict=False):
        high = _shifted(prior, loss)[1]
        axes.plot([prior], [high], "o", color=colour, markersize=6, zorder=4)
        _write(axes, f"{100 * high:.0f} %", (prior, high), (8, -1), color=colour, fontsize=11, ha="left")
