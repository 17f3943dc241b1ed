"""What the kernel does not say of a cgroup: nobody takes it for empty."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path

import pytest

from nodealloc.cgroups import CgroupBusyError, CgroupFs, CgroupMount, CgroupName, Layout, Limits, stand_in
from nodealloc.cgroups._files import KernelFiles

POD = CgroupName.parse("/kubepods/pod1")


class Failing(KernelFiles):
    """Reads no list of processes."""

    number = errno.EIO

    def read(self, path: str, /) -> str | None:
        """As the kernel does, but for one file."""
        if path.endswith("/cgroup.procs"):
            raise OSError(self.number, os.strerror(self.number), path)
        return super().read(path)


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOMEM, errno.EMFILE])
def test_a_cgroup_whose_processes_nobody_can_read_is_not_without_any(tmp_path: Path, number: int) -> None:
    """Whoever wants them ended, or the cgroup gone, hears of it: it was said to hold none."""
    files, place = Failing(), tmp_path / "kubepods" / "pod1"
    files.number = number
    (place / "inner").mkdir(parents=True)
    layout = Layout(mounts=(CgroupMount(version=2, path=str(tmp_path), controllers=()),))
    driver = CgroupFs(layout, files=files)
    for call in (driver.pids, driver.kill, driver.remove):
        with pytest.raises(OSError, match=os.strerror(number)):
            call(POD)
    assert (place / "inner").is_dir()
    files.number = errno.EOPNOTSUPP
    assert driver.pids(POD) == frozenset(), "a threaded cgroup lists its processes further up"


def test_a_process_of_a_stand_in_that_nobody_can_read_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its cgroup is not removed while too many files are open: who is in it may run on."""
    driver, real = stand_in(tmp_path), Path.read_text
    driver.apply(POD.parent, Limits())
    driver.apply(POD, Limits())
    with subprocess.Popen(["sleep", "60"]) as process:
        try:
            driver.attach(POD, process.pid)

            def fail(self: Path, *given: str, **more: str) -> str:
                if self.name == "stat":
                    raise OSError(errno.EMFILE, os.strerror(errno.EMFILE), str(self))
                return real(self, *given, **more)

            with monkeypatch.context() as failing:
                failing.setattr(Path, "read_text", fail)
                assert driver.pids(POD) == {process.pid}
                with pytest.raises(CgroupBusyError):
                    driver.remove(POD)
            assert driver.exists(POD)
        finally:
            process.kill()
    driver.remove(POD)
    assert not driver.exists(POD)
