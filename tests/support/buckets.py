"""A bucket in memory, under the scheme of S3, which counts what is read of it."""

from __future__ import annotations

from typing import Any

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from vkssim.storage import urls


class Bucket(MemoryFileSystem):  # type: ignore[misc]
    """`ranges` are those read so far; `failure`, if there is one, is raised in place of any further."""

    cachable = False

    def __init__(self) -> None:
        super().__init__()
        self.store: dict[str, Any] = {}
        self.pseudo_dirs = [""]
        self.ranges: list[tuple[int, int]] = []
        self.failure: Exception | None = None

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(super()._strip_protocol(path.removeprefix("s3://")))

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **options: Any) -> bytes:
        if self.failure is not None:
            raise self.failure
        data: bytes = super().cat_file(path, start=start, end=end, **options)
        self.ranges.append((start or 0, (start or 0) + len(data)))
        return data

    @property
    def bytes_read(self) -> int:
        return sum(stop - start for start, stop in self.ranges)


def put_in_place(monkeypatch: pytest.MonkeyPatch) -> Bucket:
    """Return an empty bucket, which ``s3://`` URLs name until the test is over. It is asked again without a pause."""
    bucket, others = Bucket(), urls._filesystem
    monkeypatch.setattr(urls, "_PAUSES", (0.0,) * len(urls._PAUSES))
    monkeypatch.setattr(urls, "_filesystem", lambda scheme, process: bucket if scheme == "s3" else others(scheme, process))
    return bucket
