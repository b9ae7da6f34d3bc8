"""Helpers that turn files of images and recordings into inputs of a request."""

from __future__ import annotations

import base64
import os
from pathlib import Path

from .errors import AssayError
from .models import AudioInput, ImageInput

# Signatures of the formats that the server reads: media type, first bytes, and their offset.
_IMAGES = (
    ("image/jpeg", b"\xff\xd8\xff", 0),
    ("image/png", b"\x89PNG\r\n\x1a\n", 0),
    ("image/webp", b"WEBP", 8),
    ("image/gif", b"GIF8", 0),
)
_RECORDINGS = (
    ("audio/wav", b"WAVE", 8),
    ("audio/flac", b"fLaC", 0),
    ("audio/ogg", b"OggS", 0),
    ("audio/mpeg", b"ID3", 0),
)


def image_input(file: str | os.PathLike[str] | bytes) -> ImageInput:
    """Reads an image file, or takes its bytes: `images=[image_input("receipt.jpg")]`.

    Raises `AssayError` for a format that the server does not read.
    """
    data = _bytes_of(file)
    for mime_type, start, at in _IMAGES:
        if data[at : at + len(start)] == start:
            return ImageInput(type="base64", mime_type=mime_type, data=_base64(data))
    raise AssayError("The image is not in a format that Assay reads. Send JPEG, PNG, WebP or GIF.")


def audio_input(file: str | os.PathLike[str] | bytes) -> AudioInput:
    """Reads a recording, or takes its bytes: `audio=[audio_input("call.mp3")]`.

    Raises `AssayError` for a format that the server does not read.
    """
    data = _bytes_of(file)
    for mime_type, start, at in _RECORDINGS:
        if data[at : at + len(start)] == start:
            return AudioInput(type="base64", mime_type=mime_type, data=_base64(data))
    if _is_mp3_frame(data):
        return AudioInput(type="base64", mime_type="audio/mpeg", data=_base64(data))
    raise AssayError("The recording is not in a format that Assay reads. Send WAV, MP3, FLAC or Ogg.")


def _bytes_of(file: str | os.PathLike[str] | bytes) -> bytes:
    return file if isinstance(file, bytes) else Path(file).read_bytes()


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _is_mp3_frame(data: bytes) -> bool:
    """Tells whether bytes begin with the frame header of MPEG layer III (MP3). AAC has a similar header with another layer."""
    return len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2
