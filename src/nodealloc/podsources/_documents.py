"""Bytes of a file or an answer as static pods; bytes and dicts stop here."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, cast

import attrs

from nodealloc._raw_parts import fields_of
from nodealloc._reading import MAX_DOCUMENT_BYTES
from nodealloc._texts import documents_of, kubelets_document_of
from nodealloc.errors import DecodeError, Fault
from nodealloc.podfacts import status_from_manifest
from nodealloc.podsources._rounding import in_thousandths, with_bare_amounts
from nodealloc.podsources._static import HASH
from nodealloc.podsources._validity import faults_of
from nodealloc.podsources._windows_validity import windows_faults
from nodealloc.podspec import Json, Pod

__all__ = ["pod_in", "pods_in"]

_NAMES: Final = uuid.UUID("b3a3c1de-6c2f-5d41-8f0e-5a7cf1be3f0d")
"""Name space of the uids of static pods without one; ours."""
_GRACE: Final = "terminationGracePeriodSeconds"
_LISTS: Final = ("PodList", "List")
_IS_POD: Final[Mapping[str, object]] = {"apiVersion": "v1", "kind": "Pod"}
_MOST_WRONG: Final = 100
"""Pods of one answer that are told as wrong; more are not looked at."""


def pod_in(
    data: bytes,
    /,
    *,
    where: str,
    source: str,
    node_name: str,
    is_lenient: bool = False,
    max_bytes: int = MAX_DOCUMENT_BYTES,
) -> Pod:
    """The only pod of a document.

    Args:
        data: In JSON or YAML.
        where: What to call it in an error.
        source: Name of the source.
        node_name: Is appended to the pod's name; "" for nothing.
        is_lenient: Whether it is read as a kubelet reads it: fields that nobody knows are left out,
            the first of several documents counts, what begins with `{` is JSON alone, and it has to
            say that it is a Pod of v1.
        max_bytes: What its manifest may take, with every reference written out.

    Raises:
        DecodeError: There is none, there are several, or it is no pod.
    """
    if is_lenient:
        document = kubelets_document_of(data, where)
        _check_said(document, where)
        return _pod(document, where, source, node_name, is_lenient=True, max_bytes=max_bytes)
    documents = [one for one in documents_of(data, where) if one is not None]
    if len(documents) != 1:
        reason = (
            "nothing is in it yet; write a Pod manifest"
            if not documents
            else f"{len(documents)} documents; one file is one pod, put each into a file of its own"
        )
        raise DecodeError(where, [Fault("$", reason)])
    return _pod(documents[0], where, source, node_name, max_bytes=max_bytes)


def _check_said(document: object, where: str) -> None:
    """A kubelet's document is there, and says what it is."""
    if document is None:
        reason = "nothing is in it yet, or in the first of its documents, which counts; write a Pod manifest"
        raise DecodeError(where, [Fault("$", reason)])
    fields = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    if lacks := [key for key in ("apiVersion", "kind") if not fields.get(key)]:
        raise DecodeError(where, [Fault(f"$.{key}", "it is needed; write it") for key in lacks])


def pods_in(
    data: bytes,
    /,
    *,
    where: str,
    source: str,
    node_name: str,
    max_yaml_bytes: int = MAX_DOCUMENT_BYTES,
    is_lenient: bool = False,
) -> Iterator[Pod]:
    """The pods of an answer: a Pod, a PodList, or several documents of them.

    Args:
        data: In JSON or YAML.
        where: What to call it in an error.
        source: Name of the source.
        node_name: Is appended to the pods' names; "" for nothing.
        max_yaml_bytes: Of an answer in YAML.
        is_lenient: As of `pod_in`; what says that it is a PodList is one.

    Raises:
        DecodeError: It holds nothing, something that is no pod, or more YAML than that.
    """
    if is_lenient:
        yield from _kubelets_pods(
            kubelets_document_of(data, where, max_yaml_bytes=max_yaml_bytes), where, source, node_name
        )
        return
    documents = [one for one in documents_of(data, where, max_yaml_bytes=max_yaml_bytes) if one is not None]
    if not documents:
        raise DecodeError(where, [Fault("$", "nothing is in it; answer with an empty PodList for no pods")])
    for document in documents:
        items = _items(document, where)
        if items is None:
            yield _pod(document, where, source, node_name)
            continue
        yield from _listed([_whole(item) for item in items], where, source, node_name)


def _kubelets_pods(document: object, where: str, source: str, node_name: str) -> Iterator[Pod]:
    _check_said(document, where)
    fields = cast("dict[str, object]", document)
    if (fields["apiVersion"], fields["kind"]) != ("v1", "PodList"):
        yield _pod(document, where, source, node_name, is_lenient=True)
        return
    items = fields.get("items")
    if not isinstance(items, list | None):
        raise DecodeError(where, [Fault("$.items", "expected a list")])
    # What an item says that it is goes unread.
    pods = [
        {**cast("dict[str, object]", item), **_IS_POD} if isinstance(item, dict) else item
        for item in cast("list[object]", items or [])
    ]
    yield from _listed(pods, where, source, node_name, is_lenient=True)


