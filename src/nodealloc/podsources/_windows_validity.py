"""Options for Windows: they are left out here; a kubelet refuses manifests in which they make no sense."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from nodealloc._raw_parts import fields_of, items_of
from nodealloc.errors import Fault
from nodealloc.podspec._checks import subdomain

__all__ = ["windows_faults"]

_MOST_SPEC_BYTES: Final = 64 * 1024
_DOMAIN_BYTES: Final = 256
_MOST_USER_BYTES: Final = 104
_CONTROLS: Final = re.compile(r"[\x00-\x1f\x7f]")
_NETBIOS: Final = re.compile(r'[^\\/:*?"<>|.][^\\/:*?"<>|]{0,14}')
_LABEL: Final = r"[a-zA-Z0-9](?:[a-zA-Z0-9-]{0,61}[a-zA-Z0-9])?"
_DNS: Final = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
_BAD_USER: Final = re.compile(r'[. ]+|.*["/\\:;|=,+*?<>@\[\]].*', re.DOTALL)
_PARTS: Final = 2


def windows_faults(manifest: object, /) -> Iterator[Fault]:
    """What a kubelet refuses of options for Windows; what is right with them is left out.

    Source: Kubernetes v1.32 ``pkg/apis/core/validation``.
    """
    spec = fields_of(fields_of(manifest).get("spec"))
    options = {"$.spec": fields_of(spec.get("securityContext")).get("windowsOptions")}
    for kind in ("initContainers", "containers"):
        for index, one in enumerate(items_of(spec.get(kind))):
            context = fields_of(fields_of(one).get("securityContext"))
            options[f"$.spec.{kind}[{index}]"] = context.get("windowsOptions")
    is_linux = fields_of(spec.get("os")).get("name") == "linux"
    for where, found in options.items():
        if found is not None:
            at = f"{where}.securityContext.windowsOptions"
            if is_linux:
                yield Fault(at, "os.name says linux, which has none; leave one of the two out")
            yield from _options(at, found)
    yield from _host_processes(options, has_host_network=spec.get("hostNetwork") is True)


def _options(at: str, found: object) -> Iterator[Fault]:
    options = fields_of(found)
    if options is not found:
        yield Fault(at, "expected an object")
        return
    for name, kind, word in (
        ("gmsaCredentialSpecName", str, "a text"),
        ("gmsaCredentialSpec", str, "a text"),
        ("runAsUserName", str, "a text"),
        ("hostProcess", bool, "true or false"),
    ):
        value = options.get(name)
        if value is None:
            continue
        if not isinstance(value, kind):
            yield Fault(f"{at}.{name}", f"expected {word}")
        elif isinstance(value, str) and (reason := _CHECKS[name](value)):
            yield Fault(f"{at}.{name}", reason)


def _spec(text: str) -> str:
    if not text:
        return "is empty; leave it out"
    is_long = len(text.encode(errors="replace")) > _MOST_SPEC_BYTES
    return f"has more than {_MOST_SPEC_BYTES} bytes" if is_long else ""


def _user_name(text: str) -> str:
    parts = text.split("\\")
    if not text or _CONTROLS.search(text) or len(parts) > _PARTS:
        return f"{text[:80]!r} is no user; write a name, or a domain, one backslash and a name"
    domain, user = parts[0] if len(parts) == _PARTS else None, parts[-1]
    if domain is not None and not _is_domain(domain):
        return f"{domain[:80]!r} is no domain of Windows"
    size = len(user.encode(errors="replace"))
    if not 0 < size <= _MOST_USER_BYTES or _BAD_USER.fullmatch(user):
        return f"{user[:80]!r} is no name of a user of Windows"
    return ""


def _is_domain(text: str) -> bool:
    if len(text.encode(errors="replace")) >= _DOMAIN_BYTES:
        return False
    return bool(_NETBIOS.fullmatch(text) or _DNS.fullmatch(text))


_CHECKS: Final = {
    "gmsaCredentialSpecName": subdomain,
    "gmsaCredentialSpec": _spec,
    "runAsUserName": _user_name,
}


def _host_processes(options: Mapping[str, object], *, has_host_network: bool) -> Iterator[Fault]:
    """All containers are processes of the host or none, and as their pod says; they have its network."""
    said = {where: fields_of(found).get("hostProcess") for where, found in options.items()}
    of_pod = said.pop("$.spec")
    for where, own in said.items():
        if of_pod is not None and own is not None and own != of_pod:
            at = f"{where}.securityContext.windowsOptions.hostProcess"
            yield Fault(at, f"the pod says {str(of_pod).lower()}; leave one of the two out")
    are = [(of_pod if own is None else own) is True for own in said.values()]
    if any(are) and not all(are):
        yield Fault("$.spec", "some containers are processes of the host and some are not; make them all")
    if any(are) and not has_host_network:
        yield Fault("$.spec.hostNetwork", "processes of the host have its network; write true")
