"""`python -m nodealloc admit`, as a person or a script calls it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from nodealloc._cli import main
from nodealloc.agent import AGENT_FORMATS
from nodealloc.checkpoint import FileStore, row_key
from nodealloc.podsources import SOURCE_ROWS, Editions, editions_to_checkpoint

MACHINE = "2 sockets x 4 cores, memory=8Gi, hugepages=2Mi:8"
FILES = Path(__file__).parent.parent / "vectors" / "state_files"


def pod(name: str, **limits: object) -> dict[str, Any]:
    """A manifest of one container with these limits."""
    box = {"name": "app", "resources": {"limits": limits}}
    return {"metadata": {"name": name}, "spec": {"containers": [box]}}


def requesting(name: str, **requests: object) -> dict[str, Any]:
    """The same with requests alone."""
    return {
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "app", "resources": {"requests": requests}}]},
    }


class Node:
    """The command with manifests in a folder."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder, self.capsys = folder, capsys

    def ask(self, *arguments: str, pods: object, machine: str = MACHINE) -> tuple[int, list[dict[str, Any]]]:
        """Status and JSON."""
        file = self.folder / "pods.json"
        file.write_text(json.dumps(pods))
        status = main(["admit", "--machine", machine, "--format", "json", *arguments, str(file)])
        return status, json.loads(self.capsys.readouterr().out)


@pytest.fixture
def node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Node:
    """The command."""
    return Node(tmp_path, capsys)


def test_an_admitted_pod_is_told_with_what_it_gets(node: Node) -> None:
    """Affinity, CPUs, memory and devices by container; status 0."""
    status, (told,) = node.ask(
        *("--policy", "single-numa-node", "--reserved-cpus", "0", "--devices", "example.com/gpu=2"),
        pods=pod("web", **{"cpu": 3, "memory": "1Gi", "example.com/gpu": 1}),
    )
    assert status == 0
    assert told == {
        "pod": "default/web",
        "verdict": "admitted",
        "reason": "",
        "message": "",
        "containers": {
            "app": {
                "affinity": [0],
                "cpus": "1-3",
                "memory": ["[0] memory 1073741824"],
                "devices": {"example.com/gpu": ["gpu-0-0"]},
            }
        },
    }


def test_an_init_container_is_told_with_what_it_runs_on(node: Node) -> None:
    """Its memory is what it has while it runs, though the next container takes it over."""
    asked = pod("web", cpu=2, memory="1Gi")
    first = {"name": "first", "resources": {"limits": {"cpu": 1, "memory": "3Gi"}}}
    asked["spec"]["initContainers"] = [first]
    _, (told,) = node.ask("--policy", "restricted", "--reserved-cpus", "0", pods=asked)
    assert told["containers"]["first"]["memory"] == [f"[0] memory {3 << 30}"]
    assert told["containers"]["app"]["memory"] == [f"[0] memory {1 << 30}"]


def test_a_pod_that_holds_nothing_of_its_own_has_no_affinity(node: Node) -> None:
    """Null, an empty text, nothing."""
    _, (told,) = node.ask(pods=requesting("web", cpu="100m"))
    assert told["containers"] == {"app": {"affinity": None, "cpus": "", "memory": [], "devices": {}}}