def _listed(
    items: Sequence[object], where: str, source: str, node_name: str, *, is_lenient: bool = False
) -> list[Pod]:
    """The pods of a list, or an error with what is wrong with each of them."""
    pods: list[Pod] = []
    errors: dict[int, DecodeError] = {}
    for index, item in enumerate(items):
        place = f"{where} items[{index}]"
        try:
            pods.append(_pod(item, place, source, node_name, is_lenient=is_lenient))
        except DecodeError as error:
            errors[index] = error
        except Exception as error:
            raise DecodeError(place, [Fault("$", f"{type(error).__name__}: {error}")]) from error
        if len(errors) == _MOST_WRONG:
            break
    if len(errors) == 1:
        raise next(iter(errors.values()))
    if errors:
        raise DecodeError(
            where,
            [
                Fault(f"$.items[{index}]{fault.path.removeprefix('$')}", fault.reason)
                for index, error in errors.items()
                for fault in error.faults
            ],
        )
    return pods


def _items(document: object, where: str) -> list[object] | None:
    """Those of a list; None for what is none.

    Raises:
        DecodeError: It says that it is a list, and has none.
    """
    fields = fields_of(document)
    items = fields.get("items")
    if isinstance(items, list):
        return cast("list[object]", items)
    if fields.get("kind") not in _LISTS:
        return None
    if items is None and "items" in fields:  # so Go writes a list that nothing was put into
        return []
    raise DecodeError(where, [Fault("$.items", "expected a list of pods; write [] for none")])


def _whole(item: object) -> object:
    """Items of a list need not repeat what the list says they are."""
    if not isinstance(item, dict):
        return item
    return {**_IS_POD, **cast("dict[str, object]", item)}


def _pod(
    document: object,
    where: str,
    source: str,
    node_name: str,
    *,
    is_lenient: bool = False,
    max_bytes: int = MAX_DOCUMENT_BYTES,
) -> Pod:
    if isinstance(document, str):
        raise DecodeError(where, [Fault("$", "expected a mapping, found a text; write a Pod manifest")])
    unread = _let_go if is_lenient else None
    if is_lenient:
        document = _as_go_reads(document)
    pod = Pod.from_manifest(document, source=where, max_bytes=max_bytes, unread=unread)
    if is_lenient:
        pod = in_thousandths(pod)
    metadata = cast("Mapping[str, Mapping[str, object]]", document)["metadata"]
    name = _name_there(pod, where, node_name)
    there = attrs.evolve(pod, name=name, node_name=node_name.lower() or pod.node_name)
    faults = faults_of(there, is_kubelets=is_lenient)
    status, odd = _status_there(pod, where)
    faults += tuple(windows_faults(document) if is_lenient else odd)
    if faults:
        raise DecodeError(where, faults)
    uid = pod.uid
    notes: Mapping[str, str] = {**pod.annotations, HASH: uid}
    if not metadata.get("uid"):
        uid, notes = str(uuid.uuid5(_NAMES, f"{source}/{node_name}/{pod.namespace}/{name}")), pod.annotations
    # One that has a uid of its own carries its hash already, as a kubelet has it: that uid stays.
    return attrs.evolve(
        pod,
        uid=uid,
        name=name,
        node_name=node_name or pod.node_name,
        annotations=notes,
        status=status,
    )


def _status_there(pod: Pod, where: str) -> tuple[Mapping[str, Json], Sequence[Fault]]:
    """A pod's status as its node begins with it, and what is wrong with that of its manifest."""
    if not pod.status:
        return pod.status, ()
    # A manifest that was copied from an API server says what became of another pod.
    status: dict[str, Json] = {**pod.status, "phase": "Pending"}
    try:
        status_from_manifest(status, source=where, unread=_let_go)
    except DecodeError as error:
        odd = [Fault(f"$.status{one.path.removeprefix('$')}", one.reason) for one in error.faults]
        return {"phase": "Pending"}, odd
    return status, ()


def _name_there(pod: Pod, where: str, node_name: str) -> str:
    """What the pod is called on its node."""
    if not pod.name:
        raise DecodeError(where, [Fault("$.metadata.name", "a static pod needs a name; give it one")])
    name = f"{pod.name}-{node_name.lower()}" if node_name else pod.name
    if len(name) > 253:
        reason = f"{name[:40]}… has {len(name)} characters with the node's name, 253 is the limit; shorten it"
        raise DecodeError(where, [Fault("$.metadata.name", reason)])
    return name


def _as_go_reads(document: object) -> object:
    """The same; a grace period of less than none is a second, an amount of null 0, as a kubelet has it."""
    fields = fields_of(document)
    if not (said := fields_of(fields.get("spec"))):
        return document
    spec = with_bare_amounts(said)
    grace = spec.get(_GRACE)
    return {**fields, "spec": {**spec, _GRACE: 1} if type(grace) is int and grace < 0 else spec}


def _let_go(_fault: Fault) -> None:
    """What is not known is left out."""
