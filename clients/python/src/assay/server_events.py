"""Reads server-sent events with JSON data (WHATWG HTML, "Server-sent events")."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any


def events_of(lines: Iterator[str], on_line: Callable[[], None] = lambda: None) -> Iterator[dict[str, Any]]:
    """Yields the data of each event; raises `ValueError` if it is not a JSON object. For comment lines, which keep the connection open,
    only `on_line` is called."""
    data: list[str] = []
    for line in lines:
        on_line()
        if line.startswith("data:"):
            data.append(line[5:].removeprefix(" "))
        elif line == "" and data:
            text = "\n".join(data)
            data = []
            if text != "[DONE]":
                event = json.loads(text)
                if not isinstance(event, dict):
                    raise ValueError("an event is no object")
                yield event
