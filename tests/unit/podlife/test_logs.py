"""A runtime that keeps logs beside its containers: folders before, links meanwhile, nothing afterwards."""

from __future__ import annotations

import contextlib
import errno
import os
from pathlib import Path

import attrs
import pytest

from nodealloc.podfacts import PodIdentity
from nodealloc.podlife import LoggedRuntime
from nodealloc.runtime import (
    CommandResult,
    ContainerConfig,
    LinuxResources,
    NoSuchRecordError,
    PodListing,
    PodReport,
    SandboxConfig,
)
from nodealloc.testing.dsw_asw import ManualCancel
from nodealloc.testing.runtime import (
    FakeContainerRuntime,
    check_containers,
    check_event_feed,
    check_images,
    check_looks,
    check_sandboxes,
)

APP = ContainerConfig(name="app", image="busybox", log_path="app/0.log")


class Writing(FakeContainerRuntime):
    """Says where each container's log is."""

    logs: Path

    @classmethod
    def below(cls, folder: Path) -> Writing:
        """Whose logs are in a folder."""
        made = cls()
        made.logs = folder / "default_u_u/app"
        made.logs.mkdir(parents=True)
        return made

    def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
        """With a file for each container."""
        report = super().inspect(uid, listed)
        told = [
            attrs.evolve(one, log_path=str(self.logs / f"{one.record.id}.log")) for one in report.containers
        ]
        return attrs.evolve(report, containers=tuple(told))


def box(uid: str, logs: str = "") -> SandboxConfig:
    """A pod's sandbox."""
    return SandboxConfig(pod=PodIdentity(uid=uid, namespace="default", name=uid), log_directory=logs)


def test_it_keeps_every_promise_of_the_runtime_below_it() -> None:
    """All calls are passed on."""
    check_sandboxes(LoggedRuntime(FakeContainerRuntime()), box("u"))
    check_containers(LoggedRuntime(FakeContainerRuntime()), box("u"), APP)
    check_looks(LoggedRuntime(FakeContainerRuntime()), [box("u"), box("v")])
    check_images(LoggedRuntime(FakeContainerRuntime()), "another")
    fake, cancel = FakeContainerRuntime(), ManualCancel()
    logged = LoggedRuntime(fake)
    uids = iter("uw")
    check_event_feed(logged, lambda: logged.run_sandbox(box(next(uids))), cancel, cancel.set)
    assert logged.health() == fake.health()
    made = logged.create_container(logged.run_sandbox(box("v")), APP, box("v"))
    logged.start_container(made)
    logged.update_container(made, LinuxResources(memory_bytes=1 << 20))
    assert ("update_container", made) in [tuple(call.split()[:2]) for call in fake.calls]
    assert isinstance(logged.run_command(made, ("true",), 1.0), CommandResult)


def test_a_log_has_a_folder_before_it_a_link_and_no_life_after_its_container(tmp_path: Path) -> None:
    """Links are named by pod, name space, container and id; who comes later finds them made."""
    fake = Writing.below(tmp_path)
    (tmp_path / "links").mkdir()
    where = box("u", str(tmp_path / "u"))
    logged = LoggedRuntime(fake, links=tmp_path / "links")
    made = logged.create_container(logged.run_sandbox(where), APP, where)
    assert (tmp_path / "u" / "app").is_dir()
    (fake.logs / f"{made}.log").write_text("words\n")
    logged.inspect("u")
    assert list((tmp_path / "links").iterdir()) == []  # it has not begun
    logged.start_container(made)
    for runtime in (logged, logged, LoggedRuntime(fake, links=tmp_path / "links")):
        runtime.inspect("u")
    (link,) = (tmp_path / "links").iterdir()
    assert link.name == f"u_default_app-{made}.log"
    assert link.read_text() == "words\n"
    logged.remove_container(made)
    assert not (fake.logs / f"{made}.log").exists()
    assert list((tmp_path / "links").iterdir()) == []


