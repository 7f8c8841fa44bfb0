import itertools
import os
import shutil
import tempfile

from hypothesis import settings

# Heavy imports happen on first use, so the first example of a test may be slow without anything being wrong.
settings.register_profile("noisette", deadline=None)
settings.load_profile("noisette")

# What a user's machine remembers of ledgers is another for each test, and never the user's own.
_STATES, _NUMBERS = tempfile.mkdtemp(prefix="noisette-state-"), itertools.count()


def _redirect():
    os.environ["NOISETTE_STATE"] = os.path.join(_STATES, str(next(_NUMBERS)))


_redirect()


def pytest_runtest_setup(item):
    _redirect()


def pytest_unconfigure(config):
    shutil.rmtree(_STATES, ignore_errors=True)
