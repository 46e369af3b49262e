"""libvmaf's SSIM and MS-SSIM as Vulkan compute shaders, on every GPU and on any CPU.

`__init__.pyi` lists the public names. Each is imported when it is asked for, so that `import vkssim` alone stays quick.
"""

from importlib.util import find_spec

from .utils.version import __version__ as __version__

if find_spec("lazy_loader") is None or find_spec("vkssim.host") is None:  # in a checkout, host/ is beside vkssim/
    raise ModuleNotFoundError(
        "vkssim is not installed for this Python: `pip install -e .` in its checkout installs it, and `scripts/quickstart` also"
        " the Vulkan driver and an environment",
        name=__name__,
    )

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
