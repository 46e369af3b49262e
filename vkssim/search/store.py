"""Store the trials of a search, so that one that was cut off continues from them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ..errors import OptionError
from ..storage.checked_journal import SEARCH, CheckedJournal, journal_path
from ..storage.inputs import input_states
from ..utils.thread_pool import closing_on_error
from ..utils.version import __version__
from .encode import EncodedSample
from .source import Scan


class TrialStore(CheckedJournal):
    """The journal beside a path, begun if there is none; use it with `with`.

    `scan` is the stored scan of the clip, None if there is none. `trials` has the samples and the seconds of each stored trial,
    by the name of its samples and its place. Raises OptionError if the journal belongs to another search, and the errors of
    `CheckedJournal`.
    """

    def __init__(self, path: str | os.PathLike[str], source: str, settings: Mapping[str, Any]) -> None:
        head = {"version": __version__, "source": [list(state) for state in input_states(source)], "settings": dict(settings)}
        self.scan: Scan | None = None
        self.trials: dict[tuple[str, int], tuple[list[EncodedSample], float]] = {}
        super().__init__(journal_path(Path(path)), SEARCH, self._take)
        with closing_on_error(self):
            if self.head is None:
                self.begin(head)
            elif self.head != head:
                raise OptionError(
                    f"{self.path} has the trials of another search: of another clip, with other options, or by another"
                    " version. Move it away, or give another `resume`"
                )
            else:
                self.go_on()

    def _take(self, entry: Any) -> None:
        if "scan" in entry:
            self.scan = Scan(**entry["scan"])
        else:
            self.trials[entry["ranges"], entry["place"]] = (
                [EncodedSample(**sample) for sample in entry["encoded"]],
                entry["seconds"],
            )

    def add_scan(self, scan: Scan) -> None:
        """Store the scan of the clip. Raises OutputError."""
        self.scan = scan
        self.add({"scan": asdict(scan)})

    def add_trial(self, ranges: str, place: int, encoded: Sequence[EncodedSample], seconds: float) -> None:
        """Store the samples of a trial. Raises OutputError."""
        self.trials[ranges, place] = list(encoded), seconds
        self.add({"ranges": ranges, "place": place, "encoded": [asdict(sample) for sample in encoded], "seconds": seconds})
