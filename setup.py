"""Builds the shaders with the package; everything else is in pyproject.toml."""

import subprocess
import sys
from pathlib import Path

from setuptools import setup
from setuptools.command.build_py import build_py

ROOT = Path(__file__).resolve().parent


class BuildWithShaders(build_py):
    """Compiles the shaders into shaders/spv before the package's files are collected, in editable installs too."""

    def run(self) -> None:
        """Compile, then collect: what was just compiled is among the package's files."""
        built = subprocess.run([sys.executable, ROOT / "scripts" / "build_shaders"], stderr=subprocess.PIPE, text=True)
        if built.returncode:  # said last, where a traceback would bury it
            sys.exit(f"The shaders of vkssim cannot be built from source. {built.stderr.strip()}")
        self.data_files = self._get_data_files()
        super().run()


setup(cmdclass={"build_py": BuildWithShaders})
