"""Find the command that `vkssim` is asked for, and turn errors into a message and an exit code."""

from __future__ import annotations

import logging
import os
import sys
from importlib import import_module
from types import TracebackType
from typing import Any

import click

from ..errors import HostMemoryError, InterruptedRunError, OutputError, VkssimError, exit_code, wants_memory
from ..host.errors import COMPILE_LOG
from ..utils.interruption import listening
from ..utils.sanitize import visible
from ..utils.version import __version__
from ..utils.wording import did_you_mean
from .command import SETTINGS, CommandWithExamples
from .output import COMPILE_NOTES, say

TRACEBACK_VARIABLE = "VKSSIM_TRACEBACK"
"""Set to 1, this environment variable shows where an unexpected error came from."""

_LISTINGS = ("devices", "features", "completion")
COMMANDS = (
    *("score", "report", "batch", "compare", "bd-rate", "correlate", "search", "ladder"),
    *("devices", "doctor", "features", "completion"),
)
"""The commands, as they are listed; each is `command` of the module of its name, with _ for -, or in `listings` by its name."""

_EXIT_CODES = (
    "Exit codes: 0 scored; 1 the scores fail a demand (--strict, --fail-under); 2 usage, input or output error; 3 no usable"
    " device; 130 interrupted by Ctrl-C, 143 by SIGTERM, 129 by SIGHUP (128 and the signal's number)."
)


class _Main(CommandWithExamples, click.Group):
    """A group of commands, each imported when it is used. No traceback reaches the user."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, name = ("listings", cmd_name) if cmd_name in _LISTINGS else (cmd_name.replace("-", "_"), "command")
        command: click.Command = getattr(import_module(f".{module}", __package__), name)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the line names. Raises click.UsageError, with the name that was probably meant."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            ctx.fail(f"No such command {name!r}{did_you_mean(name, COMMANDS)}.")
        return super().resolve_command(ctx, args)

    def main(self, *args: Any, **kwargs: Any) -> Any:
        if sys.stderr.isatty():
            COMPILE_LOG.addHandler(COMPILE_NOTES)
            COMPILE_LOG.setLevel(logging.INFO)
        with listening():
            try:
                return super().main(*args, **kwargs)
            except OutputError as error:  # printing the help failed, before any command was invoked
                sys.exit(_report(error))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except VkssimError as error:
            ctx.exit(_report(error))
        except click.UsageError as error:
            raise click.UsageError(visible(error.format_message(), lines=True), error.ctx) from None
        except (click.ClickException, click.exceptions.Exit):
            raise
        except MemoryError:
            ctx.exit(_report(HostMemoryError()))
        except KeyboardInterrupt as stop:
            say(stop if isinstance(stop, InterruptedRunError) else "interrupted")
            ctx.exit(exit_code(stop))
        except Exception as error:
            if wants_memory(error):
                ctx.exit(_report(HostMemoryError()))
            if os.environ.get(TRACEBACK_VARIABLE) == "1":
                sys.excepthook = _print_traceback
                raise
            report = f"please report it, with what it prints under {TRACEBACK_VARIABLE}=1"
            say(f"unexpected {type(error).__name__}: {error}. This is a fault of vkssim: {report}")
            ctx.exit(2)


def _report(error: VkssimError) -> int:
    """Say what went wrong, and return the exit code. A reader that leaves, as `head` does, has seen all that it wanted."""
    if not isinstance(error.__cause__, BrokenPipeError):
        say(error)
    return exit_code(error)


def _print_traceback(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    from traceback import format_exception

    click.echo(visible("".join(format_exception(kind, error, traceback)), lines=True), err=True, nl=False)


_EXAMPLES = """
    vkssim score reference.mp4 distorted.mp4
        Score every frame, and print the tables.
    vkssim search master.mov --encoder libx264 --target float_ms_ssim=0.98
        Find the cheapest setting of an encoder that is good enough.
"""


@click.group(cls=_Main, context_settings=SETTINGS, examples=_EXAMPLES, epilog=_EXIT_CODES)
@click.version_option(__version__, prog_name="vkssim")
def main() -> None:
    """Score videos with the VMAF, SSIM and MS-SSIM of libvmaf, on Vulkan."""
