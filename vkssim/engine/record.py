"""Make the record of how two clips were scored, before the first frame, and complete it after both clips were read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..frames.info import ClipFacts, VideoPackets
from ..frames.source import FrameSource, ReadOutcome
from ..metrics.plane_metrics import FrameMetrics
from ..report.record import FeatureFacts, ScoringRecord, given_flags
from ..storage.location import redact_url
from ..utils.sanitize import shell_line
from ..utils.version import __version__
from .options import Clips, ScoreOptions

ClipPackets = tuple[VideoPackets | None, VideoPackets | None]
"""The packets of the reference and of the distorted clip; see `FrameSource.packets`."""


def scoring_record(
    sources: tuple[FrameSource, FrameSource],
    clips: Clips,
    metrics: FrameMetrics,
    backend: str,
    options: ScoreOptions,
) -> ScoringRecord:
    """Return the record of two sources, reference first. `with_whole_clips` adds the facts that only reading shows."""
    info = sources[0].info
    features = tuple(
        FeatureFacts(scorer.name, plane.name, scorer.settings, scorer.automatic, scorer.limit_db)
        for plane in metrics.planes
        for scorer in plane.scorers
    )
    reference, distorted = (
        replace(source.clip_facts(), path=redact_url(path), resampler=source.info.resampler, cropped_to=source.info.own_crop)
        for source, path in zip(sources, clips.paths, strict=True)
    )
    record = ScoringRecord(
        version=__version__,
        command="",
        features=features,
        planes=options.planes,
        sync=options.sync,
        width=info.width,
        height=info.height,
        bits=info.bits,
        chroma=info.chroma if options.chroma else None,
        cropped_to=info.crop,
        selection=options.selection,
        pictures=options.pictures,
        raw=clips.raw,
        reference=reference,
        distorted=distorted,
    )
    texts = [scorer.text for scorer in metrics.planes[0].scorers]
    return replace(record, command=_command(record, texts, backend))


def with_whole_clips(
    record: ScoringRecord | None, packets: ClipPackets | None, ends: Sequence[ReadOutcome], shorter: str | None
) -> ScoringRecord | None:
    """Return the record completed after both clips were read to their ends; unchanged if `packets` are None.

    `packets` are the packets of both video streams. The number of frames is recorded only for clips that ended together. A
    device reads the longer clip some frames beyond the end of the shorter one, and this distance differs between devices.
    """
    if record is None or packets is None:
        return record
    frames = [end.found if shorter is None else None for end in ends]
    reference, distorted = map(_whole, (record.reference, record.distorted), packets, frames)
    return replace(record, reference=reference, distorted=distorted)


def merged_records(records: Sequence[ScoringRecord | None]) -> ScoringRecord | None:
    """Return one record for the ranges of a run, whose records differ only in the decoders of their machines."""
    known = [record for record in records if record is not None]
    if not known:
        return None
    reference, distorted = (
        replace(
            clips[0],
            decoder=_listed(clip.decoder for clip in clips),
            decoder_reason=_listed(clip.decoder_reason for clip in clips),
            decoder_version=_listed(clip.decoder_version for clip in clips),
        )
        for clips in ([record.reference for record in known], [record.distorted for record in known])
    )
    return replace(known[0], reference=reference, distorted=distorted)


def _listed(texts: Iterable[str | None]) -> str | None:
    return "; ".join(sorted({text for text in texts if text is not None})) or None


def _whole(clip: ClipFacts, packets: VideoPackets | None, frames: int | None) -> ClipFacts:
    frames = clip.frames if clip.frames is not None else frames
    duration, kbps = clip.duration, clip.kbps
    if packets is not None and packets.seconds is not None:
        duration, kbps = round(packets.seconds, 6), round(packets.bytes * 8 / packets.seconds / 1000, 3)
    elif duration is None and frames is not None and clip.fps is not None:
        duration = round(frames / clip.fps, 6)
    return replace(clip, frames=frames, duration=duration, kbps=kbps)


def _command(record: ScoringRecord, features: Sequence[str], backend: str) -> str:
    words = ["vkssim", "score", "-r", record.reference.path, "-d", record.distorted.path]
    for text in features:
        words += ["--feature", text]
    words += given_flags(record)
    for options in (record.selection, record.pictures, record.raw):
        words += given_flags(options)
    if backend != "vulkan":
        words += ["--backend", backend]
    return shell_line(words)
