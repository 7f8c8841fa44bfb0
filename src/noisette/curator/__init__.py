"""The shell around the data: who may ask what, what it costs, and what was released."""

from noisette.curator.curator import Curator
from noisette.curator.kept_holdout import open_holdout, open_leaderboard
from noisette.curator.opening import open
from noisette.policy.policy import Policy

__all__ = ["Curator", "Policy", "open", "open_holdout", "open_leaderboard"]
