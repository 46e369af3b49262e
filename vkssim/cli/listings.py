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
    """List the metrics and their options."""
    from ..metrics import FEATURES

    for feature in FEATURES.values():
        click.echo(feature.name)
        for name, declared in feature.options.items():
            default = str(declared.default).lower() if isinstance(declared.default, bool) else declared.default
            click.echo(f"   {name}={default}   {declared.help}")


@make_command(
    "completion",
    examples="""
        eval "$(vkssim completion bash)"
            Complete command lines in bash, as a line of ~/.bashrc.
        eval "$(vkssim completion zsh)"
            Complete command lines in zsh, as a line of ~/.zshrc.
        vkssim completion fish > ~/.config/fish/completions/vkssim.fish
            Complete command lines in fish, from now on.
    """,
)
@click.argument("shell", type=Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the completion script of a shell."""
    made = get_completion_class(shell)
    assert made is not None
    click.echo(made(main, {}, "vkssim", "_VKSSIM_COMPLETE").source())
