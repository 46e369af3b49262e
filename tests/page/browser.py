"""A browser without a window, and what it has to say of a page."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Dialog, Page, Playwright, expect

from ..support.waiting import PATIENCE

NAMES = ("chromium", "chromium-browser", "google-chrome")

ARGUMENTS = ["--no-sandbox", "--disable-gpu"]  # root has no sandbox, in containers
_PR_CAPBSET_DROP, _CAP_SYS_NICE = 24, 23  # of <linux/prctl.h> and <linux/capability.h>

expect.set_options(timeout=1000 * PATIENCE)
os.environ.setdefault("PLAYWRIGHT_BROWSERS_PATH", "0")  # Playwright's own lies within its package, if anywhere


def launch(playwright: Playwright) -> Browser:
    """The browser of this machine. Its absence is a failure, never a reason to skip."""
    own = playwright.chromium.executable_path
    path = own if Path(own).exists() else next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        pytest.fail(
            f"the tests need a browser: none of {', '.join(NAMES)} is on the PATH, nor is Playwright's own there", pytrace=False
        )
    return playwright.chromium.launch(executable_path=path, args=ARGUMENTS)


def keep_priority() -> None:
    """Let no process that is started from here on raise its priority, which root may, so that Chromium does it: on two cores
    its threads then wait, spinning, for others that get no core any more, and the whole machine hangs.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_CAPBSET_DROP, _CAP_SYS_NICE, 0, 0, 0)


@contextmanager
def visit(browser: Browser, path: Path, **options: Any) -> Iterator[Page]:
    """Open a file in a window of its own; the rest is as for `visit_in`."""
    with browser.new_context(**options) as context, visit_in(context.new_page(), path) as page:
        yield page


@contextmanager
def visit_in(page: Page, path: Path) -> Iterator[Page]:
    """Open a file in a window. Errors, messages and requests beyond the file itself fail the test."""
    said: list[str] = []
    requests: list[str] = []

    def dismiss(dialog: Dialog) -> None:
        said.append(dialog.message)
        dialog.dismiss()

    listeners: dict[Any, Callable[[Any], None]] = {
        "console": lambda message: said.append(message.text),
        "pageerror": lambda error: said.append(str(error)),
        "dialog": dismiss,
        "request": lambda request: requests.append(request.url),
    }
    page.set_default_timeout(1000 * PATIENCE)
    for event, listener in listeners.items():
        page.on(event, listener)
    try:
        page.goto(path.as_uri())
        yield page
        assert said == []
        assert {url for url in requests if not url.startswith("data:")} == {path.as_uri()}
    finally:
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
