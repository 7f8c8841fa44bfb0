"""Processes that ask a stream of a project, for tests of restarts, kills and crowds.

python -m tests.curator.watchers FOLDER ask|die|crowd [NUMBER]
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

from noisette.curator.project import Project
from noisette.errors import BudgetError
from noisette.questions.above import Above

STREAM, SPEND = Above(200, positives=3), 20
CROWD = 3
HIGH = "SELECT COUNT(DISTINCT patient_id) FROM visits"
LOW = "SELECT COUNT(DISTINCT patient_id) FROM visits WHERE age > 1000"


def main(folder, what, number="0"):
    """Ask, and print what was told."""
    curator = Project.read(folder).curator()
    stream = curator.stream(STREAM, spend=SPEND)
    if what == "die":
        curator.ledger._step = lambda step: os.kill(os.getpid(), signal.SIGKILL) if step == "kept" else None
    if what == "crowd":  # begin together
        Path(folder, f"ready-{os.getpid()}").touch()
        while len(list(Path(folder).glob("ready-*"))) < CROWD:
            time.sleep(0.01)
    told, asked = [], 0
    questions = [LOW, HIGH] if what == "ask" else [HIGH] if what == "die" else [*[LOW] * int(number), *[HIGH] * 4]
    for question in questions:
        try:
            told.append(stream.ask(question) is not None)
        except BudgetError:
            break
        asked += 1
    print(json.dumps({"told": told, "asked": asked, "left": stream.left, "charged": len(curator.ledger.entries)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
