"""libvmaf's VMAF, SSIM and MS-SSIM as Vulkan compute shaders, on every GPU and on any CPU.

`__init__.pyi` lists the public names. Each is imported when it is asked for, so that `import vkssim` alone stays quick.
"""

import sys

try:
    from . import host as host
except ImportError:  # in a checkout, host/ is beside vkssim/
    raise ModuleNotFoundError(
        "vkssim is not installed for this Python: `pip install -e .` in its checkout installs it, and `scripts/quickstart` also"
        " the Vulkan driver and an environment",
        name=__name__,
    ) from None

from .utils.version import __version__ as __version__


def __getattr__(name: str) -> object:
    """Return a public name, by lazy_loader from the first one on: the command imports less before it notes signals."""
    _attach()
    return getattr(sys.modules[__name__], name)


def __dir__() -> list[str]:
    _attach()
    return dir(sys.modules[__name__])


def _attach() -> None:
    import lazy_loader

    globals().update(zip(("__getattr__", "__dir__", "__all__"), lazy_loader.attach_stub(__name__, __file__), strict=True))
