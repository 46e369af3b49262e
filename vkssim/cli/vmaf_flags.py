"""Accept flags of libvmaf's tool `vmaf` that have no effect here, so that its command lines can be taken over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..errors import OptionError
from ..utils.sections import Section
from ..utils.version import __version__
from .command import option

_WITHOUT_EFFECT = ("--threads", "--cpumask", "--gpumask")
_REFUSED = {
    "model": "vkssim gives no VMAF. Leave --model out; the metrics are chosen by --feature",
    "aom_ctc": "vkssim gives SSIM, MS-SSIM and the PSNR of luma alone. What that preset asks of them is"
    " --feature float_ssim=enable_db=true:clip_db=true --feature float_ms_ssim=enable_db=true:clip_db=true",
    "nflx_ctc": "vkssim gives SSIM, MS-SSIM and the PSNR of luma alone. What that preset asks of them is"
    " --feature float_ssim=enable_db=true:clip_db=true",
}


def _refuse(context: click.Context, parameter: click.Parameter, value: Any) -> None:
    if value:
        flag = "--" + str(parameter.name)
        raise OptionError(f"{flag} {value[0]}: {_REFUSED[str(parameter.name)]}")


def vmaf_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that adds the flags to a command, which gets none of their values."""
    ignored = "Accepted; it changes nothing."
    refused: dict[str, Any] = {"multiple": True, "callback": _refuse, "metavar": "NAME", "expose_value": False}
    for names in ("--nflx_ctc", "--aom_ctc", "-m --model"):
        function = option(names, Section.LIBVMAF, "Refused: there is no VMAF here.", **refused)(function)
    for name in _WITHOUT_EFFECT:
        function = option(name, Section.LIBVMAF, ignored, metavar="N", expose_value=False)(function)
    function = option("-n --no_prediction", Section.LIBVMAF, ignored, is_flag=True, expose_value=False)(function)
    return click.version_option(__version__, "-v", "--version", prog_name="vkssim", hidden=True)(function)
