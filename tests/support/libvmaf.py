"""Scores of libvmaf itself: the library in the FFmpeg of the package imageio-ffmpeg, which the tests install.

It is libvmaf 86da14d, built by GCC for x86-64, without fused multiply-add. `tests/test_libvmaf.py` checks that it gives the
scores in fixtures/, which another build of libvmaf wrote.

libvmaf's logs have six decimals, and 16 of numbers below 1e-6. A model that is one feature times `_MAGNIFIER` gives further
digits: its score in the log has 15 decimals of the feature. Terms of `enable_lcs` are no features, so that they have six.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import imageio_ffmpeg

from .commands import run_program
from .pictures import Picture

DEPTHS = (8, 10, 12, 16)
"""Bits of the samples that FFmpeg passes on to libvmaf without a conversion."""

Scores = dict[str, float | None]
"""The scores of a frame by name; None for a score that does not exist."""

_TIME_LIMIT_S = 120.0
_MAGNIFIER = 1e9


def libvmaf_scores(
    pairs: Sequence[tuple[Picture, Picture]], bits: int, features: Collection[str], scale: int = 0
) -> list[Scores]:
    """Return libvmaf's scores of pairs of one size, reference and distorted, with luminance, contrast and structure.

    `scale` is the option of float_ssim.
    """
    options = {feature: {"enable_lcs": True, **({"scale": scale} if feature == "float_ssim" else {})} for feature in features}
    return [_with_all_digits(scores) for scores in _scored(pairs, bits, options)]


def libvmaf_vif(pairs: Sequence[tuple[Picture, Picture]], bits: int, limit: int) -> list[Scores]:
    """Return libvmaf's vif of the four scales, from its vector code, with a limit of the gain."""
    features = {f"integer_vif_scale{scale}": f"VMAF_integer_feature_vif_scale{scale}_score" for scale in range(4)}
    return _integer_scores(pairs, bits, features, {"vif_enhn_gain_limit": limit})


def libvmaf_adm(pairs: Sequence[tuple[Picture, Picture]], bits: int, limit: int) -> list[Scores]:
    """Return libvmaf's adm2 and adm of the four scales, from its vector code, with a limit of the gain."""
    features = {"integer_adm2": "VMAF_integer_feature_adm2_score"}
    features |= {f"integer_adm_scale{scale}": f"integer_adm_scale{scale}" for scale in range(4)}
    return _integer_scores(pairs, bits, features, {"adm_enhn_gain_limit": limit})


def libvmaf_motion(references: Sequence[Picture], bits: int, options: Mapping[str, int]) -> list[Scores]:
    """Return libvmaf's motion2 and motion3 of each frame of a clip."""
    features = {f"integer_{output}": f"VMAF_integer_feature_{output}_score" for output in ("motion2", "motion3")}
    return _integer_scores([(picture, picture) for picture in references], bits, features, options)


def libvmaf_cambi(pairs: Sequence[tuple[Picture, Picture]], bits: int) -> list[Scores]:
    """Return libvmaf's cambi of the distorted pictures."""
    return _integer_scores(pairs, bits, {"cambi": "Cambi_feature_cambi_score"}, {})


def libvmaf_models(clip: Sequence[tuple[Picture, Picture]], bits: int, versions: Mapping[str, str]) -> list[Scores]:
    """Return the scores of models and of motion for each frame of a clip, in six decimals; `versions` are models by name."""
    frames = _scored(clip, bits, {}, versions)
    return [{name: frame[name] for name in (*versions, "integer_motion2")} for frame in frames]


def _integer_scores(
    pairs: Sequence[tuple[Picture, Picture]], bits: int, features: Mapping[str, str], options: Mapping[str, int]
) -> list[Scores]:
    """Return scores by name, of `features` by the names that models give them."""
    frames = _scored(pairs, bits, dict.fromkeys(features.values(), options))
    digits = [_with_all_digits(scores) for scores in frames]
    return [{name: scores[feature] for name, feature in features.items()} for scores in digits]


def _scored(
    pairs: Sequence[tuple[Picture, Picture]],
    bits: int,
    features: Mapping[str, Mapping[str, int]],
    versions: Mapping[str, str] = MappingProxyType({}),
) -> list[dict[str, float | None]]:
    """Return the frames of libvmaf's log for features with their options, and for its own models by name."""
    height, width = pairs[0][0].shape
    with tempfile.TemporaryDirectory(prefix="vkssim-libvmaf-") as name:
        folder = Path(name)
        for number, side in enumerate(("reference", "distorted")):
            _write(folder / f"{side}.yuv", [pair[number] for pair in pairs], bits)
        for feature, options in features.items():
            (folder / f"{feature}.json").write_text(json.dumps(_model(feature, options)), encoding="utf-8")

        pixels = "yuv420p" if bits == 8 else f"yuv420p{bits}le"
        raw = ("-f", "rawvideo", "-pix_fmt", pixels, "-s", f"{width}x{height}", "-i")
        models = "|".join(
            [f"path={feature}.json\\:name={feature}.digits" for feature in features]
            + [f"version={version}\\:name={name}" for name, version in versions.items()]
        )
        filters = f"[0:v][1:v]libvmaf=model='{models}':log_fmt=json:log_path=log.json"
        program = (imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", *raw, "distorted.yuv", *raw, "reference.yuv")
        process = run_program(*program, "-lavfi", filters, "-f", "null", "-", cwd=folder, text=True, time_limit_s=_TIME_LIMIT_S)
        assert process.returncode == 0, process.stderr
        log = json.loads((folder / "log.json").read_text(encoding="utf-8"))

    assert len(log["frames"]) == len(pairs), f"libvmaf scored {len(log['frames'])} of {len(pairs)} frames"
    return [frame["metrics"] for frame in log["frames"]]


def _write(path: Path, frames: Iterable[Picture], bits: int) -> None:
    """Write frames with empty chroma: libvmaf looks at the luma alone, and FFmpeg would convert grey pictures."""
    with path.open("wb") as file:
        for luma in frames:
            plane = luma.astype("u1" if bits == 8 else "<u2")
            file.write(plane.tobytes())
            height, width = plane.shape
            file.write(bytes(2 * -(-height // 2) * -(-width // 2) * plane.itemsize))


def _model(feature: str, options: Mapping[str, int]) -> dict[str, object]:
    """Return a model of libvmaf whose score is the feature times _MAGNIFIER: a linear one with a single support vector."""
    machine = ("svm_type nu_svr", "kernel_type linear", "nr_class 2", "total_sv 1", "rho 0", "SV", f"{_MAGNIFIER:.0f} 1:1", "")
    described = {
        "model_type": "LIBSVMNUSVR",
        "norm_type": "none",
        "feature_names": [feature],
        "feature_opts_dicts": [dict(options)],
        "model": "\n".join(machine),
    }
    return {"param_dict": {}, "model_dict": described}


def _with_all_digits(metrics: Scores) -> Scores:
    """Return the scores by name, with those of the models in place of the features that have six decimals."""
    digits = {name.removesuffix(".digits"): value for name, value in metrics.items() if name.endswith(".digits")}
    exact = {name: None if value is None else value / _MAGNIFIER for name, value in digits.items()}
    return {name: value for name, value in (metrics | exact).items() if not name.endswith(".digits")}
