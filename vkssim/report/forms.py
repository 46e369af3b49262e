"""Declare the forms that a report is written in, each once; the module of its name renders it.

This module imports nothing else of the package, since the flags and the help of the command line come from it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """Declare a form. Its `name` is also its flag, the ending of its files and the module that has its `render`."""

    name: str
    title: str

    @property
    def flag(self) -> str:
        """Return the flag that chooses the form whatever the name of the file."""
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
