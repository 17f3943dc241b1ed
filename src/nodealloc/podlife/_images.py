"""Images of containers: what is there, what has to be fetched, as whom, and how many at a time."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, Protocol, cast

from nodealloc._arguments import check
from nodealloc._error_words import error_words
from nodealloc.errors import ConfigurationError, NodeallocError, RetryableError
from nodealloc.podlife._image_names import ImageName
from nodealloc.podlife._plan import Held
from nodealloc.podlife._restarts import RestartEntry
from nodealloc.podspec import PullPolicy
from nodealloc.runtime import (
    AnswerLostError,
    ImageRecord,
    NoSuchRecordError,
    PullCredentials,
    RuntimeRefusedError,
    RuntimeUnavailableError,
    SandboxConfig,
)

if TYPE_CHECKING:
    from nodealloc.dsw_asw import Cancel
    from nodealloc.podlife._restarts import RestartBackOff
    from nodealloc.podspec import Container, Pod
    from nodealloc.runtime import Images

__all__ = [
    "PULL_FAILURES",
    "CredentialSource",
    "FailedPulls",
    "ImageFetcher",
    "ImageUnavailableError",
    "asked_name",
    "find_image",
    "pull_held",
    "pull_policy",
    "words_of",
]


PULL_FAILURES: Final = frozenset({"ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"})
"""Reasons of an image that was asked for and could not be had: it is asked for again after a back-off."""
_FAILURES: Final = (RuntimeRefusedError, RuntimeUnavailableError, AnswerLostError, NoSuchRecordError)
_NO_STATUS: Final = "UNKNOWN"
"""The status of what gRPC has none for: the words are the runtime's alone."""


class ImageUnavailableError(RetryableError):
    """A container's image is not to be had as things are.

    Attributes:
        reason: One word for programs: `ErrImagePull`, `ErrImageNeverPull`, `InvalidImageName`
            or `ImageInspectError`; `RegistryUnavailable` or `SignatureValidationFailed` where
            the runtime begins its answer with that word.
        image: As the pod names it.
        message: For people.
    """

    def __init__(self, reason: str, image: str, message: str, /) -> None:
        super().__init__(message, after_s=10.0)
        self.reason = reason
        self.image = image
        self.message = message

    @property
    def was_asked_for(self) -> bool:
        """Whether a registry was asked, which is asked again after a back-off only."""
        return self.reason in PULL_FAILURES


class CredentialSource(Protocol):
    """As whom images are fetched."""

    def credentials(self, pod: Pod, image: ImageName, /) -> Sequence[PullCredentials]:
        """What to try for an image, in this order; nothing for as nobody.

        May raise `RetryableError` where it cannot tell yet.
        """
        ...


def pull_policy(container: Container, /) -> PullPolicy:
    """When a container's image is fetched; where nobody says so, once.

    A pod that was read always says so: whoever reads a manifest puts the API's default in.
    """
    return container.image_pull_policy or PullPolicy.IF_NOT_PRESENT


def asked_name(image: str, /) -> str:
    """What the runtime is asked for by this name: the same for names that mean the same."""
    try:
        return ImageName.of(image).asked
    except ConfigurationError:
        return image


def find_image(images: Sequence[ImageRecord], name: ImageName, /) -> ImageRecord | None:
    """The image of a name, or of an id, among those that a runtime holds; None where it is not there."""
    for one in images:
        if name.given in (one.id, *one.names) or any(name.is_named_by(other) for other in one.names):
            return one
    return None


def pull_held(image: str, reason: str, message: str, until_s: float, /) -> Held:
    """What is told of a container that waits for the next try to fetch its image.

    Args:
        image: As the pod names it.
        reason: Of the last failure, such as `ErrImagePull`.
        message: Of the last failure.
        until_s: When the next try may be.

    Source: kubelet ``images/image_manager.go``.
    """
    said = f'Back-off pulling image "{image}"'
    return Held(until_s=until_s, reason="ImagePullBackOff", message=f"{said}: {reason}: {message}")


