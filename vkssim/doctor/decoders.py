"""List FFmpeg's decoders, and the codecs that the driver of an NVIDIA GPU decodes."""

from __future__ import annotations

import uuid
from dataclasses import asdict, dataclass, field
from functools import partial

from av.codec import Codec
from av.codec.codec import UnknownCodecError

from ..backends.cuda import ask, cuda_of
from ..frames.decode.hardware import EXACT, FORMATS, offered
from ..host.devices import NVIDIA
from .findings import DiagnosisSection, Finding, Level
from .in_subprocess import Send, run_in_process
from .survey import Survey

_ENGINES_TIMEOUT_S = 30.0  # in which NVIDIA's driver may say which codecs it decodes
_SOFTWARE = {
    "H.264": ("h264",),
    "HEVC": ("hevc",),
    "VP8": ("vp8",),
    "VP9": ("vp9",),
    "AV1": ("libdav1d", "libaom-av1"),  # FFmpeg's own decoder of AV1 decodes on hardware alone
    "MPEG-2": ("mpeg2video",),
    "ProRes": ("prores",),
    "FFV1": ("ffv1",),
    "Motion JPEG": ("mjpeg",),
}
"""FFmpeg's software decoders of usual codecs, the preferred one first."""


@dataclass
class Engines:
    """The answers of NVIDIA's driver, one for each codec and depth, such as "up to 8192x8192, 7 engines", or a failure."""

    answers: dict[str, str] = field(default_factory=dict)
    failure: str | None = None


def _has(name: str) -> bool:
    try:
        Codec(name, "r")
    except UnknownCodecError:
        return False
    return True


def ask_engines(survey: Survey) -> Engines | None:
    """Return the driver's answers about the first NVIDIA GPU that Vulkan lists; None if there is none."""
    gpu = next((device for device in survey.devices if device.vendor_id == NVIDIA), None)
    if gpu is None:
        return None
    engines = Engines()
    engines.failure = run_in_process(send_answers, (str(gpu.uuid),), _ENGINES_TIMEOUT_S, partial(setattr, engines))
    return engines


def send_answers(send: Send, gpu: str) -> None:
    """Send the driver's answer about each codec, as the work of a process of its own. Raises DeviceError without CUDA."""
    cuda = cuda_of(uuid.UUID(gpu))
    answers = {}
    for codec, title in EXACT.items():
        for bits in FORMATS:
            answer = ask(cuda, codec, "420", bits)
            if answer is None:
                text = "the driver does not say"
            elif not answer.is_supported:
                text = "no"
            else:
                text = f"up to {answer.most_width}x{answer.most_height}, engines: {answer.engines}"
            answers[f"{title} {bits} bit"] = text
            send("answers", answers)


def decoders_section(survey: Survey, engines: Engines | None) -> DiagnosisSection:
    """Return the findings about decoders."""
    software = {codec: next(filter(_has, names), None) for codec, names in _SOFTWARE.items()}
    hardware = sorted(offered())
    present = [codec for codec, name in software.items() if name is not None]
    missing = [codec for codec, name in software.items() if name is None]
    findings = [Finding(Level.OK, f"FFmpeg decodes on the CPU: {', '.join(present)}")]
    if missing:
        text = f"FFmpeg was built without decoders of {', '.join(missing)}"
        findings.append(Finding(Level.WARNING, text, "pip install --force-reinstall av installs PyAV with its own FFmpeg"))
    text = "FFmpeg was built without hardware decoders"
    if hardware:
        names = ", ".join(hardware)
        text = f"FFmpeg was built with the hardware decoders {names}; `--decode` shows whether the GPU has one of them"
    findings.append(Finding(Level.NOTE, text))
    if engines is not None:
        findings += _engines(engines)
    facts = {"software": software, "hardware": hardware, "nvdec": None if engines is None else asdict(engines)}
    return DiagnosisSection("decoders", "Decoders", findings, facts)


def _engines(engines: Engines) -> list[Finding]:
    if engines.failure is not None:
        advice = "pip install 'vkssim[cuda]'" if "cuda-bindings" in engines.failure else None
        return [Finding(Level.NOTE, f"NVIDIA's video engines cannot be asked: {engines.failure}", advice)]
    listed = "; ".join(f"{codec}: {text}" for codec, text in engines.answers.items())
    return [Finding(Level.OK, f"NVIDIA's video engines decode {listed}")]
