"""List the Vulkan devices: the command `vkssim devices`."""

from __future__ import annotations

import click

from ..utils.sanitize import visible
from ..utils.sections import Section
from .command import make_command, option


@make_command("devices")
@option("--json", "as_json", section=Section.OUTPUTS, is_flag=True, help="Print JSON.")
def command(as_json: bool) -> None:
    """List the Vulkan devices, the preferred one first."""
    from ..host.devices import list_devices, no_device
    from ..host.instance import shared_instance

    found = list_devices(shared_instance())
    if not found:
        raise no_device()
    if as_json:
        import json

        keys = ("index", "name", "driver", "pci", "lacks")
        rows = [
            {**{key: getattr(device, key) for key in keys}, "kind": device.kind.name.lower(), "uuid": str(device.uuid)}
            for device in found
        ]
        click.echo(json.dumps(rows, indent=2))
        return
    for device in found:
        version = ".".join(map(str, device.api_version))
        kind = device.kind.name.lower()
        name, driver = visible(device.name), visible(device.driver)
        place = "" if device.pci is None else f", PCI {device.pci}"
        click.echo(f"{device.index}: {name} [{kind}] Vulkan {version}, {driver}, UUID {device.uuid}{place}")
        if device.lacks:
            click.echo(f"   cannot be used: lacks {', '.join(device.lacks)}")
