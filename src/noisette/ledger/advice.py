"""What to do, for those who use the command line and those who use Python, in one sentence for both."""

__all__ = ["ACCEPT", "BUDGET", "GAP", "REBIND", "RESTORE", "START_OVER", "UNCHARGED"]

ACCEPT = "`noisette ledger accept`, or noisette.ledger.accept in Python"
REBIND = "`noisette ledger rebind --why …`, or noisette.ledger.rebind in Python"
BUDGET = "`noisette ledger budget`, or ledger.raise_budget in Python"
UNCHARGED = "Nothing was charged under this key: charge first, then draw, then keep."
GAP = "States are kept one after the other: the one before this is not there."
START_OVER = "`noisette open … --start-over --why …`, or start_over='why' in Python"
RESTORE = f"restore a backup and accept it ({ACCEPT})"
