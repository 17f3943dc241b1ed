"""The images of a fake runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nodealloc.runtime import ImageRecord, NoSuchRecordError, PullCredentials, SandboxConfig
from nodealloc.testing._misbehaving_calls import MisbehavingCalls

__all__ = ["FakeImages"]


class FakeImages(MisbehavingCalls):
    """`Images` in memory.

    Attributes:
        image_store: What `images` answers, by id.

    Args:
        sleep: How a slow call waits.
        images: Names of images that are there.
    """

    def __init__(self, sleep: Callable[[float], object], images: Sequence[str], /) -> None:
        super().__init__(sleep)
        self.image_store: dict[str, ImageRecord] = {}
        for name in images:
            self.image_store[f"sha256:{name}"] = ImageRecord(id=f"sha256:{name}", names=(name,), size_bytes=1)

    def images(self) -> Sequence[ImageRecord]:
        """See `Images.images`."""
        return self._call("images", "", lambda: tuple(self.image_store.values()))

    def pull_image(
        self, name: str, credentials: PullCredentials | None = None, sandbox: SandboxConfig | None = None, /
    ) -> str:
        """See `Images.pull_image`; every image can be had, by anybody."""
        del credentials, sandbox

        def work() -> str:
            made = f"sha256:{name}"
            self.image_store[made] = ImageRecord(id=made, names=(name,), size_bytes=1)
            return made

        return self._call("pull_image", name, work)

    def remove_image(self, id: str, /) -> None:  # noqa: A002 - the port's name
        """See `Images.remove_image`."""

        def work() -> None:
            gone = [one.id for one in self.image_store.values() if id == one.id or id in one.names]
            for one in gone:
                del self.image_store[one]

        self._call("remove_image", id, work)

    def _image(self, name: str) -> str:
        for one in self.image_store.values():
            if name == one.id or name in one.names:
                return one.id
        raise NoSuchRecordError("create_container", name)
