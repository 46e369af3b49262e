"""Accept flags of libvmaf's tool `vmaf` that have no effect here, so that its command lines can be taken over."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..errors import OptionError
from ..utils.sections import Section
from ..utils.version import __version__
from .command import CommandOption, add_options

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


_IGNORED: dict[str, Any] = {"section": Section.LIBVMAF, "help": "Accepted; it changes nothing.", "expose_value": False}
_REFUSAL: dict[str, Any] = {"section": Section.LIBVMAF, "help": "Refused: there is no VMAF here.", "expose_value": False}
_FLAGS = add_options(
    CommandOption("-n --no_prediction", is_flag=True, **_IGNORED),
    *(CommandOption(name, metavar="N", **_IGNORED) for name in reversed(_WITHOUT_EFFECT)),
    *(
        CommandOption(names, multiple=True, callback=_refuse, metavar="NAME", **_REFUSAL)
        for names in ("-m --model", "--aom_ctc", "--nflx_ctc")
    ),
)


def vmaf_flags(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a decorator that adds the flags to a command, which gets none of their values."""
    return click.version_option(__version__, "-v", "--version", prog_name="vkssim", hidden=True)(_FLAGS(function))
