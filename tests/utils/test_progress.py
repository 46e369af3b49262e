"""Test the bar of a notebook with a stand-in for IPython; the command line's tests cover that of a terminal."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from vkssim.utils.progress import NotebookBar, ProgressBar, progress_bar


class Shown:
    """The output of a cell: the latest version of each thing that is displayed."""

    def __init__(self) -> None:
        self.pictures: list[str] = []

    def display(self, picture: str, *, display_id: bool) -> Any:
        assert display_id
        self.pictures.append(picture)
        place = len(self.pictures) - 1
        return SimpleNamespace(update=lambda newer: self.pictures.__setitem__(place, newer))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Shown:
    """A process that IPython says is a notebook's."""
    cell = Shown()
    ipython, display = ModuleType("IPython"), ModuleType("IPython.display")
    ipython.get_ipython = lambda: SimpleNamespace(kernel=object())  # type: ignore[attr-defined]
    display.HTML, display.display = str, cell.display  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "IPython", ipython)
    monkeypatch.setitem(sys.modules, "IPython.display", display)
    return cell


def test_one_bar_that_moves(shown: Shown) -> None:
    bar = progress_bar()
    assert isinstance(bar, NotebookBar)
    bar(0, 3)
    bar(2, 3)
    bar.close()
    assert shown.pictures == ['<progress value="2" max="3"></progress> 2/3 frames']


def test_an_unknown_number(shown: Shown) -> None:
    progress_bar()(7, None)
    assert shown.pictures == ["<progress></progress> 7/? frames"]


def test_an_interactive_shell_and_no_ipython_are_a_terminal(shown: Shown, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["IPython"], "get_ipython", lambda: SimpleNamespace())
    assert type(progress_bar()) is ProgressBar
    monkeypatch.delitem(sys.modules, "IPython")
    assert type(progress_bar()) is ProgressBar