@pytest.mark.parametrize(
    ("asked", "options", "reason"),
    [
        (requesting("p", cpu=1000, memory="10Ti"), [], "OutOfcpu"),
        (requesting("p", memory="17Gi"), [], "OutOfmemory"),
        (requesting("p", **{"ephemeral-storage": "1Gi"}), [], "OutOfephemeral-storage"),
        (requesting("p", **{"ephemeral-storage": "1Gi"}), ["--allocatable", "ephemeral-storage=2Gi"], ""),
        (pod("p", **{"example.com/gpu": 1}), [], "OutOfexample.com/gpu"),
        (pod("p", **{"cpu": 1, "hugepages-2Mi": "64Mi"}), [], "OutOfhugepages-2Mi"),
        (pod("p", **{"cpu": 1, "hugepages-2Mi": "16Mi"}), [], ""),
        (pod("p", cpu=6, memory="1Gi"), ["--policy", "single-numa-node"], "TopologyAffinityError"),
        (pod("p", cpu=6, memory="1Gi"), ["--policy", "best-effort"], ""),
        (requesting("p", cpu=1), ["--allocatable", "pods=0"], "OutOfpods"),
        (requesting("p", cpu=8), ["--reserved-cpus", "0-1"], "OutOfcpu"),
    ],
)
def test_a_refusal_has_its_reason_and_status_one(
    node: Node, asked: dict[str, Any], options: list[str], reason: str
) -> None:
    """Node fit and alignment are asked; what the machine does not offer is said by options."""
    status, (told,) = node.ask(*options, pods=asked)
    assert (told["reason"], told["verdict"]) == (reason, "refused" if reason else "admitted")
    assert bool(told["message"]) is bool(reason)
    assert status == (1 if reason else 0)


def test_pods_are_asked_in_order_and_several_stand_in_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The second pod finds what the first has left; text shows both, and the machine."""
    pytest.importorskip("yaml")
    file = tmp_path / "pods.yaml"
    file.write_text(
        f"{json.dumps(pod('a', cpu=5, memory='1Gi'))}\n---\n{json.dumps(pod('b', cpu=5, memory='1Gi'))}\n"
    )
    assert main(["admit", "--machine", MACHINE, str(file)]) == 1
    told = capsys.readouterr().out
    assert "default/a: admitted\n" in told
    assert "default/b: refused, OutOfcpu: " in told
    assert "default/a/app  5 CPUs" in told


def test_a_kubelets_state_files_are_what_is_there(tmp_path: Path, node: Node) -> None:
    """What they say is held is held, and nothing in the folder changes."""
    root = tmp_path / "kubelet"
    (root / "device-plugins").mkdir(parents=True)
    for name in ("cpu_manager_state", "memory_manager_state"):
        shutil.copy(FILES / f"four-nodes.{name}", root / name)
    before = {path: path.read_bytes() for path in root.rglob("*") if path.is_file()}
    machine = str(FILES / "four-nodes.machineinfo.json")
    _, (alone,) = node.ask("--reserved-cpus", "0", pods=pod("new", cpu=2, memory="64Mi"), machine=machine)
    _, (beside,) = node.ask(
        "--reserved-cpus", "0", "--kubelet", str(root), pods=pod("new", cpu=2, memory="64Mi"), machine=machine
    )
    assert alone["containers"]["app"]["cpus"] != beside["containers"]["app"]["cpus"]
    assert {path: path.read_bytes() for path in root.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    "arguments",
    [
        ["--policy", "best"],
        ["--policy-options", "x"],
        ["--scope", "node"],
        ["--cpu-options", "full-pcpus-only=perhaps"],
        ["--reserved-cpus", "99"],
        ["--devices", "example.com/gpu"],
        ["--devices", "example.com/gpu=many"],
        ["--allocatable", "pods"],
        ["--devices", "example.com/gpu=1,example.com/nic=1"],
        ["--devices", "cpu=2"],
        ["--devices", "gpu=2"],
        ["--devices", ""],
        ["--devices", "example.com/gpu=99999999999999"],
        ["--devices", "example.com/gpu=150000"],
        ["--devices", "example.com/gpu=1", "--devices", "example.com/gpu=2"],
        ["--allocatable", "pods=1", "--allocatable", "pods=2"],
        ["--policy-options", "search-whole-pod=true,search-whole-pod=false"],
        ["--kubelet", "/nonexistent/kubelet"],
    ],
)
def test_bad_input_is_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    """One line on standard error says what is wrong."""
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("web", cpu=1)))
    assert main(["admit", "--machine", MACHINE, *arguments, str(file)]) == 2
    assert capsys.readouterr().err.startswith("nodealloc admit: ")


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"metadata": {"name": "a"}, "spec": {}}',
        "a: [b",
        "",
        "---\n",
        "[" * 100_000,
        "{a: " * 5_000,
        None,
    ],
)
def test_a_bad_manifest_is_status_two(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    """Missing files, text that is neither JSON nor YAML, files without a pod, and pods with faults."""
    file = tmp_path / "pod.json"
    if text is not None:
        file.write_text(text)
    assert main(["admit", "--machine", MACHINE, str(file)]) == 2
    assert str(file) in capsys.readouterr().err


def test_a_file_that_is_no_text_is_status_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It says which byte is none, and what to do."""
    file = tmp_path / "pod.yaml"
    file.write_bytes(b"kind: \xff")
    assert main(["admit", "--machine", MACHINE, str(file)]) == 2
    assert capsys.readouterr().err == f"nodealloc admit: {file}: byte 6 is no UTF-8; write text @ $\n"


