import itertools
import os
import shutil
import tempfile
from collections import Counter

import pytest
from hypothesis import HealthCheck, settings

from tests import coins
from tests.slow import listed

# Heavy imports happen on first use, so the first example of a test may be slow without anything being wrong; and how
# fast a machine draws examples is no fault of the tree.
settings.register_profile("noisette", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("quick", settings.get_profile("noisette"), max_examples=25)
settings.load_profile("noisette")

# What a user's machine remembers of ledgers is another for each test, and never the user's own.
_STATES, _NUMBERS = tempfile.mkdtemp(prefix="noisette-state-"), itertools.count()


def _redirect():
    os.environ["NOISETTE_STATE"] = os.path.join(_STATES, str(next(_NUMBERS)))


_redirect()


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path, parent):
    """Doctests are in `src`; to look for them in test files costs time and finds none."""
    found = yield
    return [each for each in found if type(each) is pytest.Module]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark as slow, before `-m` selects: what is listed, and the cases that follow the first n of `slow_after(n)`."""
    seen, known = Counter(), listed()
    for item in items:
        if item.nodeid in known:
            item.add_marker(pytest.mark.slow)
        if mark := item.get_closest_marker("slow_after"):
            name = item.nodeid.partition("[")[0]
            seen[name] += 1
            if seen[name] > mark.args[0]:
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _redirect()
    if coins.CHANCE.isdisjoint(item.path.relative_to(item.config.rootpath).parts):
        coins.fix(item.nodeid)
    else:
        coins.free()


def pytest_unconfigure(config):
    shutil.rmtree(_STATES, ignore_errors=True)