def test_a_log_that_could_not_be_removed_goes_at_the_next_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a disk that was read-only for a while; the container itself is gone by then."""
    fake = Writing.below(tmp_path)
    logged = LoggedRuntime(fake)
    made = logged.create_container(logged.run_sandbox(box("u")), APP, box("u"))
    log = fake.logs / f"{made}.log"
    log.touch()
    logged.inspect("u")

    def read_only(path: Path, *, missing_ok: bool = False) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS), f"{path}{missing_ok}")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "unlink", read_only)
        with pytest.raises(OSError, match="Read-only"):
            logged.remove_container(made)
    with contextlib.suppress(NoSuchRecordError):
        logged.remove_container(made)
    assert not log.exists()


def test_without_links_the_log_goes_as_well(tmp_path: Path) -> None:
    """A container of which nobody asked has none that is known."""
    fake = Writing.below(tmp_path)
    logged = LoggedRuntime(fake)
    sandbox = logged.run_sandbox(box("u"))
    first = logged.create_container(sandbox, APP, box("u"))
    (fake.logs / f"{first}.log").touch()
    logged.inspect("u")
    logged.remove_container(first)
    assert not (fake.logs / f"{first}.log").exists()
    logged.remove_container("nobody")


def test_a_log_goes_with_what_was_put_aside_of_it(tmp_path: Path) -> None:
    """What another instance wrote stays."""
    fake = Writing.below(tmp_path)
    logged = LoggedRuntime(fake)
    sandbox = logged.run_sandbox(box("u"))
    first = logged.create_container(sandbox, APP, box("u"))
    for name in (
        f"{first}.log",
        f"{first}.log.20260101-000000",
        f"{first}.log.20251231-000000.gz",
        "other.log",
    ):
        (fake.logs / name).touch()
    logged.inspect("u")
    logged.remove_container(first)
    assert [one.name for one in fake.logs.iterdir()] == ["other.log"]


def test_a_link_is_made_to_a_log_that_is_there(tmp_path: Path) -> None:
    """However long the names are; one that cannot be made yet is made later."""
    fake = Writing.below(tmp_path)
    (tmp_path / "links").mkdir()
    logged = LoggedRuntime(fake, links=tmp_path / "links")
    where = attrs.evolve(box("u"), pod=PodIdentity(uid="u", namespace="n" * 63, name="p" * 253))
    made = logged.create_container(logged.run_sandbox(where), APP, where)
    logged.start_container(made)
    logged.inspect("u")
    assert not list((tmp_path / "links").iterdir())
    (fake.logs / f"{made}.log").touch()
    logged.inspect("u")
    (link,) = (tmp_path / "links").iterdir()
    assert (len(link.name), link.suffix) == (255, ".log")
    logged.remove_container(made)
    assert not list((tmp_path / "links").iterdir())


def test_the_folder_of_a_pods_logs_goes_with_its_last_sandbox(tmp_path: Path) -> None:
    """By another life of the program, too; what is in a folder of another name stays."""

    class Below(Writing):
        def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
            report = super().inspect(uid, listed)
            told = [attrs.evolve(one, log_path=f"{folder}/app/0.log") for one in report.containers]
            return attrs.evolve(report, containers=tuple(told))

    folder = tmp_path / "default_u_u"
    fake = Below()
    fake.logs = tmp_path
    where = box("u", str(folder))
    logged = LoggedRuntime(fake)
    first = logged.run_sandbox(where)
    second = logged.run_sandbox(attrs.evolve(where, attempt=1))
    made = logged.create_container(second, APP, where)
    (folder / "app/0.log.old").touch()
    logged.remove_sandbox(first)
    assert (folder / "app").is_dir()
    again = LoggedRuntime(fake)
    again.inspect("u")
    again.remove_container(made)
    again.remove_sandbox(second)
    assert not folder.exists()
    other = box("v", str(tmp_path / "mine"))
    again.remove_sandbox(again.run_sandbox(other))
    assert (tmp_path / "mine").is_dir()


@pytest.mark.parametrize(
    "where", ["/", "{}/keep", "{}/default_u_u/../keep", "{}/default_v_v/app/keep", "x" * 5000, "a\0"]
)
def test_no_other_file_goes_with_a_container(tmp_path: Path, where: str) -> None:
    """A runtime that names anything else for a log has nothing of it removed, nor linked."""

    class Astray(Writing):
        def inspect(self, uid: str, listed: PodListing | None = None, /) -> PodReport:
            report = super().inspect(uid, listed)
            told = [attrs.evolve(one, log_path=where.format(tmp_path)) for one in report.containers]
            return attrs.evolve(report, containers=tuple(told))

    (tmp_path / "keep").touch()
    (tmp_path / "default_v_v/app").mkdir(parents=True)
    (tmp_path / "default_v_v/app/keep").touch()
    fake = Astray.below(tmp_path)
    (tmp_path / "links").mkdir()
    logged = LoggedRuntime(fake, links=tmp_path / "links")
    made = logged.create_container(logged.run_sandbox(box("u")), APP, box("u"))
    logged.start_container(made)
    logged.inspect("u")
    logged.remove_container(made)
    assert len([*tmp_path.rglob("keep")]) == 2
    assert not [*(tmp_path / "links").iterdir()]


def test_a_folder_of_links_that_is_away_keeps_nobody_from_looking(tmp_path: Path) -> None:
    """Links are made once it is there again; a directory in place of a log is somebody's."""
    fake = Writing.below(tmp_path)
    logged = LoggedRuntime(fake, links=tmp_path / "links")
    made = logged.create_container(logged.run_sandbox(box("u")), APP, box("u"))
    logged.start_container(made)
    (fake.logs / f"{made}.log").mkdir()
    assert logged.inspect("u").containers
    (tmp_path / "links").mkdir()
    logged.inspect("u")
    assert len([*(tmp_path / "links").iterdir()]) == 1
    logged.remove_container(made)
    assert (fake.logs / f"{made}.log").is_dir()
    assert not [*(tmp_path / "links").iterdir()]


