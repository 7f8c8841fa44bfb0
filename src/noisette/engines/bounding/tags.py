"""Keyed tags of groups and rows: AES of a unit and its group, and of that with a row; the package defines them."""

from typing import Any

import numpy as np

from noisette.engines.bounding.words import Codes, Words

__all__ = ["Tags"]


class Tags:
    """The tags under one key of 16 bytes."""

    def __init__(self, key: bytes) -> None:
        schedule = _ecb(key)
        self._pair, self._row = (_ecb(schedule.update(number.to_bytes(16, "little"))) for number in (1, 2))

    def groups(self, unit: Codes, group: Codes) -> Words:
        """Tag groups."""
        return self._pairs(unit, group)[:, 0]

    def rows(self, unit: Codes, group: Codes, rows: Words) -> Words:
        """Tag rows."""
        blocks = self._pairs(unit, group).copy()
        blocks[:, 1] ^= rows
        return _encrypted(self._row, blocks)[:, 0]

    def _pairs(self, unit: Codes, group: Codes) -> Words:
        blocks = np.empty((len(unit), 2), "<u8")
        blocks[:, 0] = unit.view(np.uint64)
        blocks[:, 1] = group.view(np.uint64)
        return _encrypted(self._pair, blocks)


def _ecb(key: bytes) -> Any:
    from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

    return Cipher(algorithms.AES(key), modes.ECB()).encryptor()


def _encrypted(cipher: Any, blocks: Words) -> Words:
    return np.frombuffer(cipher.update(blocks.reshape(-1).view(np.uint8).data), "<u8").reshape(-1, 2)
