"""What offers of small tables share: how an answer is told, kept and read again."""

import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow

from noisette.answers import Column
from noisette.errors import PrivacyError
from noisette.privacy import Guarantee
from noisette.privacy.sensitivity import Sensitivity
from noisette.query.caveats import Omission, omissions, sentences
from noisette.query.design import recorded
from noisette.query.prepare import Prepared

__all__ = ["ByOne", "Told"]


class Told:
    """An offer whose answer is one Arrow table; a number x has the ends of its error bar in x_low and x_high."""

    def answers(self, drawn: pyarrow.Table) -> list[tuple[Column, ...]]:
        """The columns of the answer."""
        return [tuple(_columns(drawn))]

    def pack(self, drawn: pyarrow.Table) -> bytes:
        """What was drawn as bytes, to be kept."""
        buffer = io.BytesIO()
        with pyarrow.ipc.new_stream(buffer, drawn.schema) as writer:
            writer.write_table(drawn)
        return buffer.getvalue()

    def unpack(self, kept: bytes) -> pyarrow.Table:
        """What was drawn, from its bytes."""
        try:
            table = pyarrow.ipc.open_stream(io.BytesIO(kept)).read_all()
            table.validate(full=True)
        except (pyarrow.ArrowException, ValueError, OSError):
            table = None
        if table is None:
            raise PrivacyError(
                "The answer that was kept for this question was changed: restore a backup of the ledger."
            )
        return table


@dataclass(frozen=True)
class ByOne(Told):
    """An offer of one mechanism for what one query measures; `reach` is how far a unit can move that."""

    prepared: Prepared
    mechanism: Any
    reach: Sensitivity
    level: float

    @property
    def guarantee(self) -> Guarantee:
        """What the mechanism promises."""
        return self.mechanism.guarantee(self.reach)  # type: ignore[no-any-return]

    @property
    def unit(self) -> str:
        """The declared unit column, or "row"."""
        return str(self.prepared.shape.unit)

    @property
    def caveats(self) -> list[tuple[str, ...]]:
        """What the query leaves out."""
        return [sentences([*omissions(self.prepared), *self.omitted], self.covers)]

    @property
    def covers(self) -> str:
        """What ± covers; nothing where there are no error bars."""
        return ""

    @property
    def omitted(self) -> Sequence[Omission]:
        """What is left out after the query."""
        return ()

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The mechanism with what it is applied to."""
        return [recorded(self.mechanism, self.prepared.request.measures[0], self.reach)]


def _columns(drawn: pyarrow.Table) -> Iterator[Column]:
    names = drawn.column_names
    ends = {f"{name}_{end}" for name in names for end in ("low", "high") if f"{name}_{end}" in names}
    for name in names:
        if name in ends:
            continue
        low, high = (_numbers(drawn, f"{name}_{end}") if f"{name}_{end}" in ends else None for end in ("low", "high"))
        yield Column(name, drawn.column(name).combine_chunks(), low, high)


def _numbers(drawn: pyarrow.Table, name: str) -> Any:
    return np.array(drawn.column(name).to_numpy(), dtype=float)
