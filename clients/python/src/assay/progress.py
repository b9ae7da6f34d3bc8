"""Shows the progress of a download in one line on a terminal."""

from __future__ import annotations

from typing import TextIO

from typing_extensions import Self

from .models import DownloadProgress

_WIDTH = 24


class ProgressLine:
    """Writes the line to a terminal; writes nothing if the output is a file or a pipe."""

    def __init__(self, out: TextIO) -> None:
        self._out = out if out.isatty() else None
        self._shown = False

    def show(self, progress: DownloadProgress) -> None:
        if self._out is None:
            return
        self._out.write(f"\r\x1b[2K{text_of(progress)}")
        self._out.flush()
        self._shown = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._out is not None and self._shown:
            self._out.write("\n")
            self._out.flush()


def text_of(progress: DownloadProgress) -> str:
    """Returns the progress as text, such as `downloading assay/starter [######------] 52% 12.1 of 23.3 MB`."""
    head = f"{progress.status} {progress.model}"
    if not progress.total:
        return f"{head} {_megabytes(progress.bytes)} MB" if progress.bytes else f"{head} ..."
    share = min(1.0, progress.bytes / progress.total)
    bar = "#" * round(share * _WIDTH)
    amount = f"{_megabytes(progress.bytes)} of {_megabytes(progress.total)} MB"
    return f"{head} [{bar:-<{_WIDTH}}] {share:4.0%} {amount}"


def _megabytes(count: int) -> str:
    return f"{count / 1e6:.1f}"
