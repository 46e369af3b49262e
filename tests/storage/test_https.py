"""Test reading by https, from a server that fails for a moment, or that sends other data than requested."""

from __future__ import annotations

import re
import socket
import struct
import threading
from collections.abc import Iterator
from functools import lru_cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fsspec.implementations.http import HTTPFileSystem

from vkssim import score_files
from vkssim.errors import InputError, VkssimError
from vkssim.storage import urls

from ..frames.encoding import encode_frames, video_frame
from ..frames.reading import describe, open_source, read
from ..support.clips import raw_bytes, write
from ..support.pictures import clip

LUMA = clip(6)
CPU: dict[str, Any] = {"features": "float_ssim=scale=1", "backend": "cpu"}


class Server(ThreadingHTTPServer):
    """A server of one file, with ranges. `statuses` are the status codes of the next answers, 0 for a reset connection."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.data = b""
        self.version = '"1"'
        self.modified: str | None = None
        self.statuses: list[int] = []
        self.shift = 0
        self.requests = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.server_port}/clip"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *_: object) -> None:
        pass

    def do_HEAD(self) -> None:
        if self._fails():
            return
        self._begin(200, len(self.server.data))

    def do_GET(self) -> None:
        self.server.requests += 1
        if self._fails():
            return
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if asked is None:
            self._begin(200, len(self.server.data))
            self.wfile.write(self.server.data)
            return
        first = int(asked[1]) + self.server.shift
        part = self.server.data[first : int(asked[2]) + self.server.shift + 1]
        self._begin(206, len(part), f"bytes {first}-{first + len(part) - 1}/{len(self.server.data)}")
        self.wfile.write(part)

    def _fails(self) -> bool:
        status = self.server.statuses.pop(0) if self.server.statuses else 200
        if status == 0:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.connection.close()
        elif status != 200:
            self._begin(status, 0)
        return status != 200

    def _begin(self, status: int, length: int, given: str | None = None) -> None:
        self.send_response(status)
        self.send_header("Content-Length", str(length))
        self.send_header("ETag", self.server.version)
        if self.server.modified is not None:
            self.send_header("Last-Modified", self.server.modified)
        if given is not None:
            self.send_header("Content-Range", given)
        self.end_headers()


class _Plain(HTTPFileSystem):  # type: ignore[misc]
    """The file system for https, which connects to a server without a certificate."""

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return path.replace("https://", "http://")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    filesystem = _Plain(skip_instance_cache=True, use_listings_cache=False, **urls.https_options())
    monkeypatch.setattr(urls, "_filesystem", lambda _scheme, _process: filesystem)
    monkeypatch.setattr(urls, "_PAUSES", (0.0, 0.0))
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def reference(tmp_path: Path) -> str:
    return write(tmp_path / "r.yuv", raw_bytes(LUMA))


@pytest.mark.parametrize("status", [0, 429, 500, 502, 503, 504])
def test_what_fails_for_a_moment_is_asked_for_again(server: Server, reference: str, status: int) -> None:
    """With the size, with the first bytes and with frames."""
    server.data = raw_bytes(LUMA)
    server.statuses = [status, status, 200, status, 200]
    with open_source(server.url, describe(LUMA)) as source:
        server.statuses = [status, 200]
        np.testing.assert_array_equal(read(source), LUMA)
    assert server.statuses == []
    assert score_files(reference, server.url, raw=describe(LUMA), **CPU).column("float_ssim").tolist() == [1] * len(LUMA)


@pytest.mark.parametrize("status", [0, 503])
def test_a_server_that_goes_on_failing(server: Server, reference: str, status: int) -> None:
    """Ends the clip with a plain reason, after a bounded number of tries."""
    server.data = raw_bytes(LUMA)
    with open_source(server.url, describe(LUMA)) as source:
        server.statuses = [status] * 99
        assert len(read(source)) == 0
        assert "cannot be read on" in str(source.problem)
        assert "Traceback" not in str(source.problem)
        assert 3 <= 99 - len(server.statuses) <= 6 * len(LUMA), "aiohttp tries twice itself where a connection is reset"
    server.statuses = [status] * 99
    with pytest.raises(InputError, match="cannot be read"):
        score_files(reference, server.url, raw=describe(LUMA), **CPU)


@pytest.mark.parametrize("status", [403, 404])
def test_what_is_refused_is_asked_for_once(server: Server, status: int) -> None:
    server.data = raw_bytes(LUMA)
    with open_source(server.url, describe(LUMA)) as source:
        before = server.requests
        server.statuses = [status] * 99
        assert len(read(source, range(1))) == 0
        assert server.requests == before + 1


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_a_file_that_is_changed_between_ranges(server: Server, header: str) -> None:
    server.data, server.modified = raw_bytes(LUMA), "Mon, 01 Jan 2024 00:00:00 GMT"
    with open_source(server.url, describe(LUMA)) as source:
        assert len(read(source, range(2))) == 2
        if header == "ETag":
            server.version = '"2"'
        else:
            server.modified = "Mon, 01 Jan 2024 00:00:01 GMT"
        assert len(read(source, range(2, 4))) == 0
        assert f"was changed on its server while it was read: its {header} differs" in str(source.problem)
    with open_source(server.url, describe(LUMA)) as source:
        assert len(read(source)) == len(LUMA), "opened anew, it is read again"


def test_versions_of_few_files_are_kept(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service reads new URLs for months. The version of a file that is still being read is not forgotten."""
    versions = lru_cache(3)(urls._versions.__wrapped__)
    monkeypatch.setattr(urls, "_versions", versions)
    server.data, server.modified = raw_bytes(LUMA), "Mon, 01 Jan 2024 00:00:00 GMT"
    with open_source(server.url, describe(LUMA)) as source:
        for number in range(6):
            assert urls.size(f"{server.url}?{number}") == len(server.data)
            assert len(read(source, range(number, number + 1))) == (number < 5)
            assert versions.cache_info().currsize <= 3
            if number == 4:
                server.version = '"2"'
        assert "its ETag differs" in str(source.problem)


def test_a_container_that_is_changed(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """FFmpeg fetches its ranges: a range that can no longer be read is not the end."""
    monkeypatch.setattr(urls, "STREAM_BLOCK", 4096)
    grey = np.full((80, 100), 128, np.uint8)
    frames = [video_frame(200, 160, "yuv420p", (picture, grey, grey)) for picture in clip(20, 160, 200)]
    server.data = Path(encode_frames(tmp_path / "clip.mkv", frames, "ffv1")).read_bytes()
    with open_source(server.url) as source:
        server.version = '"2"'
        assert len(read(source)) < len(frames)
        assert "was changed on its server" in str(source.problem)


def test_another_range_than_was_asked_for(server: Server) -> None:
    server.data, server.shift = raw_bytes(LUMA), 0
    with open_source(server.url, describe(LUMA)) as source:
        server.shift = 7
        assert len(read(source, range(1))) == 0
        assert "bytes 0-767 were requested, and the server sent a different range" in str(source.problem)


def test_scores_of_two_versions(server: Server, reference: str) -> None:
    """Changed after the last range."""
    server.data = raw_bytes(LUMA)

    def change(*_: object) -> None:
        server.version = '"2"'

    with pytest.raises(VkssimError, match="was changed") as raised:
        score_files(reference, server.url, raw=describe(LUMA), progress=change, **CPU)
    assert raised.value.report is not None
