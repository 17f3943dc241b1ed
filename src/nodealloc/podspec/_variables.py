"""Values only: where the environment of a container comes from."""

from __future__ import annotations

from nodealloc import _attrs as attrs
from nodealloc._typed import typed_fields
from nodealloc._wire import wire
from nodealloc.podspec._checks import variable

__all__ = ["EnvFrom", "FieldRef", "KeyRef", "NameRef", "ResourceFieldRef", "ValueFrom", "Variable"]


@attrs.frozen(kw_only=True)
class FieldRef:
    """A field of the pod itself.

    Attributes:
        field_path: `metadata.name`, `status.podIP`, `metadata.labels['app']`.
        api_version: Of the path.
    """

    field_path: str = attrs.field(default="", metadata=wire(required=True))
    api_version: str = attrs.field(default="v1", metadata=wire(unset=""))


@typed_fields
@attrs.frozen(kw_only=True)
class ResourceFieldRef:
    """An amount that a container asks for.

    Attributes:
        resource: `limits.cpu`, `requests.memory`.
        container_name: Whose; "" for its own. A volume has to name one.
        divisor: The amount is told in units of this, rounded up; "" for 1.
    """

    resource: str = attrs.field(default="", metadata=wire(required=True))
    container_name: str = ""
    divisor: str | int = ""


@typed_fields
@attrs.frozen(kw_only=True)
class KeyRef:
    """A key of a ConfigMap or Secret.

    Attributes:
        key: Which.
        name: Of the object.
        optional: Whether it may be missing.
    """

    key: str = attrs.field(default="", metadata=wire(required=True))
    name: str = ""
    optional: bool = False


@attrs.frozen(kw_only=True)
class NameRef:
    """A whole ConfigMap or Secret.

    Attributes:
        name: Of the object.
        optional: Whether it may be missing.
    """

    name: str = ""
    optional: bool = False


@typed_fields
@attrs.frozen(kw_only=True)
class ValueFrom:
    """Where the value of a variable is. Exactly one is given.

    Attributes:
        field_ref: In the pod.
        resource_field_ref: In what a container asks for.
        config_map_key_ref: In a ConfigMap.
        secret_key_ref: In a Secret.
    """

    field_ref: FieldRef | None = None
    resource_field_ref: ResourceFieldRef | None = None
    config_map_key_ref: KeyRef | None = None
    secret_key_ref: KeyRef | None = None

    @property
    def sources(self) -> tuple[FieldRef | ResourceFieldRef | KeyRef, ...]:
        """Those that are given."""
        all_four = (self.field_ref, self.resource_field_ref, self.config_map_key_ref, self.secret_key_ref)
        return tuple(one for one in all_four if one is not None)


@typed_fields
@attrs.frozen(kw_only=True)
class Variable:
    """One variable.

    Attributes:
        name: Its name.
        value: As it stands; `$(OTHER)` is replaced when the container is made.
        value_from: Where its value is, in place of `value`.
    """

    name: str = attrs.field(default="", metadata=wire(required=True, check=variable))
    value: str = ""
    value_from: ValueFrom | None = None


@typed_fields
@attrs.frozen(kw_only=True)
class EnvFrom:
    """A variable for each key of an object. One of the two is given.

    Attributes:
        prefix: Before each key.
        config_map_ref: Which ConfigMap.
        secret_ref: Which Secret.
    """

    prefix: str = ""
    config_map_ref: NameRef | None = None
    secret_ref: NameRef | None = None
