"""The picture of scripts/bench: how the time of a frame grows with its size, against the floor of its upload."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt

_LINES = {
    ("files", "the same"): ("raw files to scores", 1.0, "o-"),
    ("kernels", "all kernels"): ("kernels alone", 1e-3, "s--"),
    ("kernels", "upload"): ("upload alone", 1e-3, "^:"),
}


def draw(result: dict[str, Any], path: Path) -> None:
    """Draw milliseconds a frame over megapixels, one line for each kind of figure, depth and feature; write it to `path`."""
    figure, axes = plt.subplots(figsize=(8, 5), layout="constrained")
    series: dict[str, list[tuple[float, float]]] = {}
    styles: dict[str, str] = {}
    for row in result["figures"]:
        line = _LINES.get((row["section"], row["name"]))
        if line is None:
            continue
        name, factor, style = line
        batch = f", batch {row['batch']}" if row["section"] == "kernels" else ""
        label = f"{name}: {row['feature']}, {row['bits']} bit{batch}"
        width, height = map(int, row["size"].split("x"))
        series.setdefault(label, []).append((width * height / 1e6, row["value"] * factor))
        styles[label] = style
    for label, points in series.items():
        axes.plot(*zip(*sorted(points), strict=True), styles[label], label=label, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="megapixels a frame", ylabel="milliseconds a frame (pair)")
    axes.set_title(f"{result['device']}\n{result['driver']}; {result['host']}", fontsize=9)
    axes.grid(which="both", alpha=0.3)
    axes.legend(fontsize=7)
    figure.savefig(path, dpi=120)
    plt.close(figure)
