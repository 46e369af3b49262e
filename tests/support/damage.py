"""Damage to files: single bits."""

from __future__ import annotations

from collections.abc import Iterator


def flipped_bits(data: bytes, every: int = 1) -> Iterator[bytes]:
    """Yield the data with one bit flipped, for each bit in turn, or for each so many."""
    for bit in range(0, 8 * len(data), every):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        yield bytes(damaged)
