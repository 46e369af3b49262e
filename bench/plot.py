"""The picture of scripts/bench: how the time of a frame grows with size and depth and shrinks with the batch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

_KINDS = {
    ("files", "the same"): ("raw files to scores", 1.0, "o-"),
    ("kernels", "all kernels"): ("kernels alone", 1e-3, "s--"),
    ("kernels", "upload"): ("upload alone: the floor by bytes", 1e-3, "^:"),
}
_SOFTWARE = "llvmpipe"  # nothing is uploaded there


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw to `path` how the time of a frame grows with its size, and how it shrinks with the batch."""
    figure, (by_size, by_batch) = plt.subplots(1, 2, figsize=(12, 5), layout="constrained", width_ratios=(3, 2))
    _draw_sizes(result, by_size)
    _draw_batches(result, by_batch)
    figure.suptitle(f"{result['device']}, {result['driver']}; {result['host']}", fontsize=10)
    figure.savefig(path, dpi=100)
    plt.close(figure)


def _draw_sizes(result: dict[str, Any], axes: Any) -> None:
    """Milliseconds over megapixels: a colour for each feature and depth, a line style for each kind; of batches the largest."""
    points: dict[tuple[str, str], dict[str, tuple[int, float]]] = {}
    styles: dict[str, str] = {}
    for row in result["figures"]:
        kind = _KINDS.get((row["section"], row["name"]))
        if kind is None or (row["name"] == "upload" and _SOFTWARE in result["device"]):
            continue
        name, factor, styles[name] = kind[0], kind[1], kind[2]
        line = points.setdefault((f"{row['feature']}, {row['bits']} bit", name), {})
        batch = row.get("batch", 0)
        if batch >= line.get(row["size"], (0, 0.0))[0]:
            line[row["size"]] = batch, row["value"] * factor
    colours = {subject: f"C{number}" for number, subject in enumerate(dict.fromkeys(subject for subject, _ in points))}
    for (subject, name), line in points.items():
        curve = sorted((_megapixels(size), value) for size, (_, value) in line.items())
        style = {"color": colours[subject], "label": f"{subject}: {name}", "markersize": 4}
        axes.plot(*zip(*curve, strict=True), styles[name], **style)
    sizes = sorted({size for line in points.values() for size in line}, key=_megapixels)
    axes.set(xscale="log", yscale="log", xlabel="size of a frame", ylabel="milliseconds a pair of frames")
    axes.set_xticks([_megapixels(size) for size in sizes], sizes)
    axes.set_xticks([], minor=True)
    _finish(axes)


def _draw_batches(result: dict[str, Any], axes: Any) -> None:
    """Microseconds of the kernels a megapixel, over the frames of a submission."""
    lines: dict[str, list[tuple[int, float]]] = {}
    for row in result["figures"]:
        if (row["section"], row["name"]) == ("kernels", "all kernels"):
            label = f"{row['size']}, {row['bits']} bit"
            lines.setdefault(label, []).append((row["batch"], row["value"] / _megapixels(row["size"])))
    for label, points in lines.items():
        axes.plot(*zip(*sorted(points), strict=True), "s--", label=label, markersize=4)
    batches = sorted({batch for points in lines.values() for batch, _ in points})
    axes.set(xscale="log", xlabel="frames of a submission", ylabel="microseconds of kernels a megapixel", ylim=(0, None))
    axes.set_xticks(batches, [str(batch) for batch in batches])
    axes.set_xticks([], minor=True)
    _finish(axes)


def _finish(axes: Any) -> None:
    axes.grid(which="both", alpha=0.3)
    if axes.get_legend_handles_labels()[0]:
        axes.legend(fontsize=7)


def _megapixels(size: str) -> float:
    width, height = map(int, size.split("x"))
    return width * height / 1e6
