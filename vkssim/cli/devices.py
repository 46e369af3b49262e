"""List the Vulkan devices: the command `vkssim devices`."""

from __future__ import annotations

from ..utils.choices import Section
from .command import make_command, option
from .output import print_text


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
        print_text(json.dumps(rows, indent=2) + "\n")
        return
    for device in found:
        version = ".".join(map(str, device.api_version))
        kind = device.kind.name.lower()
        place = "" if device.pci is None else f", PCI {device.pci}"
        text = f"{device.index}: {device.name} [{kind}] Vulkan {version}, {device.driver}, UUID {device.uuid}{place}\n"
        if device.lacks:
            text += f"   cannot be used: lacks {', '.join(device.lacks)}\n"
        print_text(text)
