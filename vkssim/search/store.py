"""The stored trials of a search, from which a search that was cut off continues."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Self

from ..errors import OptionError
from ..frames.fingerprint import input_states
from ..storage.checked_journal import SEARCH, CheckedJournal
from ..storage.journal_file import journal_path
from ..utils.limits import LARGEST_JOURNAL_BYTES
from ..utils.version import __version__
from .source import Scan
from .trial import EncodedSample


class TrialStore:
    """The journal beside a path, begun if there is none; use it with `with`.

    `scan` is the stored scan of the clip, None if there is none. Raises OptionError if the journal belongs to another
    search, and the errors of `CheckedJournal`.
    """

    def __init__(self, path: str | os.PathLike[str], source: str, settings: Mapping[str, Any]) -> None:
        head = {"version": __version__, "source": [list(state) for state in input_states(source)], "settings": dict(settings)}
        self.scan: Scan | None = None
        self._encoded: dict[tuple[str, int], tuple[list[EncodedSample], float]] = {}
        self._journal = CheckedJournal(journal_path(Path(path)), SEARCH, self._parse, most_bytes=LARGEST_JOURNAL_BYTES)
        try:
            if self._journal.head is None:
                self._journal.begin(head)
            elif self._journal.head != head:
                raise OptionError(
                    f"{self._journal.path} has the trials of another search: of another clip, with other options, or by another"
                    " version. Move it away, or give another `resume`"
                )
            else:
                self._journal.go_on()
        except BaseException:
            self._journal.close()
            raise

    def _parse(self, entry: Any) -> None:
        if "scan" in entry:
            self.scan = Scan(**{part.name: entry["scan"][part.name] for part in fields(Scan)})
        else:
            encoded = [EncodedSample.of_json(one) for one in entry["encoded"]]
            self._encoded[str(entry["ranges"]), int(entry["place"])] = encoded, float(entry["seconds"])

    def find(self, ranges: str, place: int) -> tuple[list[EncodedSample], float] | None:
        """Return the samples of a trial that is stored, and the seconds that it took; or None if it is not."""
        return self._encoded.get((ranges, place))

    def add_scan(self, scan: Scan) -> None:
        """Store the scan of the clip. Raises OutputError."""
        self._journal.add([{"scan": asdict(scan)}])

    def add(self, ranges: str, place: int, encoded: Sequence[EncodedSample], seconds: float) -> None:
        """Store the samples of a trial. Raises OutputError."""
        self._encoded[ranges, place] = list(encoded), seconds
        self._journal.add(
            [{"ranges": ranges, "place": place, "encoded": [one.as_json() for one in encoded], "seconds": seconds}]
        )

    def remove(self) -> None:
        """Remove the journal of a search that is done. Raises OutputError."""
        self._journal.remove()

    def close(self) -> None:
        """Close the file."""
        self._journal.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
