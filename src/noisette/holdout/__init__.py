"""The reusable holdout: validity when the analyst looks again, and what theorems promise about it."""

from noisette.holdout.answer import Answer
from noisette.holdout.leaderboard import Ladder, Leaderboard, Standing
from noisette.holdout.losses import AUC, Loss, accuracy, auc, brier, log_loss, squared_error
from noisette.holdout.reusable import ReusableHoldout
from noisette.holdout.thresholdout import Thresholdout

__all__ = [
    "AUC",
    "Answer",
    "Ladder",
    "Leaderboard",
    "Loss",
    "ReusableHoldout",
    "Standing",
    "Thresholdout",
    "accuracy",
    "auc",
    "brier",
    "log_loss",
    "squared_error",
]
