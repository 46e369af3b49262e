"""Large files that have another name while they are written, and a record of that name for a process that is killed."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
from contextlib import ExitStack, suppress
from pathlib import Path

from ..errors import OutputError
from ..utils.interruption import unfinished
from ..utils.thread_pool import Closable, closing_on_error
from .atomic import UNFINISHED, give_name, sync_folder
from .checked_journal import ENCODE, CheckedJournal


class UnfinishedFile(Closable):
    """A new private file, `name`, in the folder of `path`, with a name that ends in `ending`; use it with `with`.

    It is removed unless `keep` gives it the name `path`. A record beside it names it first. So if the process is killed, the
    next one that writes the same path removes the file. Raises OutputError if the file cannot be made, or if another process
    writes the same path.
    """

    def __init__(self, path: Path, ending: str) -> None:
        self._path = path
        self._stack = ExitStack()
        self.name = str(path.with_name(f"{UNFINISHED}{secrets.token_hex(8)}{ending}"))
        with closing_on_error(self):
            self._record = self._stack.enter_context(_open_record(path))
            for name in (self.name, str(self._record.path)):
                self._stack.enter_context(unfinished(name))
            self._record.begin({"unfinished": os.path.basename(self.name)})
            self._stack.callback(self._record.remove)
            try:
                os.close(os.open(self.name, os.O_CREAT | os.O_EXCL, 0o600))  # the file that it replaces may be private
            except OSError as error:
                raise OutputError(f"{path} cannot be written: {error.strerror}") from None

    def keep(self) -> None:
        """Flush the file to the disk, and give it its name. Raises OSError."""
        with open(self.name, "rb+") as file:
            os.fsync(file.fileno())
        give_name(self.name, self._path)
        sync_folder(self._path.parent)

    def close(self) -> None:
        """Remove the file unless it was kept, and the record."""
        with suppress(OSError):
            os.unlink(self.name)
        with suppress(OutputError):
            self._stack.close()


def remove_unfinished(path: Path) -> None:
    """Remove the unfinished file of a process that was killed while it wrote `path`, if there is a record of one.

    Raises OutputError if another process writes the same path.
    """
    if os.path.lexists(_record_path(path)):
        with _open_record(path) as record:
            record.remove()


def _record_path(path: Path) -> Path:
    """Return the path of the record: of the same length for every name, because names have a limit."""
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:16]
    return path.with_name(f"{UNFINISHED}{digest}.journal")


def _open_record(path: Path) -> CheckedJournal:
    """Open the record of a path, and remove the file that it names."""
    record = CheckedJournal(_record_path(path), ENCODE, lambda _: None)
    name = (record.head or {}).get("unfinished")
    if isinstance(name, str) and name == os.path.basename(name) and name.startswith(UNFINISHED):
        with suppress(OSError):
            if stat.S_ISREG(os.lstat(path.with_name(name)).st_mode):
                os.unlink(path.with_name(name))
    return record
