"""Hold results as plain values, and write them as JSON, XML, CSV and subtitles, as libvmaf's tools do.

This package knows the options with which clips were read, because reports record them, and knows nothing of Vulkan. Read
`results` first, then `json`. `__init__.pyi` lists the public names. Each is imported when it is asked for, so that the command
line can read `forms` without NumPy.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
