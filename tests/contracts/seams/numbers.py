"""Numbers, coins and reports that are worked through in pieces: what is found of them, and what is so by definition."""

import io
import math
from collections import Counter
from fractions import Fraction
from itertools import count
from types import SimpleNamespace
from unittest import mock

import numpy as np
from tests.contracts.seams.judging import Pairs

from noisette import local
from noisette.attacks.trace import _scores
from noisette.errors import InputError
from noisette.exact import bit_arrays, integers
from noisette.exact.random import _Keystream
from noisette.laws import DiscreteLaplace
from noisette.local import affine
from noisette.local.bitsets import has
from noisette.local.partial import read_partial, write_partial
from noisette.local.sorted_runs import SortedRuns, is_run
from noisette.local.wire import BODY, ID, Round
from noisette.mechanisms import Keep, Threshold
from noisette.mechanisms.partitions import bounded_laplace
from noisette.mechanisms.quantiles.grid import Grid
from noisette.mechanisms.selection.joint_top import _Proposals
from noisette.mechanisms.sparse_vector.stream import compared
from noisette.mechanisms.spatial.annuli import Rectangle
from noisette.releases.maps.box_fit import BoxFit
from noisette.releases.strategies.matrix import Matrix
from noisette.releases.strategies.nominal import Nominal

N = 40
MANY = 10**6  # units of a group that is released for certain: not with p < e^-1000


def random() -> np.random.Generator:
    """The same numbers for each case, whatever ran before."""
    return np.random.default_rng(5)


