"""For the owner of the data alone: whether rows that a stream counted were altered or deleted since."""

import pyarrow

from noisette.questions.stream import Publication

__all__ = ["altered"]


def altered(published: Publication) -> pyarrow.Table:
    """By how much the numbers of each step were below the largest so far, added up over all groups: EXACT.

    0 where rows were only added. Rows that were added since hide as many. Streams go on whatever it says: a step
    never fails by it, and no released number changes.

    >>> from noisette.curator.demo import hospital
    >>> from noisette.questions import Stream
    >>> published = hospital().stream(Stream("day", since="2024-01-01", until="2024-01-08", events=3), spend=1)
    >>> _ = published.step()
    >>> altered(published)["fell"].to_pylist()
    [0.0]
    """
    state, offer = published._line.last, published._offer
    ends = pyarrow.array([offer.asked.ends_at(i + 1)[1] for i in range(len(state.fell))], pyarrow.timestamp("us"))
    return pyarrow.table({"until": ends, "fell": [float(fell * offer.measure.grid) for fell in state.fell]})