def test_a_machine_that_is_none_is_status_two(tmp_path: Path) -> None:
    """Neither a line, nor a file of JSON, nor a folder with a sysfs."""
    file = tmp_path / "pod.json"
    file.write_text(json.dumps(pod("web", cpu=1)))
    deep = tmp_path / "deep.json"
    deep.write_text("[" * 100_000)
    for machine in (
        "twelve cores of joy",
        "",
        "\0",
        str(file),
        str(deep),
        str(tmp_path),
        str(tmp_path / "none"),
    ):
        for command in (["admit", str(file)], ["topology"]):
            assert main([*command, "--machine", machine]) == 2


def test_topology_draws_a_line_of_text_and_who_holds_what(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No sysfs is needed for a machine that is one line, and a store says whose CPUs are whose."""
    assert main(["topology", "--machine", "2 sockets x 4 cores"]) == 0
    assert "8 CPUs" in capsys.readouterr().out
    shutil.copy(FILES / "four-nodes.cpu_manager_state", tmp_path / "cpu_manager_state")
    entries = json.loads((tmp_path / "cpu_manager_state").read_bytes())["entries"]
    machine = str(FILES / "four-nodes.machineinfo.json")
    assert main(["topology", "--machine", machine, "--store", str(tmp_path)]) == 0
    picture = capsys.readouterr().out
    assert all(workload[:8] in picture for workload in entries)


def test_rows_of_other_packages_say_nothing_of_what_is_held(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A whole agent's store is no damaged one."""
    with FileStore(tmp_path / "store", AGENT_FORMATS) as store:
        store.commit({row_key(SOURCE_ROWS, "file"): editions_to_checkpoint(Editions())})
    assert main(["topology", "--machine", MACHINE, "--store", str(tmp_path / "store")]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--policy", "single"), "--policy: unknown topology policy 'single'; choose one of none,"),
        (("--policy-options", "a=b"), "--policy-options: topology policy option a='b': expected"),
        (("--scope", "Pod"), "--scope: unknown topology scope 'Pod'; choose one of container, pod"),
        (("--cpu-options", "a=true"), "--cpu-options: CPU policy options: unknown option"),
        (("--reserved-cpus", "0-99"), "--reserved-cpus 0-99: CPUs 8-99 are not online; the machine has 0-7"),
        (
            ("--allocatable", "foo=1"),
            "--allocatable foo=1: 'foo' is no resource of a node; name cpu, memory,",
        ),
        (("--allocatable", "memory=-1"), "--allocatable memory=-1: memory: -1 is asked for"),
    ],
)
def test_a_refused_option_is_named(node: Node, option: tuple[str, str], words: str) -> None:
    """With what would be right."""
    file = node.folder / "pod.json"
    file.write_text(json.dumps(pod("web", cpu=1)))
    assert main(["admit", "--machine", MACHINE, *option, str(file)]) == 2
    assert words in node.capsys.readouterr().err


