"""The exit codes of scripts that compare numbers."""

from __future__ import annotations

import sys
import traceback
from typing import NoReturn

import click

from vkssim import VkssimError

AGREE, MISMATCH, COULD_NOT_RUN = 0, 1, 2


def end(command: click.Command, name: str) -> NoReturn:
    """Run a command and exit with the code that it returns, or with COULD_NOT_RUN and a message after an error.

    Click itself exits with 1 after some errors, but 1 must only mean a mismatch.
    """
    try:
        sys.exit(command.main(standalone_mode=False))
    except click.ClickException as error:
        error.show()
    except VkssimError as error:
        click.echo(f"{name}: {error}", err=True)
    except (click.Abort, KeyboardInterrupt):
        click.echo(f"{name}: interrupted", err=True)
    except Exception:
        traceback.print_exc()
    sys.exit(COULD_NOT_RUN)
