"""What has to hold between the fields of one part of a manifest, as the API has it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from nodealloc._declared import Check
from nodealloc._reading import Reader
from nodealloc.podspec._network import PodDnsConfig
from nodealloc.podspec._placement import (
    NodeSelector,
    NodeSelectorOperator,
    NodeSelectorRequirement,
    Toleration,
)
from nodealloc.podspec._probes import LifecycleHandler, Probe
from nodealloc.podspec._security import AppArmorProfile, ProfileType, SeccompProfile, SecurityContext
from nodealloc.podspec._variables import EnvFrom, ValueFrom, Variable

__all__ = ["CHECKS"]


def _one_action(value: object, path: str, reader: Reader) -> None:
    handler = cast("Probe | LifecycleHandler", value)
    if len(handler.actions) != 1:
        reader.fault(
            path, f"exactly one of {', '.join(handler.ACTIONS)} is needed, found {len(handler.actions)}"
        )


def _one_source(value: object, path: str, reader: Reader) -> None:
    found = len(cast("ValueFrom", value).sources)
    if found != 1:
        reader.fault(path, f"exactly one place to take the value from is needed, found {found}")


def _one_value(value: object, path: str, reader: Reader) -> None:
    variable = cast("Variable", value)
    if variable.value and variable.value_from is not None:
        reader.fault(path, "value and valueFrom exclude one another; leave one out")


def _one_object(value: object, path: str, reader: Reader) -> None:
    found = cast("EnvFrom", value)
    if (found.config_map_ref is None) == (found.secret_ref is None):
        reader.fault(path, "exactly one of configMapRef, secretRef is needed")


def _terms(value: object, path: str, reader: Reader) -> None:
    if not cast("NodeSelector", value).node_selector_terms:
        reader.fault(f"{path}.nodeSelectorTerms", "at least one term is needed")


def _requirement(value: object, path: str, reader: Reader) -> None:
    found = cast("NodeSelectorRequirement", value)
    operator, many = found.operator, len(found.values)
    if operator is None:
        return
    if operator in {NodeSelectorOperator.IN, NodeSelectorOperator.NOT_IN} and not many:
        reader.fault(f"{path}.values", f"{operator.value} needs at least one value")
    elif operator in {NodeSelectorOperator.EXISTS, NodeSelectorOperator.DOES_NOT_EXIST} and many:
        reader.fault(f"{path}.values", f"{operator.value} takes no values")
    elif operator in {NodeSelectorOperator.GT, NodeSelectorOperator.LT} and many != 1:
        reader.fault(f"{path}.values", f"{operator.value} takes exactly one value, a whole number")


def _toleration(value: object, path: str, reader: Reader) -> None:
    found = cast("Toleration", value)
    if not found.key and found.operator != "Exists":
        reader.fault(f"{path}.operator", "a toleration without a key takes only Exists")
    if found.operator == "Exists" and found.value:
        reader.fault(f"{path}.value", "Exists takes no value")
    if found.toleration_seconds is not None and found.effect != "NoExecute":
        reader.fault(f"{path}.effect", "tolerationSeconds goes with NoExecute alone")


def _profile(value: object, path: str, reader: Reader) -> None:
    found = cast("AppArmorProfile | SeccompProfile", value)
    if found.type is ProfileType.LOCALHOST and not found.localhost_profile:
        reader.fault(f"{path}.localhostProfile", "Localhost needs the name of a profile")
    elif found.type is not ProfileType.LOCALHOST and found.localhost_profile is not None:
        reader.fault(f"{path}.localhostProfile", "only Localhost takes the name of a profile")


def _security(value: object, path: str, reader: Reader) -> None:
    found = cast("SecurityContext", value)
    if found.privileged and found.allow_privilege_escalation is False:
        reader.fault(f"{path}.allowPrivilegeEscalation", "a privileged container cannot be kept from it")


def _dns(value: object, path: str, reader: Reader) -> None:
    found = cast("PodDnsConfig", value)
    for key, items, most in (("nameservers", found.nameservers, 3), ("searches", found.searches, 32)):
        if len(items) > most:
            reader.fault(f"{path}.{key}", f"{len(items)} are more than {most}")


CHECKS: Final[Mapping[type, Check]] = {
    AppArmorProfile: _profile,
    PodDnsConfig: _dns,
    EnvFrom: _one_object,
    LifecycleHandler: _one_action,
    NodeSelector: _terms,
    NodeSelectorRequirement: _requirement,
    Probe: _one_action,
    SeccompProfile: _profile,
    SecurityContext: _security,
    Toleration: _toleration,
    ValueFrom: _one_source,
    Variable: _one_value,
}
