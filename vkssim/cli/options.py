"""Options that commands share, in groups: a command gets each group as one argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from ..frames.options import PictureOptions, RawDescription, Selection
from ..utils.choices import BACKEND, DECODE, ENGINE, PLANE_CHOICE, SYNC
from ..utils.values import Section, Value, values_of
from .command import Choice, Decorator, add_options, option

if TYPE_CHECKING:
    from ..engine.options import ScoreOptions


def option_group(name: str, make: Callable[..., Any], *options: Decorator) -> Decorator:
    """Return a decorator that adds options to a command, which gets `name=make(**values)` in place of the values."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def command(**values: Any) -> Any:
            return function(**{name: make(**{str(key): values.pop(key) for key in keys})}, **values)

        before = len(getattr(command, "__click_params__", ()))
        made = add_options(*options)(command)
        keys = [option.name for option in made.__click_params__[before:]]  # type: ignore[attr-defined]
        return made

    return decorate


def declared_options(name: str, kind: type[Any]) -> Decorator:
    """Return a decorator that adds the options that a dataclass declares to a command, which gets them as `name=kind(...)`."""
    declared = values_of(kind).values()
    numbers = {entry.name for entry in declared if entry.types == (int,)}

    def make(**values: Any) -> Any:
        """Return the options. From choices of numbers, click makes texts."""
        return kind(**{key: int(value) if key in numbers and value is not None else value for key, value in values.items()})

    return option_group(name, make, *map(flag_of, sorted(declared, key=lambda entry: entry.rank)))


def flag_of(entry: Value) -> Decorator:
    """Return a decorator that adds a declared option to a command."""
    kind: dict[str, Any] = {}
    if entry.types == (bool,):
        kind = {"is_flag": True}
    elif entry.choices and entry.metavar is None:
        kind = {"type": Choice([str(choice) for choice in entry.choices])}
    elif entry.types == (int,):
        kind = {"type": int if entry.minimum is None else click.IntRange(entry.minimum), "metavar": "N"}
    if entry.metavar is not None:
        kind["metavar"] = entry.metavar
    names = " ".join([*entry.flags, entry.name])
    return option(names, entry.section, entry.help, default=entry.default, show_default=entry.shows_default, **kind)


def single_device(selector: dict[str, Any]) -> dict[str, Any]:
    """Return the values of `backend_options` with the first device alone if they name several."""
    from ..engine.pools import chosen_devices

    several = chosen_devices(**selector)
    return selector | {"device": str(several[0].uuid)} if several else selector


def score_options(values: dict[str, Any], backend: str) -> ScoreOptions:
    """Take the values of the options that scores depend on out of those of a command, and return them as one."""
    from ..engine.options import ScoreOptions

    names = ("features", "planes", "selection", "sync", "pictures", "strict", "decode")
    return ScoreOptions(**{name: values.pop(name) for name in names if name in values}, backend=backend)


def complete_features(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return metrics by name; after the name and `=`, and again after each `:`, return the options of that metric."""
    from ..metrics import FEATURES

    name, equals, options = incomplete.partition("=")
    if not equals:
        return [CompletionItem(feature) for feature in FEATURES if feature.startswith(name)]
    if name not in FEATURES:
        return []
    given, colon, last = options.rpartition(":")
    before = f"{name}={given}{colon}"
    return [
        CompletionItem(f"{before}{option}=", help=declared.help)
        for option, declared in FEATURES[name].options.items()
        if option.startswith(last)
    ]


def complete_devices(_context: click.Context, _parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return devices by index, for a name may have blanks; return none if there is no Vulkan."""
    from ..errors import DeviceError
    from ..host.devices import list_devices
    from ..host.instance import shared_instance
    from ..utils.sanitize import visible

    try:
        devices = list_devices(shared_instance())
    except DeviceError:
        return []
    named = {str(device.index): visible(device.name) for device in devices}
    return [CompletionItem(index, help=name) for index, name in named.items() if index.startswith(incomplete)]


raw_options = declared_options("raw", RawDescription)
selection_options = declared_options("selection", Selection)
picture_options = declared_options("pictures", PictureOptions)

sync_option = flag_of(SYNC)
find_offset_option = option(
    "--find-offset",
    Section.FRAMES,
    "Find the offset at which both clips show the same, within 120 frames of --offset, and compare with that.",
    is_flag=True,
)
pooling_option = option(
    "--pooling",
    Section.METRICS,
    "Use that pooled value of each clip: mean, harmonic_mean, min, p5 and so on.",
    default="mean",
    metavar="NAME",
)


def fail_under_option(does: str) -> Decorator:
    """Return a decorator that adds the limits of pooled scores to a command; `does` is their help."""
    return option("--fail-under", Section.VERDICT, does, multiple=True, metavar="NAME[:POOLING]=LIMIT")


force_option = option(
    "--force", Section.VERDICT, "Compare also what was not scored alike: other features, planes, pictures.", is_flag=True
)
json_option = option("--json as_json", Section.OUTPUTS, "Print JSON in place of the table.", is_flag=True)
ladder_option = option(
    "--ladder",
    Section.INPUTS,
    "Tell the ladders of the page apart by that column of a table. Default: every label besides crf, height and the like in"
    " which clips of a reference differ, else the codec. May be repeated.",
    multiple=True,
    metavar="COLUMN",
)
urls_option = option(
    "--urls",
    Section.INPUTS,
    "Connect also to the URLs (s3://, gs://, https://, file://) that the given files name.",
    is_flag=True,
)
backend_options = option_group(
    "selector",
    dict,
    flag_of(BACKEND),
    option(
        "--device",
        Section.DEVICE,
        "Use that Vulkan device, several with commas between them, or all GPUs."
        " Default: VKSSIM_DEVICE, else the first real GPU.",
        metavar="INDEX|NAME|UUID|all",
        shell_complete=complete_devices,
    ),
)


engine_options = option_group(
    "engine",
    dict,
    flag_of(ENGINE),
    option(
        "--address",
        Section.DEVICE,
        "Connect to that cluster: auto, or HOST:6379. Default: that of RAY_ADDRESS, the one that runs here, or a new one.",
        metavar="ADDRESS",
    ),
    option(
        "--software", Section.DEVICE, "Let nodes of the cluster without a GPU score as well, on Mesa's lavapipe.", is_flag=True
    ),
)
decode_option = flag_of(DECODE)
planes_option = flag_of(PLANE_CHOICE)


def feature_option(by_default: str, **attributes: Any) -> Decorator:
    """Return a decorator that adds the metrics to compute to a command; `by_default` names them in the help."""
    return option(
        "--feature features",
        Section.METRICS,
        f"Compute that metric, with options; may be repeated. Default: {by_default}.",
        multiple=True,
        metavar="NAME[=K=V:K=V]",
        shell_complete=complete_features,
        **attributes,
    )


def clip_options(*, find_offset: bool) -> Decorator:
    """Return a decorator that adds the options of pairs of clips: raw files, metrics, frames and pictures."""
    features = feature_option(
        "float_ms_ssim and float_ssim. `vkssim features` lists them",
        default=("float_ms_ssim", "float_ssim"),
        show_default=False,
    )
    offset = [find_offset_option] if find_offset else []
    return add_options(raw_options, features, planes_option, selection_options, *offset, sync_option, picture_options)
