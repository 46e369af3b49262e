"""List what there is: the commands `vkssim devices`, `vkssim features` and `vkssim completion`."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from ..utils.values import Section
from .command import Choice, make_command, option
from .main import main
from .output import json_text, print_text


@make_command("devices")
@option("--json as_json", Section.OUTPUTS, "Print JSON.", is_flag=True)
def devices(as_json: bool) -> None:
    """List the Vulkan devices, the preferred one first."""
    from ..host.devices import list_devices, no_device
    from ..host.instance import shared_instance

    available = list_devices(shared_instance())
    if not available:
        raise no_device()
    if as_json:
        keys = ("index", "name", "driver", "pci", "lacks")
        rows = [
            {**{key: getattr(device, key) for key in keys}, "kind": device.kind.name.lower(), "uuid": str(device.uuid)}
            for device in available
        ]
        print_text(json_text(rows))
        return
    for device in available:
        version = ".".join(map(str, device.api_version))
        kind = device.kind.name.lower()
        place = "" if device.pci is None else f", PCI {device.pci}"
        text = f"{device.index}: {device.name} [{kind}] Vulkan {version}, {device.driver}, UUID {device.uuid}{place}\n"
        if device.lacks:
            text += f"   cannot be used: lacks {', '.join(device.lacks)}\n"
        print_text(text)


@make_command("features")
def features() -> None:
    """List the metrics and their options, each with its default."""
    from ..metrics import FEATURES
    from ..metrics.options import option_text

    rows = []
    for feature in FEATURES.values():
        rows += [(feature.name, "")]
        rows += [(f"   {name}={option_text(declared.default)}", declared.help) for name, declared in feature.options.items()]
    formatter = click.get_current_context().make_formatter()
    formatter.write_dl(rows)
    print_text(formatter.getvalue())


@make_command(
    "completion",
    examples="""
        eval "$(vkssim completion bash)"
            Complete command lines in bash, as a line of ~/.bashrc.
        eval "$(vkssim completion zsh)"
            Complete command lines in zsh, as a line of ~/.zshrc.
        mkdir -p ~/.config/fish/completions && vkssim completion fish > ~/.config/fish/completions/vkssim.fish
            Complete command lines in fish, from now on.
    """,
)
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    made = get_completion_class(shell)
    assert made is not None
    script = made(main, {}, "vkssim", "_VKSSIM_COMPLETE").source()
    if shell == "zsh":  # its completion is off until compinit runs, which the ~/.zshrc of a fresh account does not
        head, _, rest = script.lstrip().partition("\n")
        script = f"{head}\n(( $+functions[compdef] )) || {{ autoload -Uz compinit && compinit }}\n{rest}"
    click.echo(script)
