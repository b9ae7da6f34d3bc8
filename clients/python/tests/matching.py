"""Compares values with the expectations in cases.json."""

from __future__ import annotations

from typing import Any


def matches(value: Any, expected: Any) -> bool:
    if isinstance(expected, dict):
        if "$oneOf" in expected:
            return value in expected["$oneOf"]
        if "$type" in expected:
            return is_number(value) if expected["$type"] == "number" else isinstance(value, str)
        if "$keys" in expected:
            return isinstance(value, dict) and sorted(value) == sorted(expected["$keys"])
        return isinstance(value, dict) and all(k in value and matches(value[k], e) for k, e in expected.items())
    if isinstance(expected, list):
        return isinstance(value, list) and len(value) == len(expected) and all(map(matches, value, expected))
    if is_number(expected):
        return is_number(value) and value == expected
    return type(value) is type(expected) and value == expected


def is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
