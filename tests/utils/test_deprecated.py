"""Names of modules that the documentation had in an earlier version."""

from __future__ import annotations

import warnings
from importlib import import_module
from pathlib import Path

import pytest

from vkssim import PictureOptions, RawDescription, Selection, score_files

from ..support.clips import write, y4m_bytes
from ..support.pictures import clip

MOVED = [
    ("vkssim.worst", "worst_frames", "vkssim.report.worst"),
    ("vkssim.report.page", "render_page", "vkssim.page.render"),
    ("vkssim.report.page.pictures", "worst_frames", "vkssim.page.pictures"),
]


@pytest.mark.parametrize(("old", "name", "new"), MOVED)
def test_an_old_name_leads_to_the_new_one(old: str, name: str, new: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} is in {new}"):
        found = getattr(import_module(old), name)
    assert found is getattr(import_module(new), name)


def test_what_was_never_there_is_not_there() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        import_module("vkssim.worst").nothing  # noqa: B018 - the attribute itself is asked for


def test_a_journal_opened_the_old_way_still_keeps_a_run(tmp_path: Path) -> None:
    luma = clip(4)
    paths = write(tmp_path / "ref.y4m", y4m_bytes(luma)), write(tmp_path / "dis.y4m", y4m_bytes(luma // 16 * 16))
    how = {"features": ["float_ssim=scale=1"], "planes": "y", "raw": RawDescription(), "selection": Selection(count=3)}
    how |= {"sync": "index", "pictures": PictureOptions()}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        module = import_module("vkssim.frame_journal")
        identity = module.run_identity(*paths, **how)
        with module.FrameJournal(tmp_path / "scores.journal", identity, resume=True, tell=print) as journal:
            report = score_files(*paths, **how, backend="cpu", journal=journal)  # type: ignore[arg-type]
            journal.settle([])
    assert len(report.frames) == 3
    assert [str(warning.message).split(" ")[0] for warning in told] == ["run_identity", "FrameJournal", "journal="]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dis.y4m", "ref.y4m"]
