"""A process that charges, draws, keeps and hands out, killed again and again; and what must hold each time.

    python -m tests.ledger.crash WHERE FOLDER ROUNDS [TWIN]

Every round forks a process that opens the ledger and works until it is killed: at a named step, or at a random time.
Then: every answer that was handed out has its charge and is the one that is kept; the ledger is well; whoever opens it
waits for nobody.
"""

import json
import os
import random
import signal
import sys
import time
from pathlib import Path

from tests.ledger import twins

from noisette.ledger import open_ledger
from noisette.privacy import Pure

STEPS = ["begun", "decided", "written", "committed", "drawn", "keeping", "kept", "handed out"]
HANGS = 120.0  # seconds: whoever opens it waits for a lock that a dead process holds


def work(where, outbox, seed, fatal, twin):
    """Charge, draw, keep, hand out, until something kills."""
    left = [seed % 3 + 1]

    def step(name):
        if name == fatal:
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    book = twins.opened(where, twin, step=step)
    for i in range(40):
        key = f"{seed}/{i}" if i % 4 else f"{seed - 1}/{i + 1}"  # now and then one that another process began
        kept = book.answer(key)
        if kept is None:
            number = book.charge(f"q {key}", Pure("1/1000000"), [], key=key).number
            answer = json.dumps([number, random.random()]).encode()
            step("drawn")
            kept = book.keep(key, answer) if twin != "late" else answer
        os.write(outbox, json.dumps([key, kept.decode()]).encode() + b"\n")
        step("handed out")
    book.close()


def faults(where, folder):
    """What is wrong after a kill."""
    begun = time.monotonic()
    try:
        book = open_ledger(where, timeout=10 * HANGS)  # verifies the chain and the sums
    except Exception as fault:
        return [f"cannot be opened: {fault}"]
    found = [] if time.monotonic() - begun < HANGS else ["opening took too long"]
    charged = {entry.key: entry.number for entry in book.entries}
    answers = {}
    for line in Path(folder, "outbox").read_text().splitlines():
        key, answer = json.loads(line)
        if charged.get(key) != json.loads(answer)[0]:
            found.append("an answer was handed out without its charge")
        elif book.answer(key) != answer.encode():
            found.append("an answer was handed out that is not the one that is kept")
        if answers.setdefault(key, answer) != answer:
            found.append("two answers were handed out for one charge")
    book.close()
    return found


def main(where, folder, rounds, twin=""):
    """Kill as often as said; print what was wrong, and how many kills there were at each step."""
    outbox = os.open(Path(folder, "outbox"), os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    open_ledger(where, budget=Pure(1)).close()
    killed = dict.fromkeys([*STEPS, "any time", "nowhere"], 0)
    found = []
    for seed in range(int(rounds)):
        fatal = [*STEPS, "any time"][seed % 9] if not twin else "handed out"
        child = os.fork()
        if not child:
            try:
                work(where, outbox, seed, fatal, twin)
            finally:
                os._exit(0)
        if fatal == "any time":
            time.sleep(random.uniform(0, 0.15))
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        killed[fatal if os.WIFSIGNALED(status) else "nowhere"] += 1
        if seed % 5 == 4 or twin or seed == int(rounds) - 1:
            found += faults(where, folder)
        if found:
            break
    print(json.dumps({"killed": killed, "faults": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
