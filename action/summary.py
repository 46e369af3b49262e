"""Write the summary of a job in Markdown: the verdict, the messages of vkssim and the scores. `action/score` runs it."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

POOLINGS = ("mean", "p5", "min")
VERDICTS = {"0": "passed", "1": "failed"}
MAX_ROWS = 100
ESCAPED = str.maketrans({**{mark: f"\\{mark}" for mark in "\\`*_|[]#"}, **{mark: f"&#{ord(mark)};" for mark in "<>&"}})
END = "_harmonic_mean"  # the column by which the scores of results are found


def main(scores: Path, messages: Path, code: str) -> None:
    """Print the summary. `scores` may be missing if nothing could be scored."""
    print(f"### vkssim-gate {VERDICTS.get(code, 'could not score')}\n")
    for line in messages.read_text(encoding="utf-8", errors="replace").splitlines():
        print(f"- {escape(line.removeprefix('vkssim: '))}")
    rows = read_rows(scores) if scores.exists() else []
    if rows:
        print("\n| " + " | ".join(map(escape, rows[0])) + " |")
        print("|" + "---|" * len(rows[0]))
        for row in rows[:MAX_ROWS]:
            print("| " + " | ".join(map(escape, row.values())) + " |")
    if len(rows) > MAX_ROWS:
        print(f"\n{len(rows) - MAX_ROWS} more are in the artifact.")


def read_rows(path: Path) -> list[dict[str, str]]:
    """Return a row for each clip, or for each score of a single clip, with its pooled values."""
    if path.suffix == ".json":
        pooled = json.loads(path.read_text(encoding="utf-8"))["pooled_metrics"]
        return [
            {"score": name, **{pooling: number(values[pooling]) for pooling in POOLINGS}} for name, values in pooled.items()
        ]
    with path.open(encoding="utf-8", newline="") as file:
        results = list(csv.DictReader(file))
    names = [name.removesuffix(END) for name in results[0] if name.endswith(END)]
    columns = {f"{name} {pooling}": f"{name}_{pooling}" for name in names for pooling in POOLINGS}
    return [
        {"clip": row["distorted"].removeprefix("'"), **{head: number(row[column]) for head, column in columns.items()}}
        for row in results
    ]


def number(value: float | str | None) -> str:
    """Return a score with six decimals, or a dash if there is none."""
    return "–" if value in (None, "") else f"{float(value):.6f}"


def escape(text: str) -> str:
    """Return a text in a line, in which Markdown and HTML find nothing of theirs."""
    return " ".join(text.split()).translate(ESCAPED)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3])
