"""What is released: tables with error bars that say what they promise, and a check of that from their records."""

from noisette.answers.check import check
from noisette.answers.column import Column
from noisette.answers.release import Lasting, Release

__all__ = ["Column", "Lasting", "Release", "check"]
