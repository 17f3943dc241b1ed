"""A document as a configuration; raw mappings stop here."""

from __future__ import annotations

import functools
import os
import posixpath
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from nodealloc import _attrs as attrs
from nodealloc._declared import FAULTY, At, Documents
from nodealloc._reading import MAX_DOCUMENT_BYTES, Reader
from nodealloc._texts import documents_of
from nodealloc._typed import typed
from nodealloc._wire import wire_of
from nodealloc.errors import DecodeError, Fault
from nodealloc.kubeconfig._configuration import NO_TIME, NOT_SUPPORTED, KubeletConfig, Seconds
from nodealloc.kubeconfig._drop_ins import files_in, laid_over
from nodealloc.kubeconfig._durations import duration_s, is_zero
from nodealloc.kubeconfig._left_out import without_unfollowed

if TYPE_CHECKING:
    from nodealloc._declared import Hook

__all__ = ["kubelet_config", "read_kubelet_config"]

_EVICTION: Final = "evictionHard"
_PATHS: Final = ("staticPodPath", "resolvConf", "podLogsDir")
"""What is relative to the folder of the file that says it."""
_KIND: Final = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


@typed
def read_kubelet_config(
    path: Path | str,
    /,
    *,
    drop_ins: Path | str | None = None,
    unread: Callable[[Fault], None] | None = None,
) -> KubeletConfig:
    """A configuration file, in YAML or JSON; relative paths in it begin in its folder.

    Args:
        path: The file, of 256 KiB at most.
        drop_ins: A folder of files whose names end in `.conf`, as a kubelet's `--config-dir`: each is a
            configuration of its own, laid over what was read before in the order of their names.
            Mappings are laid over key by key, lists as a whole; null stands for not said.
        unread: Told of each field that nothing here acts upon, or that is none, which is left out then,
            and of such values of others: `failSwapOn` and `registerNode` that are true, a threshold at
            which images go, features that are not followed. None has it be a fault.

    Raises:
        DecodeError: It cannot be read, is of another kind, or has fields that nothing here acts
            upon, that are none, or whose values make no sense; all of them are named.

    Source: kubelet ``kubeletconfig/configfiles`` for the paths, ``cmd/kubelet/app`` for drop-ins.
    """
    own = _read(path)
    config = kubelet_config(own, source=str(path), unread=unread)
    if drop_ins is None:
        return config
    if own.get(_EVICTION) is None:
        own[_EVICTION] = config.eviction_hard
    for file in files_in(Path(drop_ins)):
        said = _read(file)
        kubelet_config(said, source=str(file), unread=unread)
        own = laid_over(own, said)
    # Each was told of with its own file.
    return kubelet_config({_EVICTION: {}, **own}, source=str(path), unread=lambda _: None)


def _read(path: Path | str) -> dict[str, object]:
    """Fields of one file, without its kind, with whole paths."""
    where = str(path)
    try:
        with open(path, "rb", opener=_opened) as file:
            data = file.read(MAX_DOCUMENT_BYTES + 1)
    except (OSError, ValueError) as error:
        raise DecodeError(
            where, [Fault("$", f"cannot be read: {_why(error)}; name a configuration file")]
        ) from error
    if len(data) > MAX_DOCUMENT_BYTES:
        reason = f"has more than {MAX_DOCUMENT_BYTES} bytes; name a configuration file"
        raise DecodeError(where, [Fault("$", reason)])
    documents = [one for one in documents_of(data, where) if one is not None]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        reason = f"expected one object of kind {_KIND['kind']}, found {len(documents)} documents"
        if len(documents) == 1:
            reason = f"expected an object of kind {_KIND['kind']}"
        raise DecodeError(where, [Fault("$", reason)])
    reader = Reader(where)
    said = reader.mapping(cast("object", documents[0]), "$")
    reader.check()
    own = _own_fields({**dict.fromkeys(_KIND), **said}, where)
    for name in _PATHS:
        if isinstance(one := own.get(name), str) and one:
            own[name] = posixpath.normpath(Path(path).absolute().parent / one) if one[0] != "/" else one
    return own


@typed
def kubelet_config(
    fields: Mapping[str, object],
    /,
    *,
    source: str = "configuration",
    unread: Callable[[Fault], None] | None = None,
) -> KubeletConfig:
    """A configuration of a document's fields.

    Args:
        fields: As JSON or YAML has them. `apiVersion` and `kind` may be left out; where they stand
            they are looked at. Paths in it are absolute.
        source: What to call them in an error.
        unread: As of `read_kubelet_config`.

    Raises:
        DecodeError: As of `read_kubelet_config`.
    """
    reader = Reader(source, unread=unread)
    own = _own_fields(fields, source)
    for name in _unset_by_zero():
        if isinstance(one := own.get(name), str) and is_zero(one):
            own[name] = NO_TIME
    if unread is not None:
        own = without_unfollowed(own, unread)
    found = _documents().read(KubeletConfig, own, "$", reader)
    reader.check()
    return found or KubeletConfig()


def _own_fields(fields: Mapping[str, object], where: str) -> dict[str, object]:
    """Those of a configuration, without its kind, which has to be the right one where it is said."""
    said = {name: fields[name] for name in _KIND if name in fields}
    if said and said != _KIND:
        reason = f"is {said.get('apiVersion')} {said.get('kind')}, expected {' '.join(_KIND.values())}"
        raise DecodeError(where, [Fault("$", reason)])
    return {name: one for name, one in fields.items() if name not in _KIND}


def _opened(path: str, flags: int) -> int:
    """Without waiting for who writes a pipe; one that somebody does write is waited for as it is read."""
    descriptor = os.open(path, flags | os.O_NONBLOCK)
    os.set_blocking(descriptor, True)
    return descriptor


def _why(error: Exception) -> str:
    return error.strerror or str(error) if isinstance(error, OSError) else str(error)


@functools.cache
def _unset_by_zero() -> frozenset[str]:
    """Fields of which no time at all says nothing."""
    wires = [wire_of(one.metadata) for one in attrs.fields(KubeletConfig)]
    return frozenset(one.key for one in wires if one.unset == NO_TIME)


@functools.cache
def _documents() -> Documents:
    return Documents(
        unsupported={
            KubeletConfig: dict.fromkeys(NOT_SUPPORTED, "nothing here acts upon it yet; leave it out")
        },
        checks={},
        builders={},
        hooks=cast("Mapping[object, Hook]", {Seconds: _duration}),
        raw=lambda at, _: at[0],
    )


def _duration(at: At, _: object) -> object:
    value, path, reader = at
    if not isinstance(value, str):
        reader.expected("a duration such as 1m30s", value, path)
        return FAULTY
    try:
        return duration_s(value)
    except ValueError as error:
        reader.fault(path, str(error))
        return FAULTY
