"""Print what a shell needs to complete command lines: the command `vkssim completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from .command import Choice, make_command
from .main import main


@make_command("completion")
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script of a shell.

    For bash, put into ~/.bashrc: eval "$(vkssim completion bash)". For zsh the same with zsh into ~/.zshrc. For fish: vkssim
    completion fish > ~/.config/fish/completions/vkssim.fish
    """
    completion = get_completion_class(shell)
    assert completion is not None
    click.echo(completion(main, {}, "vkssim", "_VKSSIM_COMPLETE").source())