class ImageFetcher:
    """Has the images of containers ready; thread-safe.

    An image that is there is found without waiting for others that are fetched.

    Args:
        images: The runtime's.
        at_once: How many are fetched at a time, the others wait in the order they
            came, in their threads; None for any number. That one image is fetched for one
            pod after the other, so that the first serves them all, is up to the caller.
        credentials: As whom; None for as nobody.

    Raises:
        ConfigurationError: None at all may be fetched.

    Source: kubelet ``images/image_manager.go`` and ``images/puller.go``.
    """

    def __init__(
        self, images: Images, /, *, at_once: int | None = 1, credentials: CredentialSource | None = None
    ) -> None:
        if at_once is not None and at_once < 1:
            raise ConfigurationError(f"at_once is {at_once}; at least one image has to be fetched at a time")
        self._images = images
        self._credentials = credentials
        self._line = _Line(at_once)

    def find(self, container: Container, /) -> ImageRecord | None:
        """A container's image, where it is on the node; None where it has to be fetched.

        Raises:
            ImageUnavailableError: It is not to be had as things are.
        """
        name, policy = _name(container), pull_policy(container)
        found = None if policy is PullPolicy.ALWAYS else self._found(name)
        if found is None and policy is PullPolicy.NEVER:
            words = f'Container image "{name.given}" is not present with pull policy of Never'
            raise ImageUnavailableError("ErrImageNeverPull", name.given, words)
        return found

    def fetch(
        self,
        pod: Pod,
        container: Container,
        cancel: Cancel,
        /,
        *,
        sandbox: Callable[[], SandboxConfig | None] = lambda: None,
    ) -> ImageRecord:
        """Have a container's image on the node, for a pod whose sandbox is made from what `sandbox` says.

        Returns:
            The image; with its id alone where the runtime does not list it.

        Raises:
            ImageUnavailableError: It is not to be had as things are.
            CancelledError: Asked to stop while it waited for its turn.
        """
        with self._line.turn(cancel):
            # Whoever came before may have fetched the same.
            return self.find(container) or self._pulled(pod, _name(container), sandbox)

    def _found(self, name: ImageName) -> ImageRecord | None:
        try:
            return find_image(self._images.images(), name)
        except Exception as error:
            words = f'Failed to inspect image "{name.given}": {words_of(error)}'
            raise ImageUnavailableError("ImageInspectError", name.given, words) from error

    def _pulled(self, pod: Pod, name: ImageName, sandbox: Callable[[], SandboxConfig | None]) -> ImageRecord:
        try:
            made = self._pull(pod, name, sandbox())
        except Exception as error:
            words = list(dict.fromkeys(map(words_of, _each(error))))
            said = words[0] if len(words) == 1 else f"[{', '.join(words)}]"
            raise ImageUnavailableError(_pull_reason(error), name.given, said) from error
        try:
            listed = next((one for one in self._images.images() if made in {one.id, *one.names}), None)
        except NodeallocError:
            # It is there; who it runs as is all that the listing would add.
            listed = None
        return listed or ImageRecord(id=made, names=(name.asked,))

    def _pull(self, pod: Pod, name: ImageName, sandbox: SandboxConfig | None) -> str:
        tries: Sequence[PullCredentials | None] = ()
        if self._credentials is not None:
            tries = _as_whom(self._credentials.credentials(pod, name))
        failures: list[Exception] = []
        for one in tries or (None,):
            try:
                return self._images.pull_image(name.asked, one, sandbox)
            except _FAILURES as error:
                failures.append(error)
        if len(failures) == 1:
            raise failures[0]
        raise ExceptionGroup("failed with each of the credentials", failures)


