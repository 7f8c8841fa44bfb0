import itertools
import os
import shutil
import tempfile

import pytest
from hypothesis import HealthCheck, settings

from tests import coins

# Heavy imports happen on first use, so the first example of a test may be slow without anything being wrong; and how
# fast a machine draws examples is no fault of the tree.
settings.register_profile("noisette", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("noisette")

# What a user's machine remembers of ledgers is another for each test, and never the user's own.
_STATES, _NUMBERS = tempfile.mkdtemp(prefix="noisette-state-"), itertools.count()


def _redirect():
    os.environ["NOISETTE_STATE"] = os.path.join(_STATES, str(next(_NUMBERS)))


_redirect()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    _redirect()
    if coins.CHANCE.isdisjoint(item.path.relative_to(item.config.rootpath).parts):
        coins.fix(item.nodeid)
    else:
        coins.free()


def pytest_unconfigure(config):
    shutil.rmtree(_STATES, ignore_errors=True)
