"""libvmaf's SSIM and MS-SSIM as Vulkan compute shaders, on every GPU and on any CPU.

`__init__.pyi` lists the public names. Each is imported when it is asked for, so that `import vkssim` alone stays quick.
"""

import lazy_loader

from .utils.version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