COUNTS = random().permutation(np.repeat([0, MANY], N // 2))


# Coins


def keystream() -> Pairs:
    """Bytes that are encrypted a block at a time are those of one stream."""
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    key, nonce = bytes(range(32)), bytes(16)
    stream = _Keystream()
    stream._use(key, nonce)
    whole = Cipher(algorithms.AES(key), modes.CTR(nonce)).encryptor().update(bytes(100))
    yield stream.large(60) + stream.large(40), whole


def filled() -> Pairs:
    """An array that is drawn in chunks, some numbers of which need more than 64 bits."""

    def fill(out, drawn):
        out[:] = [next(drawn) for _ in out]
        return {i: int(n) << 70 for i, n in enumerate(out) if n % 3 == 0}

    made = integers.filled(fill, N, count(1))
    yield made.tolist(), [n << 70 if n % 3 == 0 else n for n in range(1, N + 1)]


def coins() -> Pairs:
    """Words of coins, each drawn once."""

    def fill(out, places, drawn):
        out[:] = [next(drawn) for _ in out]

    with mock.patch.object(bit_arrays, "_fill", fill):
        yield bit_arrays.coin_words(None, N, count(1)).tolist(), list(range(1, N + 1))


def bits() -> Pairs:
    """Sums of the columns of packed bits."""
    rows = random().integers(0, 2, (N, 11))
    yield bit_arrays.column_sums(np.packbits(rows, axis=1, bitorder="little"), 11).tolist(), rows.sum(axis=0).tolist()


# Mechanisms


def sparse_vectors() -> Pairs:
    """Positives of a long list of queries, with noise that is known: of the threshold, and anew after each positive."""
    queries = random().integers(-3, 4, N)
    for refreshed in (False, True):
        for left in (1, 4, N):
            drawn = iter(range(N))
            quiet = SimpleNamespace(sample=lambda shape, rng: np.zeros(shape, np.int64))
            loud = SimpleNamespace(sample=lambda shape, rng, drawn=drawn: next(drawn) % 3)
            rules = SimpleNamespace(query_noise=quiet, threshold_noise=loud, refreshed=refreshed)
            found, z = compared(rules, queries, 1, left, None)
            yield (found, z), one_by_one(queries.tolist(), left, refreshed=refreshed)


def one_by_one(queries: list[int], left: int, *, refreshed: bool) -> tuple[list[tuple[int, int]], int]:
    """The same, one query after the other."""
    found, z, drawn = [], 1, iter(range(N))
    for i, query in enumerate(queries):
        if left and query >= z:
            found.append((i, query - z))
            z, left = next(drawn) % 3 if refreshed else z, left - 1
    return found, z


def kept() -> Pairs:
    """Groups that are kept for certain, and groups of nobody."""
    yield Keep(1, "1e-6")(COUNTS).tolist(), (COUNTS > 0).tolist()


def thresholds() -> Pairs:
    """The same with noisy counts."""
    yield (Threshold(1, 40)(COUNTS) > 0).tolist(), (COUNTS > 0).tolist()


def rare() -> Pairs:
    """Places where noise reaches a bound, each drawn once."""
    drawn = count()

    def heads(bounds, number, rng):
        return np.flatnonzero([next(drawn) % 3 == 0 for _ in range(number)])

    with mock.patch.object(bounded_laplace, "_heads", heads):
        at, _ = bounded_laplace.reaching(DiscreteLaplace(1), 3, N)
    yield at.tolist(), list(range(0, N, 3))


def grid() -> Pairs:
    """The values of each cell, with some that are missing or beyond the bounds."""
    values = [*random().integers(-3, 14, N).tolist(), math.nan, 3, math.inf, -math.inf, math.nan, 7]
    counted = Counter(min(10, max(0, v)) for v in values if not math.isnan(v))
    yield Grid((0, 10), cells=11).count(values).tolist(), [counted[i] for i in range(11)]


def annuli() -> Pairs:
    """How many points lie within a distance."""
    squares, points = np.arange(-1, 30), [(x - 1) ** 2 + (y - 2) ** 2 for x in range(5) for y in range(5)]
    yield Rectangle((0, 4), (0, 4), (1, 2)).upto(squares).tolist(), [sum(p <= s for p in points) for s in squares]


def orders() -> Pairs:
    """ln N at the end of each step."""
    losses = np.sort(random().integers(0, 60, 12))
    made = _Proposals(losses - losses[0], 2, Fraction(8))
    ends = [min((i + 1) * made.step - 1, int(made.losses[-1])) for i in range(made.steps)]
    yield made._logs().round(9).tolist(), [round(math.log(made.within(v)), 9) for v in ends]


# Reports


def arcs() -> Pairs:
    """How many reports say each value, for hashes that are looked up together."""
    prime, domain = 11, 9
    a, start, length = random().integers(0, [[10], [11], [6]], (3, N))
    by_hand = [sum((x * v - s) % prime < n for x, s, n in zip(a, start, length, strict=True)) for v in range(domain)]
    yield affine.supported(a, start, length, prime, domain).tolist(), by_hand
    yield affine.in_arcs(a, start, length, prime, np.arange(domain)).tolist(), by_hand


def subsets() -> Pairs:
    """At a huge epsilon each person's set has the own value, but with p < 1e-40."""
    protocol = local.SubsetSelection(100, domain=8)
    own = np.arange(N) % 8
    sets = protocol.clients(own)
    yield len(sets), N
    yield [has(tuple(row), v) for row, v in zip(sets.tolist(), own.tolist(), strict=True)], [True] * N


def projective() -> Pairs:
    """How many points are orthogonal to each value."""
    protocol = local.ProjectiveGeometry(1, domain=9)
    counts = random().integers(0, 9, protocol.cells)
    points, values = (protocol.vectors(np.arange(n)) for n in (protocol.cells, 9))
    yield protocol.support(counts).tolist(), [int(counts[points @ v % protocol.prime == 0].sum()) for v in values]


def partials() -> Pairs:
    """A partial aggregate that is written and read again."""
    survey = Round(local.GRR(1, domain=50), number=3)
    rows = np.frombuffer(survey.encode(survey.protocol.clients(np.arange(N) % 50)), np.uint8)
    runs = SortedRuns(ID + survey.report_bytes)
    runs.add(rows.reshape(-1, survey.record_bytes)[:, BODY])
    united, stream = runs.united(), io.BytesIO()
    counts = {"read": N, "malformed": 0, "foreign": 0, "out of domain": 0}
    write_partial(survey, counts, united, stream)
    written = stream.getvalue()
    head = len(written.partition(b"\n")[0]) + 5
    found, again = read_partial(survey, written[:head], io.BytesIO(written[head:]))
    yield (found, again.tolist()), (counts, united.tolist())
    impossible, stream = np.array(united), io.BytesIO()
    impossible[-1, -1] = 63  # no value has that report
    write_partial(survey, counts, impossible, stream)
    yield _refused(lambda: read_partial(survey, stream.getvalue(), io.BytesIO())), True


def _refused(use) -> bool:
    try:
        use()
    except InputError:
        return True
    return False


def runs() -> Pairs:
    """Whether records are in order, wherever the first fault lies; and their union."""
    rows = np.zeros((N, ID + 1), np.uint8)
    rows[:, 0] = np.arange(N)
    yield is_run(rows), True
    for i in range(1, N):
        for wrong in (rows[[*range(i - 1), i, i - 1, *range(i + 1, N)]], rows[[*range(i), *range(i - 1, N)]]):
            yield is_run(wrong), False
    for i in range(2, N):  # of one id a run has two records at most
        often = rows.copy()
        often[i - 2 : i + 1, 0], often[i - 2 : i + 1, -1] = i, (0, 1, 2)
        yield (is_run(often), is_run(np.delete(often, i - 1, axis=0))), (False, True)
    made = SortedRuns(ID + 1)
    for part in np.array_split(rows[random().permutation(N)], 5):
        made.add(part)
    yield made.united().tolist(), rows.tolist()


# Releases


def matrices() -> Pairs:
    """What one unit can move under replace, most by two columns with another between them; and variances of ranges."""
    rows = random().integers(-2, 3, (6, 8))
    rows[:, [1, 3]] = 5, -5
    made = Matrix(rows)
    pairs = [(rows[:, i], rows[:, j]) for i in range(8) for j in range(8)]
    far = max(*(int(((a - b) ** 2).sum()) for a, b in pairs), *(int((a**2).sum()) for a, _ in pairs))
    yield made._pairs, (far, min(int(a @ b) for a, b in pairs))
    low, high = np.triu_indices(8)
    by_hand = [float((made.inverse[a : b + 1].sum(axis=0) ** 2).sum()) for a, b in zip(low, high, strict=True)]
    yield made.variances(low, high, [1.0]).round(9).tolist(), np.round(by_hand, 9).tolist()


def hierarchies() -> Pairs:
    """The variance of each range of a hierarchy."""
    made, (low, high) = Nominal(((0, 0, 0, 1, 1),)), np.triu_indices(5)
    one = [made.variances(low[i : i + 1], high[i : i + 1], [1.0, 1.0, 1.0])[0] for i in range(len(low))]
    yield made.variances(low, high, [1.0, 1.0, 1.0]).round(9).tolist(), np.round(one, 9).tolist()


def boxes() -> Pairs:
    """The boxes of a tree that queries meet, from the top."""
    family = np.array([1, 3, 5, 0, 0, 0, 0]), np.array([2, 2, 2, 0, 0, 0, 0])
    ends, inside = family[1] == 0, {3: 0, 4: 1, 5: 2, 6: 3}

    def held(query, box):
        """Query q holds the leaves below q % 5: all of a box, half of it or nothing."""
        return np.array([np.mean([leaf < q % 5 for leaf in leaves(b)]) for q, b in zip(query, box, strict=True)])

    def leaves(box):
        return (
            [inside[box]]
            if box in inside
            else [x for c in (family[0][box], family[0][box] + 1) for x in leaves(int(c))]
        )

    tree = SimpleNamespace(boxes=SimpleNamespace(family=family))
    met = Counter()
    for query, _, f in BoxFit._met(tree, N, held, ends):
        for q, share in zip(query.tolist(), f.tolist(), strict=True):
            met[q] += share > 0
    yield [met[q] for q in range(N)], [(0, 1, 1, 2, 1)[q % 5] for q in range(N)]


def traces() -> Pairs:
    """Scores of rows."""
    rows, p, w = random().integers(0, 2, (N, 3)), np.array([0.5, 0.25, 0]), np.array([1.0, 2.0, 4.0])
    yield _scores(rows, p, w).tolist(), [float((row - p) @ w) for row in rows]
