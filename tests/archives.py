"""Archives that tests read, unpacked."""

from __future__ import annotations

import tarfile
from pathlib import Path

__all__ = ["unpack"]


def unpack(archive: tarfile.TarFile, folder: Path, /) -> None:
    """Into a folder; files of it alone, where Python can see to that: 3.11.0 to 3.11.3 cannot."""
    archive.extraction_filter = getattr(tarfile, "data_filter", None)
    archive.extractall(folder)  # noqa: S202 - filtered