def test_a_manifest_with_another_status_is_named(node: Node) -> None:
    """By its file."""
    file = node.folder / "pod.json"
    file.write_text(json.dumps({**pod("web", cpu=1), "status": 5}))
    assert main(["admit", "--machine", MACHINE, str(file)]) == 2
    assert f"{file}: expected a mapping, found 5 @ $.status" in node.capsys.readouterr().err


def test_a_refusal_in_text_tells_why_pod_by_pod(node: Node) -> None:
    """What was wanted, what is free where, and what would help, under the pod's own name."""
    file = node.folder / "pod.json"
    file.write_text(json.dumps(pod("wide", cpu=6, memory="1Gi")))
    assert main(["admit", "--machine", MACHINE, "--policy", "single-numa-node", str(file)]) == 1
    told = node.capsys.readouterr().out
    assert told.startswith(
        "default/wide: refused, default/wide/app: TopologyAffinityError under single-numa-node"
    )
    assert "would fit under best-effort: app on " in told
    assert "Explanation(" not in told


def test_a_node_takes_110_pods_unless_it_is_told_otherwise(node: Node) -> None:
    """As a kubelet does."""
    many = [requesting(f"p{number}", cpu="10m") for number in range(112)]
    folder = node.folder
    paths = [folder / f"{number}.json" for number in range(112)]
    for path, one in zip(paths, many, strict=True):
        path.write_text(json.dumps(one))
    names = [*map(str, paths)]
    for options, taken in ([], 110), (["--allocatable", "pods=112"], 112), (["--allocatable", "pods=1"], 1):
        status = main(["admit", "--machine", MACHINE, "--format", "json", *options, *names])
        told = json.loads(node.capsys.readouterr().out)
        assert [one["verdict"] for one in told] == ["admitted"] * taken + ["refused"] * (112 - taken)
        assert {one["reason"] for one in told[taken:]} <= {"OutOfpods"}
        assert status == (0 if taken == 112 else 1)


def test_devices_stand_on_each_node_beside_those_that_a_kubelet_gave_out(tmp_path: Path, node: Node) -> None:
    """Held devices are among them with their ids; so a node with one each has two left of four."""
    root = tmp_path / "kubelet"
    (root / "device-plugins").mkdir(parents=True)
    for name in ("cpu_manager_state", "memory_manager_state"):
        shutil.copy(FILES / f"four-nodes.{name}", root / name)
    shutil.copy(
        FILES / "four-nodes.kubelet_internal_checkpoint",
        root / "device-plugins" / "kubelet_internal_checkpoint",
    )
    machine, resource = str(FILES / "four-nodes.machineinfo.json"), "example.com/deviceA"
    asked = pod("new", **{"cpu": 1, "memory": "16Mi", resource: 2})
    options = ("--reserved-cpus", "0", "--kubelet", str(root))
    _, (before,) = node.ask(*options, pods=asked, machine=machine)
    assert (before["verdict"], before["reason"]) == ("not yet", resource)
    status, (told,) = node.ask(*options, "--devices", f"{resource}=1", pods=asked, machine=machine)
    assert status == 0
    assert told["containers"]["app"]["devices"] == {resource: ["deviceA-0-0", "deviceA-3-0"]}
    asked["spec"]["containers"][0]["resources"]["limits"][resource] = 3
    status, (told,) = node.ask(*options, "--devices", f"{resource}=1", pods=asked, machine=machine)
    assert (status, told["reason"]) == (1, f"OutOf{resource}")


def test_a_kubelets_files_that_say_nothing_or_are_damaged_are_status_two(tmp_path: Path, node: Node) -> None:
    """Who holds what is not known then, so there is no answer."""
    file = node.folder / "pod.json"
    file.write_text(json.dumps(pod("web", cpu=1)))
    root = tmp_path / "kubelet"
    root.mkdir()
    command = ["admit", "--machine", MACHINE, "--kubelet", str(root), str(file)]
    assert main(command) == 2
    assert "no state file of a kubelet" in node.capsys.readouterr().err
    good = (FILES / "four-nodes.cpu_manager_state").read_text()
    (root / "cpu_manager_state").write_text(good.replace("2-3", "2-4"))
    assert main(command) == 2
    assert "cpu_manager_state" in node.capsys.readouterr().err


