"""The forms in which a report is written, each declared once. The module with the name of a form renders it.

This module imports nothing else of the package, because the command line reads it for its flags and its help.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """A form of a report. Its `name` is also its flag, the ending of its files, and the module with its `render`."""

    name: str
    title: str

    @property
    def flag(self) -> str:
        """Return the flag that chooses the form for a file of any name."""
        return f"--{self.name}"

    @property
    def suffix(self) -> str:
        """Return the ending of the form's files."""
        return f".{self.name}"


FORMS = {
    form.name: form
    for form in (
        Form("json", "JSON"),
        Form("xml", "XML"),
        Form("csv", "CSV"),
        Form("sub", "MicroDVD subtitles"),
    )
}
"""All forms by name, in the order of the help."""
