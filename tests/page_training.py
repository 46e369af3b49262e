"""The training loop of docs/loss.md, run by two processes as its page says.

`ci/docs` runs this file.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from .support.commands import run_program

PAGE = Path(__file__).resolve().parents[1] / "docs" / "loss.md"


def test_the_loop_of_the_page_trains(tmp_path: Path) -> None:
    """The processes end with their devices still open."""
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    script = tmp_path / "train.py"
    script.write_text(found[1], encoding="utf-8")
    # In place of --standalone, which wants a machine that knows the name localhost.
    here = ("--rdzv-backend", "c10d", "--rdzv-endpoint", "127.0.0.1:0", "--local-addr", "127.0.0.1")
    run = ("-m", "torch.distributed.run", *here, "--nproc-per-node", "2")
    process = run_program(sys.executable, *run, str(script), cwd=tmp_path, text=True)
    assert process.returncode == 0, process.stderr
    losses = [float(text) for text in re.findall(r"^epoch \d: loss (\S+)$", process.stdout, re.MULTILINE)]
    assert len(losses) == 3
    assert 0 < losses[2] < losses[0] < 1
