"""Converts images to the form that a request takes."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from .errors import AssayError
from .models import ImageInput

# Image formats that the server reads, each with bytes of its file header and their offset.
_TYPES = (
    ("image/jpeg", b"\xff\xd8\xff", 0),
    ("image/png", b"\x89PNG\r\n\x1a\n", 0),
    ("image/webp", b"WEBP", 8),
    ("image/gif", b"GIF8", 0),
)


def image_input(file: str | os.PathLike[str] | bytes) -> ImageInput:
    """Reads an image file, or takes its bytes: `images=[image_input("receipt.jpg")]`.

    Raises `AssayError` for a format that the server does not read.
    """
    data = file if isinstance(file, bytes) else Path(file).read_bytes()
    for mime_type, start, at in _TYPES:
        if data[at : at + len(start)] == start:
            return ImageInput(type="base64", mime_type=mime_type, data=base64.b64encode(data).decode())
    raise AssayError("The image is not in a format that Assay reads. Send JPEG, PNG, WebP or GIF.")
