"""Generated protocol code: the kubelet's wire, any protobuf library, no quarrel with others' code."""

from __future__ import annotations

from pathlib import Path

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool

from nodealloc import _proto
from nodealloc._proto import deviceplugin_v1beta1_pb2 as devices
from nodealloc._proto import pluginregistration_v1_pb2 as registration
from nodealloc._proto import runtime_v1_pb2 as runtimes

GENERATED = sorted(Path(_proto.__file__).parent.glob("*_pb2.py"))
FIELDS = {
    "RegisterRequest": {"version": 1, "endpoint": 2, "resource_name": 3, "options": 4},
    "DevicePluginOptions": {"pre_start_required": 1, "get_preferred_allocation_available": 2},
    "Device": {"ID": 1, "health": 2, "topology": 3},
    "ContainerPreferredAllocationRequest": {
        "available_deviceIDs": 1,
        "must_include_deviceIDs": 2,
        "allocation_size": 3,
    },
    "ContainerPreferredAllocationResponse": {"deviceIDs": 1},
    "ContainerAllocateRequest": {"devices_ids": 1},
    "ContainerAllocateResponse": {"envs": 1, "mounts": 2, "devices": 3, "annotations": 4, "cdi_devices": 5},
    "Mount": {"container_path": 1, "host_path": 2, "read_only": 3},
    "DeviceSpec": {"container_path": 1, "host_path": 2, "permissions": 3},
    "CDIDevice": {"name": 1},
    "PreStartContainerRequest": {"devices_ids": 1},
}


def test_services_have_their_names_on_the_wire() -> None:
    """Package, service and method names are what plugins dial."""
    plugin = devices.DESCRIPTOR.services_by_name["DevicePlugin"]
    assert plugin.full_name == "v1beta1.DevicePlugin"
    assert [method.name for method in plugin.methods] == [
        "GetDevicePluginOptions", "ListAndWatch", "GetPreferredAllocation", "Allocate", "PreStartContainer",
    ]  # fmt: skip
    assert devices.DESCRIPTOR.services_by_name["Registration"].full_name == "v1beta1.Registration"
    found = registration.DESCRIPTOR.services_by_name["Registration"]
    assert found.full_name == "pluginregistration.Registration"
    assert [method.name for method in found.methods] == ["GetInfo", "NotifyRegistrationStatus"]


@pytest.mark.parametrize("message", FIELDS)
def test_fields_have_their_numbers(message: str) -> None:
    """Field numbers are the wire."""
    fields = devices.DESCRIPTOR.message_types_by_name[message].fields
    assert {field.name: field.number for field in fields} == FIELDS[message]


RUNTIME_FIELDS = {
    "PodSandboxMetadata": {"name": 1, "uid": 2, "namespace": 3, "attempt": 4},
    "LinuxContainerResources": {
        "cpu_period": 1,
        "cpu_quota": 2,
        "cpu_shares": 3,
        "memory_limit_in_bytes": 4,
        "oom_score_adj": 5,
        "cpuset_cpus": 6,
        "cpuset_mems": 7,
        "hugepage_limits": 8,
        "unified": 9,
        "memory_swap_limit_in_bytes": 10,
    },
    "UpdateContainerResourcesRequest": {"container_id": 1, "linux": 2},
    "StopContainerRequest": {"container_id": 1, "timeout": 2},
    "ExecSyncResponse": {"stdout": 1, "stderr": 2, "exit_code": 3},
    "LinuxContainerSecurityContext": {
        "capabilities": 1,
        "privileged": 2,
        "namespace_options": 3,
        "selinux_options": 4,
        "run_as_user": 5,
        "run_as_username": 6,
        "readonly_rootfs": 7,
        "supplemental_groups": 8,
        "apparmor_profile": 9,
        "no_new_privs": 11,
        "run_as_group": 12,
        "masked_paths": 13,
        "readonly_paths": 14,
        "seccomp": 15,
        "apparmor": 16,
    },
    "LinuxSandboxSecurityContext": {
        "namespace_options": 1,
        "selinux_options": 2,
        "run_as_user": 3,
        "supplemental_groups": 5,
        "privileged": 6,
        "run_as_group": 8,
        "seccomp": 9,
    },
    "SecurityProfile": {"profile_type": 1, "localhost_ref": 2},
    "PortMapping": {"protocol": 1, "container_port": 2, "host_port": 3, "host_ip": 4},
    "AuthConfig": {
        "username": 1,
        "password": 2,
        "auth": 3,
        "server_address": 4,
        "identity_token": 5,
        "registry_token": 6,
    },
}


@pytest.mark.parametrize("message", RUNTIME_FIELDS)
def test_fields_of_runtimes_have_their_numbers(message: str) -> None:
    """Field numbers are the wire."""
    fields = runtimes.DESCRIPTOR.message_types_by_name[message].fields
    assert {field.name: field.number for field in fields} == RUNTIME_FIELDS[message]


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("RunPodSandboxResponse", "pod_sandbox_id"),
        ("CreateContainerResponse", "container_id"),
        ("PullImageResponse", "image_ref"),
        ("StopPodSandboxRequest", "pod_sandbox_id"),
        ("RemovePodSandboxRequest", "pod_sandbox_id"),
        ("StartContainerRequest", "container_id"),
        ("RemoveContainerRequest", "container_id"),
    ],
)
def test_what_names_one_thing_has_it_first(name: str, first: str) -> None:
    """The codec reads and writes all of these as one."""
    fields = runtimes.DESCRIPTOR.message_types_by_name[name].fields
    assert [(field.name, field.number) for field in fields] == [(first, 1)]


def test_known_bytes() -> None:
    """Bytes as another implementation writes them."""
    said = registration.PluginInfo.FromString(b'\n\x0cDevicePlugin\x12\x03a/b\x1a\x02/e"\x07v1beta1')
    assert (said.type, said.name, said.endpoint, list(said.supported_versions)) == (
        "DevicePlugin", "a/b", "/e", ["v1beta1"],
    )  # fmt: skip


@pytest.mark.parametrize("module", GENERATED, ids=lambda path: path.name)
def test_the_code_asks_for_no_library_version(module: Path) -> None:
    """Code of a newer generator refuses older libraries; this has to stay code of 1.62."""
    text = module.read_text(encoding="utf-8")
    assert "# Protobuf Python Version: 4.25.1" in text
    # A field of ours has that name too; what newer generators write is an import of it.
    assert "import runtime_version" not in text
    assert "ValidateProtobufRuntimeVersion" not in text
    assert "_descriptor_pool.DescriptorPool()" in text


def test_other_peoples_code_for_the_same_package_can_be_loaded_too() -> None:
    """Their `api.proto` with package v1beta1 goes into the shared pool; ours does not stand in its way."""
    theirs = descriptor_pb2.FileDescriptorProto(name="api.proto", package="v1beta1", syntax="proto3")
    theirs.message_type.add(name="Device").field.add(name="ID", number=1, type=9, label=1)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(theirs.SerializeToString())
    assert pool.FindMessageTypeByName("v1beta1.Device") is not devices.Device.DESCRIPTOR
    assert devices.Device(ID="a").SerializeToString() == b"\n\x01a"


def test_the_sources_are_there(request: pytest.FixtureRequest) -> None:
    """Every generated module has its protocol file."""
    sources = Path(request.config.rootpath) / "proto" / "nodealloc" / "_proto"
    if not sources.is_dir():
        pytest.skip("not run from a clone")
    assert {path.stem + "_pb2.py" for path in sources.glob("*.proto")} == {path.name for path in GENERATED}
