"""Small ladders: clips encoded by PyAV, manifests, and results to reckon with."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import av
import numpy as np

from vkssim.ladder.tables import read_table, render_rows

from ..support.children import in_child
from ..support.pictures import Picture, clip

RATE = Fraction(25)


_encoded: dict[tuple[object, ...], bytes] = {}
"""The files of earlier calls of `encode`: many tests have the same ladder, and an encoder needs a process."""


def encode(path: Path, luma: Picture, codec: str = "libx264", rate: Fraction = RATE, /, **options: str) -> str:
    """A clip with flat chroma; returns its name."""
    pictures = luma.shape, luma.dtype.str, hashlib.sha256(luma.tobytes()).digest()
    call = (*pictures, path.suffix, codec, rate, *sorted(options.items()))
    if call in _encoded:
        path.write_bytes(_encoded[call])
    else:
        _encode(path, luma, codec, rate, options)
        _encoded[call] = path.read_bytes()
    return path.name


@in_child
def _encode(path: Path, luma: Picture, codec: str, rate: Fraction, options: dict[str, str]) -> None:
    height, width = luma.shape[1:]
    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate, options=options)
        assert isinstance(stream, av.VideoStream)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        chroma = np.full((height // 2, width), 128, np.uint8)
        for picture in luma:
            frame = av.VideoFrame.from_ndarray(np.concatenate([picture, chroma]), format="yuv420p")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def lossless(path: Path, luma: Picture) -> str:
    """A clip that decodes to these very samples."""
    return encode(path, luma, "ffv1")


def ladder(folder: Path, name: str = "clip", crfs: Sequence[int] = (20, 30, 40), frames: int = 6, seed: int = 0) -> list[Any]:
    """A reference and renditions of it at some qualities; rows of a manifest, with a label `crf`.

    They are MPEG-4, which needs no process, at the quantiser that has the same share of the scale as the CRF.
    """
    luma = clip(frames, 64, 96, seed=seed)
    rows: list[Any] = [{"reference": lossless(folder / f"{name}.mkv", luma), "crf": crf} for crf in crfs]
    for row in rows:
        quantiser = str(row["crf"] * 31 // 51)
        row["distorted"] = encode(folder / f"{name}_{row['crf']}.mp4", luma, "mpeg4", qmin=quantiser, qmax=quantiser)
    return rows


def manifest(path: Path, rows: Sequence[Mapping[str, Any]]) -> str:
    """A CSV file with these rows; returns its name."""
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return str(path)


def scored_otherwise(results: Path, path: Path, change: Callable[[dict[str, Any]], None], rows: slice) -> str:
    """Write results in which some of the rows state that they were scored in another way; return their name."""
    table = read_table(results)
    for row in table[rows]:
        scoring = json.loads(row["scoring"])
        change(scoring)
        row["scoring"] = json.dumps(scoring)
    path.write_bytes(render_rows(table, ".csv"))
    return str(path)
