"""Builds the shaders with the package, and shows editable installs to type checkers; everything else is in pyproject.toml."""

import shutil
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
        if self.editable_mode:
            link_package(ROOT / "build" / "package", Path(self.get_finalized_command("install").install_purelib))
        self.data_files = self._get_data_files()
        super().run()


def link_package(folder: Path, site_packages: Path) -> None:
    """Make the package as a folder of links, shaped as it is once installed, and add the folder to Python's path.

    Setuptools' import hook finds vkssim.host in host/, but type checkers run no hooks. Python follows the path too, or else the
    hook, should the folder be deleted.
    """
    package = folder / "vkssim"
    shutil.rmtree(package, ignore_errors=True)
    package.mkdir(parents=True)
    try:
        for path in (*(ROOT / "vkssim").iterdir(), ROOT / "host", ROOT / "shaders"):
            (package / path.name).symlink_to(path)
    except OSError as error:  # Windows allows it to few users
        shutil.rmtree(package)
        print(f"Type checkers will not find vkssim: {error}", file=sys.stderr)
    else:
        (site_packages / "vkssim_types.pth").write_text(f"{folder}\n", encoding="utf-8")


setup(cmdclass={"build_py": BuildWithShaders})
