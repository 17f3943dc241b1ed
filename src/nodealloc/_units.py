"""Amounts as people read them, exactly: one manner for all refusals and listings."""

from __future__ import annotations

__all__ = ["amount_text", "bytes_text", "duration_text"]


def bytes_text(size_bytes: int, /) -> str:
    """Bytes in the largest binary unit that has them in four digits, or whole; else as bytes."""
    for unit, shift in (("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes < 1 << shift:
            continue
        if not size_bytes % (1 << shift):
            return f"{size_bytes >> shift} {unit}"
        text = f"{size_bytes / (1 << shift):.4g}"
        if float(text) * (1 << shift) == size_bytes:
            return f"{text} {unit}"
    return f"{size_bytes} bytes"


def amount_text(resource: str, amount: int, /) -> str:
    """An amount of a resource: memory and huge pages in bytes, all else by count."""
    in_bytes = resource == "memory" or resource.startswith("hugepages-")
    return bytes_text(amount) if in_bytes else str(amount)


def duration_text(seconds: float, /) -> str:
    """A duration as the kubelet's messages write one: `3m1s`, `1h0m2.5s`."""
    minutes, left = divmod(seconds, 60)
    hours, minutes = divmod(int(minutes), 60)
    text = f"{left:.9f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text
