"""Results as plain values, and their files: JSON, XML, CSV and subtitles, as libvmaf's tools write them.

This package imports the options with which clips are read, because reports record them, but nothing of Vulkan. Read
`results` first, then `writing`. `__init__.pyi` lists the public names. Each is imported at its first use.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