def test_a_list_is_taken_item_by_item(node: Node) -> None:
    """`kubectl get pods -o json` writes one; each fault says which item it is of."""
    listed = {"apiVersion": "v1", "kind": "List", "items": [pod("one", cpu=1), pod("two", cpu=1)]}
    status, told = node.ask(pods=listed)
    assert (status, [one["pod"] for one in told]) == (0, ["default/one", "default/two"])
    (node.folder / "bad.json").write_text(json.dumps({"kind": "PodList", "items": [{"kind": "Pod"}]}))
    assert main(["admit", "--machine", MACHINE, str(node.folder / "bad.json")]) == 2
    assert "bad.json, item 1" in node.capsys.readouterr().err


def test_a_resource_that_nobody_has_is_told_with_the_options_that_add_it(node: Node) -> None:
    """Who types a command knows of no snapshot."""
    file = node.folder / "pod.json"
    file.write_text(json.dumps(pod("web", **{"cpu": 1, "example.com/gpu": 1})))
    assert main(["admit", "--machine", MACHINE, str(file)]) == 1
    assert "--devices example.com/gpu=COUNT" in node.capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--reserved-cpus", "two"), "--reserved-cpus two: expected a decimal id"),
        (("--allocatable", "memory=1Gx"), "--allocatable memory=1Gx: quantity '1Gx'"),
        (("nowhere.yaml",), "nowhere.yaml: No such file or directory; name a file of manifests"),
    ],
)
def test_bad_input_is_told_by_the_name_of_its_option(
    node: Node, arguments: tuple[str, ...], said: str
) -> None:
    """Status 2, and no number of an error of the system."""
    file = node.folder / "pod.json"
    file.write_text(json.dumps(pod("web", cpu=1)))
    assert main(["admit", "--machine", MACHINE, *arguments, str(file)]) == 2
    assert f"nodealloc admit: {said}" in node.capsys.readouterr().err


@pytest.mark.parametrize(("fields", "what"), [({}, "nothing"), ({"items": {}}, "{}")])
def test_a_list_without_a_list_is_called_so(
    fields: dict[str, object], what: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a pod of another kind, with advice for controllers."""
    (tmp_path / "list.json").write_text(json.dumps({"kind": "List", **fields}))
    assert main(["admit", "--machine", MACHINE, str(tmp_path / "list.json")]) == 2
    assert f"list.json: expected a list of pods, found {what} @ $.items" in capsys.readouterr().err


def test_an_output_that_takes_nothing_ends_in_a_sentence(tmp_path: Path) -> None:
    """A disk that is full, or an output that was closed, is nobody's traceback."""
    (tmp_path / "pod.json").write_text(json.dumps(pod("web", cpu=1)))
    asked = [sys.executable, "-m", "nodealloc", "admit", "--machine", MACHINE, str(tmp_path / "pod.json")]
    with Path("/dev/full").open("w") as full:
        left = subprocess.run(asked, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert left.returncode == 2
    assert left.stderr.startswith("nodealloc admit: [Errno 28] No space left on device; see that")
    closed = subprocess.run(["sh", "-c", '"$@" >&-', "sh", *asked], capture_output=True, check=False)
    assert (closed.returncode, closed.stderr) == (0, b"")


def test_a_file_without_an_end_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A device, or a disk image that was meant for something else."""
    monkeypatch.setattr("nodealloc._cli.admit._MOST_BYTES", 1 << 20)
    assert main(["admit", "--machine", MACHINE, "/dev/zero"]) == 2
    assert capsys.readouterr().err == "nodealloc admit: /dev/zero: has more than 1 MiB; give it in parts\n"
