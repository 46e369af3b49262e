"""Test which facts must be equal for a comparison, which may differ, and the messages about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from vkssim.errors import InputError
from vkssim.frames.info import ClipFacts
from vkssim.frames.options import PictureOptions, Selection
from vkssim.metrics.comparability import Findings, Scored, check_alike, find_differences
from vkssim.report.record import FeatureFacts, ScoringRecord

from ..report.reports import small_record

RECORD = small_record()
MS_SSIM, SSIM = RECORD.features


def found(*records: ScoringRecord | None, references: str = "rrrrrrrr") -> Findings:
    return find_differences([Scored("abcdefgh"[place], references[place], record) for place, record in enumerate(records)])


def with_option(feature: FeatureFacts = SSIM, automatic: tuple[str, ...] | None = None, **options: Any) -> ScoringRecord:
    """RECORD, but for options of a feature."""
    used = automatic if automatic is not None else feature.automatic
    changed = replace(feature, options={**feature.options, **options}, automatic=used)
    return replace(RECORD, features=tuple(changed if other is feature else other for other in RECORD.features))


REFUSED = {
    "features: float_ssim window gaussian11 against uniform8": with_option(window="uniform8"),
    "features: float_ssim scale 1 against 2": with_option(scale=2),
    "features: float_ssim precision exact against fast": with_option(precision="fast"),
    "features: float_ms_ssim enable_db false against true": with_option(MS_SSIM, enable_db=True),
    "features: float_ms_ssim negative null against clamp": with_option(MS_SSIM, negative="clamp"),
    "features: float_ssim limit none against 60 dB": replace(RECORD, features=(MS_SSIM, replace(SSIM, limit_db=60.0))),
    "planes y against yuv": replace(RECORD, planes="yuv"),
    "sync index against pts": replace(RECORD, sync="pts"),
    "width compared 32 against 64": replace(RECORD, width=64),
    "cropped to none against 32x24+0+2": replace(RECORD, cropped_to="32x24+0+2"),
    "chroma compared none against 420": replace(RECORD, chroma="420"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_has_to_be_alike(text: str) -> None:
    assert found(RECORD, REFUSED[text]) == Findings([f"a and b were not scored alike: {text}"])


ALLOWED = {
    "another device, another file": replace(RECORD, command="vkssim score", distorted=ClipFacts("x.mp4", "mp4", codec="av1")),
    "further scores": with_option(enable_lcs=True),
    "one metric more": replace(RECORD, features=(SSIM,)),
    "asked for what is automatic": with_option(automatic=()),
    "asked for what was found": replace(RECORD, pictures=PictureOptions("auto", "reference", "lanczos")),
    "described": replace(RECORD, raw=type(RECORD.raw)()),
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_may_differ(name: str) -> None:
    assert found(RECORD, ALLOWED[name]) == Findings()
    assert found(ALLOWED[name], RECORD) == Findings()


def test_rungs_may_differ_in_their_encoding() -> None:
    def record(size: tuple[int, int], **encoding: int) -> ScoringRecord:
        facts = FeatureFacts("vmaf", "y", {"enc_width": 0, "enc_height": 0, "enc_bitdepth": 0, **encoding})
        return replace(RECORD, features=(facts,), distorted=ClipFacts("x.mp4", width=size[0], height=size[1], bits=8))

    small = record((64, 48), enc_width=64, enc_height=48, enc_bitdepth=8)
    assert found(small, record((96, 72), enc_width=96, enc_height=72, enc_bitdepth=8)) == Findings()
    assert found(small, record((128, 96), enc_bitdepth=8)) == Findings()
    (refused,) = found(small, record((64, 48), enc_bitdepth=8)).refused
    assert "vmaf enc_width 64 against 0" in refused


def test_other_frames_are_warned_of() -> None:
    other = replace(RECORD, selection=Selection(subsample=2, start="1s"))
    assert found(RECORD, other) == Findings([], ["a and b differ: selection: subsample 1 against 2, start none against 1s"])


def test_other_versions_are_noted() -> None:
    first, second = (
        replace(RECORD, version=version, distorted=replace(RECORD.distorted, decoder_version=f"libavcodec {version}"))
        for version in ("1", "2")
    )
    text = "version of vkssim 1 against 2; distorted clip: decoder version libavcodec 1 against libavcodec 2"
    assert found(first, second) == Findings([], [], [f"a and b differ: {text}"])
    raw = replace(second, version="1", distorted=replace(second.distorted, decoder_version=None))
    assert found(first, raw) == Findings(), "raw video has no decoder"


def test_the_reference_has_to_mean_the_same() -> None:
    limited, full, unknown = (
        replace(RECORD, reference=replace(RECORD.reference, range=text)) for text in ("limited", "full", None)
    )
    assert found(limited, full).refused == ["a and b were not scored alike: reference: range limited against full"]
    assert found(limited, unknown) == Findings()
    small, large = (replace(RECORD, reference=replace(RECORD.reference, file_bytes=size)) for size in (1000, 2000))
    assert found(small, large).refused == ["a and b were not scored alike: reference: file size 1000 bytes against 2000 bytes"]
    assert found(small, large, references="rs") == Findings()
    assert found(small, RECORD) == Findings(), "a pipe has no size"
    assert found(RECORD, replace(RECORD, distorted=replace(RECORD.distorted, file_bytes=5))) == Findings()
    distorted = [replace(RECORD, distorted=replace(RECORD.distorted, range=text)) for text in ("limited", "full")]
    assert found(*distorted) == Findings(), "the report itself warns of a distorted clip that differs from its reference"


def test_clips_of_a_ladder_are_scaled_each_or_not() -> None:
    native, bicubic, lanczos = (
        replace(RECORD, distorted=replace(RECORD.distorted, resampler=name)) for name in (None, "bicubic", "lanczos")
    )
    assert found(native, bicubic) == Findings()
    assert found(bicubic, lanczos).refused == [
        "a and b were not scored alike: distorted clip: resampler bicubic against lanczos"
    ]


def test_different_references_go_by_what_was_asked_for() -> None:
    """What was left to the size of the frames is different for each, and so is the size."""
    automatic = replace(with_option(scale=4), width=1920, height=1080, cropped_to="1920x800+0+140")
    assert found(RECORD, automatic).refused, "not for one reference"
    assert found(RECORD, automatic, references="rs") == Findings()
    asked = with_option(automatic=(), scale=4)
    text = "a and b were not scored alike: features: float_ssim scale 1 against 4"
    assert found(RECORD, asked, references="rs").refused == [text]
    window = with_option(window="uniform8")
    assert found(RECORD, window, references="rs").refused
    scaled = [replace(RECORD, pictures=PictureOptions(scale=scale)) for scale in ("reference", "distorted", None)]
    assert found(*scaled[:2], references="rs").refused == [
        "a and b were not scored alike: pictures: scale reference against distorted"
    ]
    assert found(*scaled[1:], references="rs") == Findings()


def test_each_reference_has_an_anchor_of_its_own() -> None:
    other = replace(with_option(scale=4), width=64)
    assert found(RECORD, other, RECORD, other, references="rsrs") == Findings()
    uneven = replace(other, width=48)
    assert found(RECORD, other, uneven, references="rss").refused == [
        "b and c were not scored alike: width compared 64 against 48"
    ]


def test_many_that_differ_in_the_same_way_are_one_sentence() -> None:
    """The name of the clip makes them different in what does not count."""
    others = [replace(REFUSED["sync index against pts"], distorted=ClipFacts(str(number))) for number in range(3)]
    fits = [replace(other, reference=replace(other.reference, range=text)) for other, text in zip(others, "xyz", strict=True)]
    assert found(RECORD, *others).refused == ["a and b were not scored alike: sync index against pts"]
    assert found(RECORD, *fits).refused == ["a and b (and 2 more) were not scored alike: sync index against pts"]


def test_what_nobody_knows_is_noted() -> None:
    assert found(None) == Findings(), "nothing is compared"
    said = "scored, by another tool or an older version"
    assert found(RECORD, None).notes == [f"it is unknown how b was {said}"]
    assert found(*[None] * 5).notes == [f"it is unknown how a, b, c and 2 more were {said}"]
    assert found(None, RECORD, REFUSED["sync index against pts"]).refused == [
        "b and c were not scored alike: sync index against pts"
    ]


def test_force_makes_a_warning_of_it() -> None:
    scored = [Scored("a", "r", RECORD), Scored("b", "r", REFUSED["sync index against pts"])]
    with pytest.raises(InputError, match=r"alike: sync index against pts\. `force` compares"):
        check_alike(scored, force=False)
    assert check_alike(scored, force=True) == Findings([], ["a and b were not scored alike: sync index against pts"])