def test_links_of_containers_that_went_unseen_are_taken_away(tmp_path: Path) -> None:
    """While nobody was here; not those of containers that are listed, nor what is no link to a log."""
    fake, links = Writing.below(tmp_path), tmp_path / "links"
    links.mkdir()
    logged = LoggedRuntime(fake, links=links)
    where = attrs.evolve(box("u"), pod=PodIdentity(uid="u", namespace="n" * 63, name="p" * 180))
    made = logged.create_container(logged.run_sandbox(where), APP, where)
    logged.start_container(made)
    (fake.logs / f"{made}.log").touch()
    logged.inspect("u")
    (mine,) = links.iterdir()
    (fake.logs / f"{made}.log").unlink()  # put aside, and not opened anew yet
    (fake.logs / "other.log").touch()
    for name, to in (("gone_n_app-1.log", "gone.log"), ("old_n_app-2.log", "other.log"), ("own", "gone.log")):
        (links / name).symlink_to(fake.logs / to)
    (links / "file.log").touch()
    later = LoggedRuntime(fake, links=links)
    later.settle()
    assert {one.name for one in links.iterdir()} == {mine.name, "old_n_app-2.log", "own", "file.log"}
    LoggedRuntime(fake).settle()
    LoggedRuntime(fake, links=tmp_path / "none").settle()


@pytest.mark.parametrize("was_here", [True, False])
def test_logs_of_a_pod_whose_sandboxes_somebody_else_removed_go_once_it_is_forgotten(
    tmp_path: Path, *, was_here: bool
) -> None:
    """With the links to them, also where that happened while nobody was here; nobody else's go."""
    fake, links, logs = Writing.below(tmp_path / "logs"), tmp_path / "links", tmp_path / "logs"
    links.mkdir()
    mine, other = logs / "default_u_u", logs / "default_v_v"
    other.mkdir()
    logged = LoggedRuntime(fake, links=links, logs=logs)
    sandbox = logged.run_sandbox(box("u", str(mine)))
    made = logged.create_container(sandbox, APP, box("u", str(mine)))
    logged.start_container(made)
    (fake.logs / f"{made}.log").touch()
    logged.inspect("u")
    assert [*links.iterdir()]
    fake.lose_records(made, sandbox)
    later = logged if was_here else LoggedRuntime(fake, logs=logs)
    later.forget("u")
    assert [*logs.iterdir()] == [other]
    assert was_here is not any(links.iterdir())
    later.forget("u")
    LoggedRuntime(fake).forget("u")
    LoggedRuntime(fake, logs=tmp_path / "none").forget("u")


def test_logs_of_a_pod_that_comes_again_stay(tmp_path: Path) -> None:
    """Its sandbox is being made as the one before it is forgotten."""
    logs = tmp_path / "default_u_u"

    class Slow(FakeContainerRuntime):
        def run_sandbox(self, config: SandboxConfig, /) -> str:
            logged.forget("u")
            return super().run_sandbox(config)

    logged = LoggedRuntime(Slow(), logs=tmp_path)
    logged.run_sandbox(box("u", str(logs)))
    assert logs.is_dir()
