"""Where tokens of service accounts come from."""

from __future__ import annotations

from typing import Protocol

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields

__all__ = ["ServiceToken", "TokenRequest", "TokenSource"]


@typed_fields
@attrs.frozen(kw_only=True)
class TokenRequest:
    """A token that a pod wants.

    Attributes:
        namespace: Of the pod.
        service_account: As which it speaks.
        pod_name: To which the token is bound.
        pod_uid: The same.
        audience: For whom the token is; "" for the API server.
        lifetime_s: How long it is to be valid, in seconds.
    """

    namespace: str
    service_account: str
    pod_name: str
    pod_uid: str
    audience: str = ""
    lifetime_s: int = 3600


@typed_fields
@attrs.frozen(kw_only=True)
class ServiceToken:
    """A token.

    Attributes:
        text: As a client sends it.
        renew_s: Seconds from now until the source has another one; None for never.
    """

    text: str = attrs.field(repr=False)
    renew_s: float | None = None


class TokenSource(Protocol):
    """Gives out tokens of service accounts; may be slow. Called from several workers at once."""

    def token(self, request: TokenRequest, /) -> ServiceToken:
        """A token that is valid now: the same one for the same request until it is time for another.

        Raises `RetryableError` where none can be had now.
        """
        ...
