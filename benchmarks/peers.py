"""Other libraries with hardened noise, called as they document it; one that is missing is only noted.

A peer gives integer noise: from a scale (Laplace) or a standard deviation (Gaussian) to `draw(count)`.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version

Draw = Callable[[int], object]


@dataclass(frozen=True)
class Peer:
    """A library and how it draws."""

    name: str
    version: str
    laplace: Callable[[float], Draw]
    gaussian: Callable[[float], Draw]


def installed() -> tuple[list[Peer], dict[str, str]]:
    """Import every peer; return those that work, and for the others why not."""
    peers, missing = [], {}
    for name, load in {"OpenDP": _opendp, "PyDP": _pydp, "diffprivlib": _diffprivlib}.items():
        try:
            peers.append(load())
        except Exception as error:
            missing[name] = f"{type(error).__name__}: {error}".splitlines()[0]
    return peers, missing


def paced(draw: Draw, *, seconds: float, most: int) -> int:
    """Choose how many draws a peer makes in about that time."""
    draw(1)
    begun = time.process_time()
    draw(20)
    each = max(1e-9, (time.process_time() - begun) / 20)
    return max(20, min(most, int(seconds / each)))


def _opendp() -> Peer:
    """Measurements on integers: one for a single number, one for a vector."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    number, vector = dp.atom_domain(T="i64"), dp.vector_domain(dp.atom_domain(T="i64"))

    def laplace(scale: float) -> Draw:
        one = dp.m.make_laplace(number, dp.absolute_distance(T="i64"), scale=float(scale))
        many = dp.m.make_laplace(vector, dp.l1_distance(T="i64"), scale=float(scale))
        return lambda count: one(0) if count == 1 else many([0] * count)

    def gaussian(sigma: float) -> Draw:
        one = dp.m.make_gaussian(number, dp.absolute_distance(T="f64"), scale=float(sigma))
        many = dp.m.make_gaussian(vector, dp.l2_distance(T="f64"), scale=float(sigma))
        return lambda count: one(0) if count == 1 else many([0] * count)

    return Peer("OpenDP", version("opendp"), laplace, gaussian)


def _pydp() -> Peer:
    """Mechanisms that add integer noise to one integer; there is no call for arrays."""
    from pydp.algorithms.numerical_mechanisms import GaussianMechanism, LaplaceMechanism

    def laplace(scale: float) -> Draw:
        return _one_by_one(LaplaceMechanism(epsilon=1 / scale, sensitivity=1.0).add_noise)

    def gaussian(sigma: float) -> Draw:
        return _one_by_one(GaussianMechanism.create_from_standard_deviation(float(sigma)).add_noise)

    return Peer("PyDP", version("python-dp"), laplace, gaussian)


UNIT_EPSILON, UNIT_DELTA = 4.8867, 1e-6
"""At sensitivity s the Gaussian mechanism of this guarantee has sigma = s, to within a few percent."""


def _diffprivlib() -> Peer:
    """Mechanisms for one number; the Gaussian finds its sigma from epsilon, delta and a whole sensitivity."""
    from diffprivlib.mechanisms import GaussianDiscrete, Geometric

    def laplace(scale: float) -> Draw:
        return _one_by_one(Geometric(epsilon=1 / scale, sensitivity=1).randomise)

    def gaussian(sigma: float) -> Draw:
        law = GaussianDiscrete(epsilon=UNIT_EPSILON, delta=UNIT_DELTA, sensitivity=max(1, round(sigma)))
        return _one_by_one(law.randomise)

    return Peer("diffprivlib", version("diffprivlib"), laplace, gaussian)


def _one_by_one(add_noise: Callable[[int], object]) -> Draw:
    return lambda count: add_noise(0) if count == 1 else [add_noise(0) for _ in range(count)]
