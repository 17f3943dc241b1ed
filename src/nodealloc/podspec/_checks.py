"""What the API refuses of single values: each function says what is wrong, or nothing."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Final

from nodealloc._reading import short
from nodealloc.podspec._names import is_label_value, is_qualified

__all__ = [
    "LABEL",
    "SUBDOMAIN",
    "UID",
    "at_least",
    "between",
    "ip_address",
    "label",
    "label_key",
    "label_value",
    "maybe",
    "name_fault",
    "one_of",
    "port",
    "port_name",
    "port_or_name",
    "relative",
    "subdomain",
    "variable",
    "whole_port",
]

LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
SUBDOMAIN: Final = re.compile(
    r"(?=.{1,253}\Z)[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*", re.ASCII
)
UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_PORT_NAME: Final = re.compile(r"(?=.*[a-z])(?!.*--)[a-z0-9]([a-z0-9-]{0,13}[a-z0-9])?", re.ASCII)
_MAX_PORT: Final = 65535


def name_fault(text: str, noun: str, shape: re.Pattern[str]) -> str:
    """Why a text is no name of that shape; "" for one that is."""
    if shape.fullmatch(text):
        return ""
    rule = "letters, digits, '-', '_' and '.'" if shape is UID else "lower-case letters, digits and '-'"
    dots = ", '.' between parts" if shape is SUBDOMAIN else ""
    return f"{short(text)} is no valid {noun}; use {rule}{dots}"


def label(text: str) -> str:
    """Of up to 63 characters, no dots."""
    return name_fault(text, "name", LABEL)


def subdomain(text: str) -> str:
    """Labels with dots between them."""
    return name_fault(text, "name", SUBDOMAIN)


def label_key(text: str) -> str:
    """Of a label or an annotation: a name, or a name in a domain."""
    return "" if is_qualified(text) else f"{text[:80]!r} is no key; write name or domain/name, 63 characters"


def label_value(value: object) -> str:
    """What stands behind the key of a label; "" may."""
    if isinstance(value, str) and is_label_value(value):
        return ""
    return f"{str(value)[:80]!r} is no label; write 63 letters, digits, -_."


def variable(text: str) -> str:
    """A name of an environment variable: anything that can be printed but `=`, as v1.32 has it."""
    if text.isascii() and text.isprintable() and "=" not in text:
        return ""
    return f"{short(text)} is no name of a variable; use printable ASCII without '='"


def between(least: int, most: int) -> Callable[[int], str]:
    """A whole number from `least` to `most`."""
    return lambda value: "" if least <= value <= most else f"{value} is outside {least} to {most}"


def at_least(least: int) -> Callable[[int], str]:
    """A whole number from `least` on."""
    return lambda value: "" if value >= least else f"{value} is less than {least}"


def whole_port(value: int) -> str:
    """1 to 65535."""
    return "" if 1 <= value <= _MAX_PORT else f"port {value} is outside 1 to {_MAX_PORT}"


def port(value: int) -> str:
    """1 to 65535, or 0 for none."""
    return "" if value == 0 else whole_port(value)


def port_or_name(value: int | str) -> str:
    """A port, or the name that a container gives one."""
    if isinstance(value, int):
        return whole_port(value)
    return "" if _PORT_NAME.fullmatch(value) else f"{short(value)} is no name of a port"


def ip_address(text: str) -> str:
    """IPv4 or IPv6, without a zone; "" stands for all."""
    try:
        found = ipaddress.ip_address(text or "0.0.0.0")  # noqa: S104 - a default that passes, nothing is bound
    except ValueError:
        return f"{short(text)} is no IP address"
    return (
        f"{short(text)} has a zone; leave out what stands behind %"
        if getattr(found, "scope_id", None)
        else ""
    )


def relative(text: str) -> str:
    """A path below something: not absolute, and no `..` in it."""
    if text.startswith("/") or ".." in text.split("/"):
        return f"{short(text)} leads out of its volume; write a relative path without '..'"
    return ""


def one_of(*words: str) -> Callable[[str], str]:
    """One of these words."""
    return lambda text: (
        "" if text in words else f"{short(text)} is not one of {', '.join(filter(None, words))}"
    )


def maybe(check: Callable[[str], str]) -> Callable[[str], str]:
    """The same, or ""."""
    return lambda text: check(text) if text else ""


def port_name(text: str) -> str:
    """The name of a port."""
    return port_or_name(text)
