"""The fixtures of the kit, in a pytest run of their own."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]

LOADED = 'pytest_plugins = ["nodealloc.testing.pytest_plugin"]\n'


def outcomes(pytester: pytest.Pytester, code: str) -> dict[str, int]:
    """What comes of a test file beside a conftest that asks for the plugin."""
    pytester.makeconftest(LOADED)
    pytester.makepyfile(code)
    known = "-Wignore:Module already imported:pytest.PytestAssertRewriteWarning"
    return pytester.runpytest("--strict-markers", "-p", "no:cacheprovider", known).parseoutcomes()


def test_machines_come_from_markers_parameters_and_by_themselves(pytester: pytest.Pytester) -> None:
    """A marker, an indirect parameter as text or value, and the default."""
    code = """
        import pytest
        from nodealloc.machine import machine_from_text

        def test_default(machine):
            assert len(machine.online) == 16

        @pytest.mark.machine("1 socket x 2 cores")
        def test_marked(machine):
            assert len(machine.online) == 2

        @pytest.mark.parametrize(
            "machine", ["1 socket x 3 cores", machine_from_text("1 socket x 3 cores")], indirect=True
        )
        def test_parameter(machine):
            assert len(machine.online) == 3
    """
    assert outcomes(pytester, code) == {"passed": 4}


def test_a_machine_of_nonsense_is_named(pytester: pytest.Pytester) -> None:
    """A number is no machine."""
    code = """
        import pytest

        @pytest.mark.machine(7)
        def test_it(machine):
            pass
    """
    pytester.makeconftest(LOADED)
    pytester.makepyfile(code)
    result = pytester.runpytest("-p", "no:cacheprovider")
    result.stdout.fnmatch_lines(["*takes a text or a Machine, found 7*"])
    result.assert_outcomes(errors=1)


def test_a_marker_without_its_text_says_how_to_write_it(pytester: pytest.Pytester) -> None:
    """It was an IndexError of the plugin's; by name the text counts as well."""
    code = """
        import pytest

        @pytest.mark.machine
        def test_bare(machine): pass

        @pytest.mark.machine(machine="1 socket x 4 cores")
        def test_another_name(machine): pass

        @pytest.mark.machine(text="1 socket x 3 cores")
        def test_by_name(machine):
            assert len(machine.online) == 3
    """
    pytester.makeconftest(LOADED)
    pytester.makepyfile(code)
    result = pytester.runpytest("--strict-markers", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(["*the marker machine takes one text: @pytest.mark.machine(*"] * 2)


def test_a_node_admits_and_survives_a_restart(pytester: pytest.Pytester) -> None:
    """What one node decided, the next one holds; the runtime is asked by both."""
    code = """
        from nodealloc.podspec import Pod
        from nodealloc.topology import Admitted, NotYet, Owner

        LIMITS = {"cpu": 2, "memory": "1Gi"}
        POD = Pod.from_manifest({"metadata": {"name": "db", "uid": "db"},
            "spec": {"containers": [{"name": "app", "resources": {"limits": LIMITS}}]}})

        def test_it(node, restart, fake_runtime, snapshot):
            assert isinstance(node.admit(POD), Admitted)
            mine = node.before_start(Owner("db", "app"), "1").cpus
            fake_runtime.reachable = False
            later = restart()
            assert later.admit(POD).repeated
            assert later.before_start(Owner("db", "app"), "1").cpus == mine
            assert isinstance(later.admit(Pod.from_manifest({"metadata": {"name": "new"},
                "spec": {"containers": [{"name": "app"}]}})), NotYet)
            node.release("db")
            assert node.snapshot.allocators == snapshot.allocators
    """
    assert outcomes(pytester, code) == {"passed": 1}


def test_what_a_test_file_overrides_counts_for_all_below(pytester: pytest.Pytester) -> None:
    """Allocators and policy of one's own are in the snapshot and in the node."""
    code = """
        import pytest
        from nodealloc.testing.topology import FakeAllocator, workload
        from nodealloc.topology import Admitted, Policy, Refusal, admit

        @pytest.fixture
        def allocators():
            return (FakeAllocator.of("example.com/gpu", {0: 2, 1: 2}),)

        @pytest.fixture
        def topology_policy():
            return Policy.parse("single-numa-node")

        def test_it(snapshot):
            assert isinstance(admit(snapshot, workload("a", {"example.com/gpu": 2})), Admitted)
            assert isinstance(admit(snapshot, workload("b", {"example.com/gpu": 3})), Refusal)
    """
    assert outcomes(pytester, code) == {"passed": 1}


def test_time_work_and_cgroups_are_the_tests(pytester: pytest.Pytester) -> None:
    """The clock stands, the executor waits, the cgroup tree is a folder of files."""
    code = """
        from nodealloc.cgroups import CgroupName, Limits

        def test_it(virtual_clock, manual_executor, cgroups, tmp_path):
            virtual_clock.advance(5)
            assert virtual_clock.monotonic_s() == 5
            future = manual_executor.submit(int, "7")
            assert not future.done()
            manual_executor.run_all()
            assert future.result() == 7
            cgroups.apply(CgroupName.of("web"), Limits(memory_bytes=1 << 20))
            assert (tmp_path / "cgroup" / "web" / "memory.max").read_text().strip() == "1048576"
    """
    assert outcomes(pytester, code) == {"passed": 1}


def test_nothing_loads_by_itself(pytester: pytest.Pytester) -> None:
    """Without the line in `conftest.py` there is no such fixture."""
    pytester.makepyfile("def test_it(virtual_clock): pass")
    assert pytester.runpytest("-p", "no:cacheprovider").parseoutcomes() == {"errors": 1}
