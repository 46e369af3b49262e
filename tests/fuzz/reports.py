"""Fuzz reports in JSON: read them, write them in every form, compare them and print them."""

from __future__ import annotations

from vkssim.ladder.compare import DropLimit, compare_reports, evaluate
from vkssim.report import WRITERS, render
from vkssim.report.reading import read_report

from .harness import Choices, command, refusals, scratch


def one_input(data: bytes) -> None:
    """Read a report and do all that is done to one."""
    choices = Choices(data)
    shown = choices.pick([False, False, False, True])
    path = scratch("report.json", choices.rest())
    with refusals():
        report = read_report(path)
        for form in WRITERS:
            render(report, form, choices.pick(["6", "max", "0"]))
        thresholds = [
            DropLimit.parse("float_ssim=0.1"),
            DropLimit.parse("float_ssim:p5=0.1"),
            DropLimit.parse("float_ssim=0", frame=True),
        ]
        evaluate(compare_reports(report, report), thresholds)
    if shown:
        command("report", str(path), "-o", "page.html", "--worst", "1", "--backend", "cpu")
        command("compare", str(path), str(path), "--json")
