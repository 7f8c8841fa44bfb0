"""No two threads or processes share noise, and nobody can choose it."""

import importlib
import inspect
import os
import pkgutil
from concurrent.futures import ProcessPoolExecutor
from itertools import combinations
from multiprocessing import get_context
from threading import Thread

import numpy as np
import pytest
from tests.goodness import ALPHA, p_value

import noisette
from noisette.exact import random
from noisette.exact.random import SYSTEM

COUNT = 4096


def large():
    return SYSTEM.words(COUNT // 8, np.uint64).tobytes()


def small():
    return SYSTEM.bits(8 * COUNT).to_bytes(COUNT, "little")


def share(a, b):
    """Tell whether a 16-byte block of b stands anywhere in a."""
    windows = {a[i : i + 16] for i in range(len(a) - 15)}
    return any(b[i : i + 16] in windows for i in range(0, len(b), 16))


def shared(parts):
    return [pair for pair in combinations(range(len(parts)), 2) if share(parts[pair[0]], parts[pair[1]])]


def forked(draw):
    """Return what a forked child draws."""
    reader, writer = os.pipe()
    if not (child := os.fork()):
        try:
            os.write(writer, draw())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read()


@pytest.mark.parametrize("draw", [large, small])
def test_one_thread_does_not_repeat_itself(draw):
    assert not shared([draw() for _ in range(6)])


@pytest.mark.parametrize("draw", [large, small])
def test_forked_children_share_nothing(draw):
    parts = [draw(), forked(draw), forked(draw), draw()]
    assert [len(part) for part in parts] == [COUNT] * 4
    assert not shared(parts)


@pytest.mark.parametrize("draw", [large, small])
def test_a_child_that_remembers_its_parent_is_found_out(draw):
    SYSTEM.bits(8)
    inherited = random._local

    def remembering():
        random._local = inherited
        return draw()

    assert shared([forked(remembering), forked(remembering), draw()]) == [(0, 1), (0, 2), (1, 2)]


def test_a_grandchild_shares_nothing():
    def child():
        mine = large()[: COUNT // 2]
        return mine + forked(large)[: COUNT // 2]

    both = forked(child)
    assert not shared([large(), both[: COUNT // 2], both[COUNT // 2 :], large()])


def test_threads_share_nothing():
    parts = [large()]
    threads = [Thread(target=lambda: parts.extend([large(), small()])) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    parts.append(large())
    assert len(parts) == 6
    assert not shared(parts)


@pytest.mark.slow
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_pool_workers_share_nothing(method):
    before = small()
    with ProcessPoolExecutor(2, mp_context=get_context(method)) as pool:
        parts = [number.to_bytes(COUNT, "little") for number in pool.map(SYSTEM.bits, [8 * COUNT] * 8)]
    assert not shared([before, *parts, small()])


def test_a_new_key_is_drawn_when_the_old_one_has_served(monkeypatch):
    asked = []
    system = os.urandom
    monkeypatch.setattr(random, "_KEY_LIFE", 2 * COUNT)
    monkeypatch.setattr(random.os, "urandom", lambda count: asked.append(count) or system(count))
    random._forget()
    parts = [large() for _ in range(6)]
    random._forget()
    assert asked == [32, 16] * 3
    assert not shared(parts)


def test_more_than_a_block_does_not_repeat():
    data = SYSTEM.words((3 << 20) + 5, np.uint8).tobytes()
    assert len(data) == (3 << 20) + 5
    assert not share(data[: 2 * COUNT], data[1 << 20 : (1 << 20) + COUNT])


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100, 257])
def test_below_is_uniform(n):
    draws = [SYSTEM.below(n) for _ in range(20_000)]
    assert p_value(np.bincount(draws), np.full(n, 1 / n)) > ALPHA


def test_below_reaches_beyond_machine_words():
    n = 3**200
    draws = [SYSTEM.below(n) * 10 // n for _ in range(5000)]
    assert p_value(np.bincount(draws), np.full(10, 0.1)) > ALPHA


@pytest.mark.parametrize("count", [0, 1, 3, 8, 13])
def test_bits_are_uniform(count):
    draws = [SYSTEM.bits(count) % 256 for _ in range(20_000)]
    cells = min(256, 1 << count)
    assert p_value(np.bincount(draws), np.full(cells, 1 / cells)) > ALPHA
    assert max(SYSTEM.bits(count) for _ in range(200)) < 1 << count


@pytest.mark.parametrize(("numerator", "denominator"), [(0, 1), (1, 1), (1, 3), (999, 1000)])
def test_flip(numerator, denominator):
    heads = sum(SYSTEM.flip(numerator, denominator) for _ in range(20_000))
    chance = numerator / denominator
    assert p_value([heads, 20_000 - heads], [chance, 1 - chance]) > ALPHA


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32, np.uint64])
def test_words_are_uniform_in_every_byte_and_in_pairs(dtype):
    words = SYSTEM.words(1 << 17, dtype)
    assert (words.dtype, words.shape) == (dtype, (1 << 17,))
    octets = words.view(np.uint8).reshape(len(words), -1)
    for column in octets.T:
        assert p_value(np.bincount(column), np.full(256, 1 / 256)) > ALPHA
    pairs = octets.reshape(-1, 2).astype(int) // 8 @ [32, 1]
    assert p_value(np.bincount(pairs, minlength=1024), np.full(1024, 1 / 1024)) > ALPHA


def test_secure_says_what_it_is():
    assert SYSTEM.secure is True


# Nobody can set a seed


def public_callables(package):
    """Every public function, class and method of a package, by its dotted name."""
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        if info.name.endswith("__main__"):
            continue
        module = importlib.import_module(info.name)
        for name, value in vars(module).items():
            ours = str(getattr(value, "__module__", "")).partition(".")[0] == package.__name__
            if name.startswith("_") or not callable(value) or not ours:
                continue
            yield f"{info.name}.{name}", value
            if inspect.isclass(value):
                methods = inspect.getmembers(value, callable)
                yield from ((f"{info.name}.{name}.{m}", f) for m, f in methods if not m.startswith("_"))


def seeds(function):
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return set()
    return {"seed", "random_state", "random_seed"} & set(parameters)


@pytest.mark.slow
def test_no_public_call_takes_a_seed():
    found = dict(public_callables(noisette))
    assert "noisette.exact.vector.discrete_laplace" in found
    assert "noisette.exact.random.SystemRandom.bits" in found
    assert {name for name, function in found.items() if seeds(function)} == set()


def test_a_seed_is_found():
    assert seeds(lambda scale, *, seed=None: 0) == {"seed"}
