"""How a report was scored: everything that its scores depend on, as plain values.

An option that scores depend on is declared once, in the dataclass that carries it (`Selection`, `PictureOptions`,
`RawDescription`), by the metadata of its field; what is known of a clip is declared in `ClipFacts`. What is added to one of
them turns up by itself in every form of a report, in its schema, in comparisons and, where it has a flag, in the command.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..frames.clip_facts import ClipFacts, VideoPackets
from ..frames.open import RawDescription
from ..frames.pictures import PictureOptions
from ..frames.selection import Selection
from ..storage.remote import named
from ..utils.facts import Differs, as_text, fact, facts_of

if TYPE_CHECKING:
    from ..features.plane_metrics import FrameMetrics
    from ..frames.source import FrameSource
    from ..scoring.verdict import ClipEnd

ClipPackets = tuple[VideoPackets | None, VideoPackets | None]
"""Of the reference and of the distorted clip; see `FrameSource.packets`."""

_FREE, _NOTED = Differs.FREE, Differs.NOTED


@dataclass(frozen=True)
class FeatureFacts:
    """A metric of one plane: all of its options with the values that were used.

    `automatic` are the options that were left to the size of the plane, `limit_db` is the most dB that a score can have.
    """

    name: str = field(metadata=fact("name"))
    plane: str = field(metadata=fact("plane"))
    options: Mapping[str, str | float | bool] = field(metadata=fact("options"))
    automatic: tuple[str, ...] = field(default=(), metadata=fact("automatic options", _FREE))
    limit_db: float | None = field(default=None, metadata=fact("limit", unit="dB"))


@dataclass(frozen=True, kw_only=True)
class ScoringRecord:
    """How two clips were scored.

    `command` scores them the same way; it names no device and no output. `width`, `height`, `bits` and `chroma` (None where
    luma alone was scored) are those of the frames that were compared, after all that was done to them; `cropped_to` is the
    rectangle that ``--crop`` took. `reference` and `distorted` are the clips as they were before.
    """

    version: str = field(metadata=fact("version of vkssim", _NOTED))
    command: str = field(metadata=fact("command", _FREE))
    features: tuple[FeatureFacts, ...] = field(metadata=fact("features", _FREE))  # compared one by one
    planes: str = field(metadata=fact("planes", flag="--planes"))
    sync: str = field(metadata=fact("sync", flag="--sync"))
    width: int = field(metadata=fact("width compared", across=_FREE))
    height: int = field(metadata=fact("height compared", across=_FREE))
    bits: int = field(metadata=fact("depth compared", _NOTED, across=_FREE, unit="bit"))
    chroma: str | None = field(default=None, metadata=fact("chroma compared", across=_FREE))
    cropped_to: str | None = field(default=None, metadata=fact("cropped to", across=_FREE))
    selection: Selection = field(default_factory=Selection, metadata=fact("selection"))
    pictures: PictureOptions = field(default_factory=PictureOptions, metadata=fact("pictures"))
    raw: RawDescription = field(default_factory=RawDescription, metadata=fact("raw files"))
    reference: ClipFacts = field(metadata=fact("reference"))
    distorted: ClipFacts = field(metadata=fact("distorted clip"))


def scoring_record(
    sources: tuple[FrameSource, FrameSource],
    paths: tuple[str, str],
    metrics: FrameMetrics,
    backend: str,
    *,
    planes: str,
    raw: RawDescription,
    selection: Selection,
    sync: str,
    pictures: PictureOptions,
) -> ScoringRecord:
    """Return how two sources are going to be scored, reference first. What only reading tells comes by `with_whole_clips`."""
    info = sources[0].info
    features = tuple(
        FeatureFacts(scorer.names[0], plane.name, scorer.settings.options, scorer.settings.automatic, scorer.settings.limit_db)
        for plane in metrics.planes
        for scorer in plane.scorers
    )
    reference, distorted = (
        replace(source.clip_facts(), path=named(path), resampler=source.info.resampler, cropped_to=source.info.own_crop)
        for source, path in zip(sources, paths, strict=True)
    )
    record = ScoringRecord(
        version=__version__,
        command="",
        features=features,
        planes=planes,
        sync=sync,
        width=info.width,
        height=info.height,
        bits=info.bits,
        chroma=None if planes == "y" else info.chroma,
        cropped_to=info.crop,
        selection=selection,
        pictures=pictures,
        raw=raw,
        reference=reference,
        distorted=distorted,
    )
    texts = [scorer.settings.text for scorer in metrics.planes[0].scorers]
    return replace(record, command=_command(record, texts, backend))


def with_whole_clips(
    record: ScoringRecord | None, packets: ClipPackets | None, ends: Sequence[ClipEnd], shorter: str | None
) -> ScoringRecord | None:
    """Return the record with what only reading both clips to their ends tells; as it was where `packets` are None.

    `packets` are those of their video streams. How many frames there are is known of clips that ended together: how far a clip
    is read on behind the end of the other, and so whether its own end is met, is different on each device.
    """
    if record is None or packets is None:
        return record
    frames = [end.found if shorter is None else None for end in ends]
    reference, distorted = map(_whole, (record.reference, record.distorted), packets, frames)
    return replace(record, reference=reference, distorted=distorted)


def merged_records(records: Sequence[ScoringRecord | None]) -> ScoringRecord | None:
    """Return the record of the parts of a run, which differ by nothing but the decoders of their machines."""
    known = [record for record in records if record is not None]
    if not known:
        return None
    reference, distorted = (
        replace(clips[0], decoder_version=_listed(clip.decoder_version for clip in clips))
        for clips in ([record.reference for record in known], [record.distorted for record in known])
    )
    return replace(known[0], reference=reference, distorted=distorted)


def _listed(versions: Iterable[str | None]) -> str | None:
    return "; ".join(sorted({version for version in versions if version is not None})) or None


def _whole(clip: ClipFacts, packets: VideoPackets | None, frames: int | None) -> ClipFacts:
    frames = clip.frames if clip.frames is not None else frames
    duration = clip.duration
    if packets is not None and packets.seconds is not None:
        duration = round(packets.seconds, 6)
    elif duration is None and frames is not None and clip.fps is not None:
        duration = round(frames / clip.fps, 6)
    kbps = clip.kbps
    if packets is not None and packets.seconds is not None:
        kbps = round(packets.bytes * 8 / packets.seconds / 1000, 3)
    return replace(clip, frames=frames, duration=duration, kbps=kbps)


def _command(record: ScoringRecord, features: Sequence[str], backend: str) -> str:
    words = ["vkssim", "score", "-r", record.reference.path, "-d", record.distorted.path]
    for text in features:
        words += ["--feature", text]
    words += _flags(record, {"planes": "y", "sync": "index"})
    for options in (record.selection, record.pictures, record.raw):
        words += _given(options)
    if backend != "vulkan":
        words += ["--backend", backend]
    return shlex.join(words)


def selection_flags(selection: Selection) -> list[str]:
    """Return the words of a command line that select the frames, shifted ones too; none for whole clips."""
    return list(_given(replace(selection, stream_reference=None, stream_distorted=None)))


def _given(options: Any) -> Iterator[str]:
    return _flags(options, {option.name: option.default for option in fields(options)})


def _flags(options: Any, defaults: Mapping[str, Any]) -> Iterator[str]:
    """Yield the words of a command line for those options that have not their defaults."""
    for name, entry in facts_of(type(options)).items():
        value = getattr(options, name)
        if entry.flag is not None and value != defaults[name]:
            yield from (entry.flag,) if value is True else (entry.flag, str(value))


def leaves(record: ScoringRecord) -> Iterator[tuple[str, str, bool]]:
    """Yield what the record says, fact by fact: a title, a text, and whether there is nothing to say but a default."""
    for name, entry in facts_of(ScoringRecord).items():
        value = getattr(record, name)
        if name == "features":
            yield entry.title, "; ".join(map(feature_text, record.features)), False
        elif is_dataclass(value):
            for option in fields(value):
                single = getattr(value, option.name)
                inner = facts_of(type(value))[option.name]
                yield f"{entry.title}: {inner.title}", inner.text(single), single == option.default
        else:
            yield entry.title, entry.text(value), value is None


def feature_text(feature: FeatureFacts) -> str:
    """Return a feature with all its options as a command line has them, and the plane unless that is the luma."""
    options = ":".join(f"{name}={as_text(value)}" for name, value in feature.options.items())
    return f"{feature.name}={options}" + ("" if feature.plane == "y" else f" of {feature.plane}")
