"""Offer a shell the values of options that it completes."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem


def features(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return metrics by name; after the name and `=`, and again after each `:`, return the options of that metric."""
    from ..features import FEATURES

    name, equals, options = incomplete.partition("=")
    if not equals:
        return [CompletionItem(known) for known in FEATURES if known.startswith(name)]
    if name not in FEATURES:
        return []
    given, colon, last = options.rpartition(":")
    before = f"{name}={given}{colon}"
    return [
        CompletionItem(f"{before}{option}=", help=known.summary)
        for option, known in FEATURES[name].options.items()
        if option.startswith(last)
    ]


def devices(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return devices by index, for a name may have blanks; return none if there is no Vulkan."""
    from ..errors import DeviceError
    from ..host.devices import list_devices
    from ..host.instance import shared_instance
    from ..utils.sanitize import visible

    try:
        found = list_devices(shared_instance())
    except DeviceError:
        return []
    named = {str(device.index): visible(device.name) for device in found}
    return [CompletionItem(index, help=name) for index, name in named.items() if index.startswith(incomplete)]
