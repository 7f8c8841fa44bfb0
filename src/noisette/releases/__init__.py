"""What is handed out: tables with error bars that say what they promise, and a check of that from their records."""

from noisette.releases.check import check
from noisette.releases.column import Column
from noisette.releases.release import Release

__all__ = ["Column", "Release", "check"]
