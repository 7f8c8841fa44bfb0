"""Many processes that charge one ledger until it refuses, and a checker of what they say happened.

python -m tests.ledger.crowd WHERE FOLDER PROCESSES COST [TWIN]
"""

import json
import os
import sys
from collections import Counter
from pathlib import Path

from tests.ledger import twins

from noisette.errors import BudgetError
from noisette.ledger import open_ledger
from noisette.privacy import Pure


def member(where, folder, who, cost, twin):
    """Charge until the budget is used up; write down what was accepted."""
    book = twins.opened(where, twin, timeout=300)
    accepted, refused = [], 0
    while refused < 3:
        question = f"{who}/{len(accepted)}"
        try:
            accepted.append((book.charge(question, Pure(cost), []).number, question))
        except BudgetError:
            refused += 1
    book.close()
    Path(folder, f"{who}.json").write_text(json.dumps(accepted))


def faults(where, folder, processes, expected):
    """What is wrong with a history: numbers, owners, the sum, the chain; no line if nothing is."""
    said = [json.loads(Path(folder, f"{who}.json").read_text()) for who in range(processes)]
    accepted = Counter((number, question) for each in said for number, question in each)
    found = []
    try:
        book = open_ledger(where)
    except Exception as fault:
        return [f"cannot be opened: {fault}"]
    written = Counter((entry.number, entry.question) for entry in book.entries)
    if accepted != written:
        found.append("what was accepted is not what is written")
    if sorted(number for number, _ in accepted.elements()) != list(range(2, 2 + expected)):
        found.append(f"numbers are missing or doubled, {sum(accepted.values())} of {expected}")
    if book.left != Pure(0) or book.verify().number != expected + 1:
        found.append("the sums are wrong")
    book.close()
    return found


def main(where, folder, processes, cost, twin=""):
    """Fork all of them from a process without threads; fail if one does."""
    children = []
    for who in range(int(processes)):
        child = os.fork()
        if not child:
            try:
                member(where, folder, who, cost, twin)
                os._exit(0)
            except BaseException as fault:
                sys.stderr.write(f"{fault!r}\n")
                os._exit(1)
        children.append(child)
    sys.exit(max(os.waitpid(child, 0)[1] for child in children) > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
