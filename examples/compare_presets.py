#!/usr/bin/env python3
"""Compare two presets of x264 on a few clips, as an engineer judges a new preset, from an empty folder.

Cuts clips out of a longer one, encodes each with both presets at several CRFs, and runs the commands of the judgement, which it
prints: `vkssim batch` scores all pairs and makes the page, `vkssim bd-rate` says how much bit rate the second preset saves and
is a gate, and `vkssim compare` compares a later build of the encoder with the first, here one with a weaker search. Needs the
extra [report].
"""

from __future__ import annotations

import csv
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

import av
import click

CLIP = Path(__file__).resolve().parent.parent / "fixtures" / "bbb_576x324_ref.mp4"
"""The clip that all clips are cut from by default."""

WEAKER = {"x264-params": "subme=0:trellis=0"}
"""Options that stand for a build of the encoder that became worse."""


@click.command(help=__doc__)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--clip", type=click.Path(path_type=Path, exists=True), default=CLIP, help="Cut the clips out of that one.")
@click.option("--clips", type=click.IntRange(1), default=3, show_default=True, help="Cut that many clips.")
@click.option("--frames", type=click.IntRange(1), default=16, show_default=True, help="Let each clip have that many frames.")
@click.option("--height", type=click.IntRange(2), default=180, show_default=True, help="Scale the clips to that height.")
@click.option("--preset", "presets", nargs=2, default=("veryfast", "slow"), show_default=True, help="Compare these presets.")
@click.option(
    "--crf", "crfs", type=int, multiple=True, default=(22, 27, 32, 37), show_default=True, help="Encode with that CRF."
)
@click.option("--score", "how", default="", help="Further options of `vkssim batch`, quoted as in a shell.")
def main(
    folder: Path, clip: Path, clips: int, frames: int, height: int, presets: tuple[str, str], crfs: Sequence[int], how: str
) -> None:
    """Run the whole judgement in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    rows, later = [], []
    for number, pictures in enumerate(cut_clips(clip, clips, frames, height)):
        reference = f"clip{number}.mkv"
        encode(folder / reference, pictures, "ffv1")
        for preset in presets:
            for crf in crfs:
                row = {
                    "reference": reference,
                    "distorted": f"clip{number}_{preset}_{crf}.mp4",
                    "preset": preset,
                    "crf": str(crf),
                }
                encode(folder / row["distorted"], pictures, "libx264", preset=preset, crf=row["crf"])
                rows.append(row)
                later.append({**row, "distorted": f"later_{row['distorted']}"})
                encode(folder / later[-1]["distorted"], pictures, "libx264", preset=preset, crf=row["crf"], **WEAKER)
    write_manifest(folder / "ladder.csv", rows)
    write_manifest(folder / "later.csv", later)

    options = ["-q", *shlex.split(how)]
    ladders = ["--anchor", f"preset={presets[0]}", "--test", f"preset={presets[1]}"]
    vkssim(folder, "batch", "ladder.csv", "-o", "scores.parquet", "--frames", "frames", "--html", "page.html", *options)
    vkssim(folder, "bd-rate", "scores.parquet", *ladders, "--fail-over", "2")
    vkssim(folder, "batch", "later.csv", "-o", "later.parquet", "--frames", "later_frames", *options)
    limits = ["--max-drop", "float_ssim=0.002", "--max-frame-drop", "float_ssim=0.01"]
    vkssim(folder, "compare", "scores.parquet", "later.parquet", *limits)


def cut_clips(path: Path, clips: int, frames: int, height: int) -> Iterator[list[av.VideoFrame]]:
    """Yield clips of `frames` frames, evenly spread over a longer one and scaled to a height, as 8-bit 4:2:0."""
    with av.open(str(path)) as container:
        whole = list(container.decode(video=0))
    width = 2 * round(height * whole[0].width / whole[0].height / 2)
    for number in range(clips):
        first = (len(whole) - frames) * number // max(1, clips - 1)
        yield [frame.reformat(width, height, "yuv420p") for frame in whole[max(0, first) :][:frames]]


def encode(path: Path, pictures: Sequence[av.VideoFrame], codec: str, **options: str) -> None:
    """Write a clip of 25 frames a second."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=Fraction(25), options=options)
        stream.width, stream.height, stream.pix_fmt = pictures[0].width, pictures[0].height, "yuv420p"
        for number, picture in enumerate(pictures):
            picture.pts, picture.time_base = number, Fraction(1, 25)
            container.mux(stream.encode(picture))
        container.mux(stream.encode())


def write_manifest(path: Path, rows: Sequence[Mapping[str, str]]) -> None:
    """Write the manifest of a batch."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def vkssim(folder: Path, *words: str) -> None:
    """Print a command, run it in the folder, and print its exit code; 1 is a failed gate, higher ones end the script."""
    click.echo(f"$ vkssim {shlex.join(words)}")
    code = subprocess.run([sys.executable, "-m", "vkssim", *words], cwd=folder, check=False).returncode
    click.echo(f"exit code {code}\n")
    if code > 1:
        sys.exit(code)


if __name__ == "__main__":
    main()
