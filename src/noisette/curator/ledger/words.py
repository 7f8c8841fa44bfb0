"""What to do, for those who use the command line and those who use Python, in one sentence for both."""

__all__ = ["ACCEPT", "BUDGET", "REBIND", "RESTORE"]

ACCEPT = "`noisette ledger accept`, or noisette.curator.ledger.accept in Python"
REBIND = "`noisette ledger rebind`, or noisette.curator.ledger.rebind in Python"
BUDGET = "`noisette ledger budget`, or ledger.raise_budget in Python"
RESTORE = f"restore a backup and accept it ({ACCEPT})"
