"""Results, CSV, JSON lines and Parquet, and what the commands make of them."""

from __future__ import annotations

from .harness import Choices, command, scratch


def one_input(data: bytes) -> None:
    """Bjøntegaard deltas and correlations of a table."""
    choices = Choices(data)
    path = str(scratch(f"results.{choices.pick(['csv', 'jsonl', 'parquet'])}", choices.rest()))
    words = choices.pick(
        [
            ("bd-rate", path, "--anchor", "codec=x264", "--test", "codec=x265"),
            ("correlate", path, "--json"),
            ("bd-rate", path, "--anchor", "codec=x264", "--test", "codec=x265", "--db", "--json", "--method", "cubic"),
            ("correlate", path, "--csv"),
        ]
    )
    command(*words)
