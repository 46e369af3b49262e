"""What FFmpeg's command line does with sound, subtitles and attachments."""

from __future__ import annotations

from pathlib import Path

import pytest

from vkssim.search.command_line import copying_words
from vkssim.search.source import OtherStreams, Source

from .clips import remuxed, source

SOUND = ["-map", "0:a?"]
ALL = [*SOUND, "-map", "0:s?", "-c:a", "copy", "-c:s"]


def test_the_streams_of_a_clip(tmp_path: Path) -> None:
    clip = source(tmp_path / "clip.mkv", codec="libx264", options={"preset": "ultrafast"})
    assert Source(clip).facts.others == OtherStreams()
    more = remuxed(clip, tmp_path / "more.mkv", subtitles=["subrip", "hdmv_pgs_subtitle"], font=True)
    assert Source(more).facts.others == OtherStreams(("subrip", "hdmv_pgs_subtitle"), attachments=True)
    assert Source(remuxed(clip, tmp_path / "more.mp4", subtitles=["mov_text"])).facts.others == OtherStreams(("mov_text",))


@pytest.mark.parametrize(
    ("subtitles", "words"),
    [
        ((), [*ALL, "copy"]),
        (("subrip", "hdmv_pgs_subtitle"), [*ALL, "copy"]),
        (("mov_text", "mov_text"), [*ALL, "srt"]),
        (("ass", "mov_text"), [*SOUND, "-map", "0:s?", "-c:a", "copy", "-c:s:0", "copy", "-c:s:1", "srt"]),
        (("subrip", "", "dvb_teletext"), [*SOUND, "-map", "0:s:0", "-c:a", "copy", "-c:s", "copy"]),
        (
            ("", "mov_text", "dvd_subtitle"),
            [*SOUND, "-map", "0:s:1", "-map", "0:s:2", "-c:a", "copy", "-c:s:0", "srt", "-c:s:1", "copy"],
        ),
        (("dvb_teletext",), [*SOUND, "-c:a", "copy"]),
    ],
)
def test_subtitles_become_what_the_file_can_hold(subtitles: tuple[str, ...], words: list[str]) -> None:
    assert copying_words(OtherStreams(subtitles)) == words


def test_attachments_are_copied() -> None:
    others = OtherStreams(("ass",), attachments=True)
    assert copying_words(others) == [*SOUND, "-map", "0:s?", "-map", "0:t?", "-c:a", "copy", "-c:s", "copy"]
