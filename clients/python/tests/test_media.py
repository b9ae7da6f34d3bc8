import base64
from pathlib import Path

import pytest

from assay import AssayError, audio_input, image_input


def test_an_image_is_sent_as_base64_with_the_type_of_its_first_bytes(tmp_path: Path) -> None:
    data = b"\x89PNG\r\n\x1a\n" + bytes(1000)
    file = tmp_path / "a.bin"
    file.write_bytes(data)
    for given in (data, file, str(file)):
        image = image_input(given)
        assert (image.type, image.mime_type, image.data) == ("base64", "image/png", base64.b64encode(data).decode())
    assert image_input(b"\xff\xd8\xff\xe0").mime_type == "image/jpeg"
    assert image_input(b"RIFF....WEBPVP8 ").mime_type == "image/webp"
    assert image_input(b"GIF89a").mime_type == "image/gif"


@pytest.mark.parametrize("other", [b"", b"<svg/>", b"BM", b"RIFF....WAVE"])
def test_other_formats_are_refused_before_they_are_sent(other: bytes) -> None:
    with pytest.raises(AssayError):
        image_input(other)


def test_a_recording_is_sent_as_base64_with_the_type_of_its_first_bytes(tmp_path: Path) -> None:
    data = b"RIFF....WAVEfmt " + bytes(1000)
    file = tmp_path / "a.bin"
    file.write_bytes(data)
    for given in (data, file, str(file)):
        audio = audio_input(given)
        assert (audio.type, audio.mime_type, audio.data) == ("base64", "audio/wav", base64.b64encode(data).decode())
    assert audio_input(b"fLaC").mime_type == "audio/flac"
    assert audio_input(b"OggS").mime_type == "audio/ogg"
    assert audio_input(b"ID3\x04").mime_type == "audio/mpeg"
    assert audio_input(b"\xff\xfb\x90\x00").mime_type == "audio/mpeg"


# AAC in ADTS begins like MP3, but its header names another layer.
@pytest.mark.parametrize("other", [b"", b"\xff", b"\xff\xf1\x50\x80", b"RIFF....WEBP", b"....ftypM4A "])
def test_other_recordings_are_refused_before_they_are_sent(other: bytes) -> None:
    with pytest.raises(AssayError):
        audio_input(other)
