"""Which examples Hypothesis draws: those of a profile, the same in every process that runs the same test.

Two runs of one tree look at the same examples, so that both give the same verdict; `make search` looks at others. Heavy
imports happen on first use, so the first example of a test may be slow without anything being wrong; and how fast a
machine draws examples is no fault of the tree.
"""

import contextlib

from hypothesis import HealthCheck, settings


def register() -> None:
    """Make the profiles, load the one of `make test`, and draw no constants of modules."""
    settings.register_profile(
        "noisette",
        deadline=None,
        derandomize=True,
        database=None,
        max_examples=50,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.register_profile("quick", settings.get_profile("noisette"), max_examples=25)
    settings.register_profile("search", settings.get_profile("noisette"), derandomize=False, max_examples=500)
    settings.load_profile("noisette")
    _no_local_constants()


def _no_local_constants() -> None:
    """From 6.131 on Hypothesis also draws constants of the local modules that are loaded just then.

    Examples would depend on the order of the tests, and on every number that is written anywhere in the project.
    """
    with contextlib.suppress(ImportError):  # older versions have no such module
        from hypothesis.internal.conjecture import providers

        if hasattr(providers, "_get_local_constants"):  # older ones draw none
            none = providers.Constants()
            providers._get_local_constants = lambda: none
