"""The way for a script to run as `scripts/NAME` after the set-up, without activating .venv first."""

from __future__ import annotations

import os
import sys
from pathlib import Path

_VENV = Path(__file__).resolve().parent.parent / ".venv"


def run_again(missing: ImportError) -> None:
    """Start the script over under the Python of .venv; exits with 2 if that lacks the package too."""
    python = _VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if Path(sys.prefix) == _VENV or not python.exists():
        print(f"{sys.argv[0]}: {missing}. Run scripts/quickstart first: it installs vkssim into .venv", file=sys.stderr)
        sys.exit(2)
    os.execv(python, [str(python), *sys.argv])