def _as_whom(answer: Sequence[PullCredentials], /) -> Sequence[PullCredentials]:
    """What a source of credentials answered; a text would be tried letter by letter, None as nobody."""
    where, expected = "credentials", "several PullCredentials, or () for nobody's"
    for one in check(where, answer, (list, tuple), expected):
        check(where, one, PullCredentials, expected)
    return answer


def _name(container: Container) -> ImageName:
    image = container.image
    try:
        return ImageName.of(image)
    except ConfigurationError as error:
        # Reason and words are recorded.
        words = f'couldn\'t parse image name "{image}": {ImageName.fault(image)}'
        words = f'Failed to apply default image tag "{image}": {words}'
        raise ImageUnavailableError("InvalidImageName", image, words) from error


def _pull_reason(error: Exception) -> str:
    """The runtime's own word for why, where it has one that people know.

    Source: CRI's ``pkg/errors``.
    """
    for one in _each(error):
        if isinstance(one, RuntimeRefusedError) and one.status == _NO_STATUS:
            for word in PULL_FAILURES:
                if one.reason.startswith(word):
                    return word
    return "ErrImagePull"


def _each(error: Exception) -> Sequence[Exception]:
    """An error, or those of all the credentials that were tried."""
    if isinstance(error, ExceptionGroup):
        return cast("ExceptionGroup[Exception]", error).exceptions
    return (error,)


def words_of(error: Exception, /) -> str:
    """What is told of a failure: the runtime's own words, without which call said them."""
    if isinstance(error, _FAILURES):
        return error.reason or str(error)
    return error_words(error)


class FailedPulls:
    """How long images that could not be had wait for the next try, by pod; thread-safe.

    It is forgotten with the process: a registry that is asked once more does no harm.
    """

    def __init__(self, policy: RestartBackOff, /) -> None:
        self._policy = policy
        self._lock = threading.Lock()
        self._entries: dict[str, dict[str, RestartEntry]] = {}

    def failed(self, uid: str, image: str, began_s: float, now_s: float, /) -> float:
        """Seconds to the next try, after one that failed just now.

        One that began before the last one's wait was over, for another container, is no further one.
        """
        with self._lock:
            mine = self._entries.setdefault(uid, {})
            before = mine.get(image)
            if before is not None and began_s < before.started_s + before.delay_s:
                return before.delay_s
            delay_s = self._policy.after(before, now_s)
            mine[image] = RestartEntry(delay_s=delay_s, started_s=now_s)
            return delay_s

    def came(self, uid: str, image: str, /) -> None:
        """An image was had after all."""
        with self._lock:
            self._entries.get(uid, {}).pop(image, None)

    def has_failed(self, uid: str, image: str, /) -> bool:
        """Whether it has failed since it was had."""
        with self._lock:
            return image in self._entries.get(uid, {})

    def forget(self, uid: str, /) -> None:
        """Nothing of a pod counts any more."""
        with self._lock:
            self._entries.pop(uid, None)


class _Line:
    """So many at a time, in the order they came; who is asked to stop leaves the line."""

    def __init__(self, places: int | None) -> None:
        self._lock = threading.Lock()
        self._free = places
        self._waiting: deque[threading.Event] = deque()

    @contextmanager
    def turn(self, cancel: Cancel, /) -> Generator[None]:
        if self._free is None:
            yield
            return
        called = self._entered()
        if called is not None:
            leave = cancel.on_cancel(called.set)
            try:
                called.wait()
            finally:
                leave()
            with self._lock:
                if called in self._waiting:
                    self._waiting.remove(called)
                    raise CancelledError
        try:
            yield
        finally:
            self._passed_on()

    def _entered(self) -> threading.Event | None:
        """None where there is a place at once."""
        with self._lock:
            if self._free:
                self._free -= 1
                return None
            mine = threading.Event()
            self._waiting.append(mine)
            return mine

    def _passed_on(self) -> None:
        with self._lock:
            if self._waiting:
                self._waiting.popleft().set()
            elif self._free is not None:
                self._free += 1
