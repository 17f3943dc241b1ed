"""The one list of checks. `nox --list` shows them; `python3 dev.py NAME` sets up and runs one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import nox

HERE = Path(__file__).parent
CACHE = HERE / ".cache"
PROJECT = nox.project.load_toml(HERE / "pyproject.toml")
VM_NOT_HERE = 75  # the virtual machine cannot be had; the reason was printed
CRI_NOT_HERE = 75  # no container runtime can be had; the reasons were printed
FOREIGN_NOT_HERE = 75  # no other language can be had; the reasons were printed
SUPPORTED = nox.project.python_versions(PROJECT)

nox.options.default_venv_backend = "venv"
nox.options.error_on_missing_interpreters = False
nox.options.reuse_existing_virtualenvs = True
nox.options.sessions = ["lint", "types", "tests", "docs", "wheel"]

for variable, folder in (("PIP_CACHE_DIR", "pip"), ("PYRIGHT_PYTHON_CACHE_DIR", "pyright")):
    os.environ.setdefault(variable, str(CACHE / folder))
# Modules are compiled once, beside their sources: the sessions start hundreds of processes that import all.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


def _works(python: str) -> bool:
    """Whether an interpreter starts and can make environments; a version manager's stub does not."""
    probe = [python, "-c", "import ensurepip, venv"]
    try:
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:  # it may be seen and not be run
        return False


def _managed(version: str) -> list[Path]:
    """Where a version manager keeps interpreters of a version; nothing where nobody may look."""
    try:
        root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
        return sorted((root / "versions").glob(f"{version}.*/bin"))
    except (OSError, RuntimeError):  # somebody else's, inherited with the environment; no home at all
        return []


def _installed() -> list[str]:
    """Supported Pythons of this machine, those of a version manager's folder included."""
    found: list[str] = []
    for version in SUPPORTED:
        if _works(f"python{version}") if shutil.which(f"python{version}") else False:
            found.append(version)
            continue
        for folder in _managed(version):
            if _works(str(folder / f"python{version}")):
                os.environ["PATH"] = f"{folder}{os.pathsep}{os.environ['PATH']}"
                found.append(version)
                break
    return found or [f"{sys.version_info.major}.{sys.version_info.minor}"]


PYTHONS = _installed()


def _pytest(session: nox.Session, *words: str, mark: str = "", env: dict[str, str] | None = None) -> None:
    """Run pytest with a temporary folder that is gone afterwards; its path is short, for sockets."""
    with tempfile.TemporaryDirectory(prefix="na-") as folder:
        arguments = (f"--basetemp={folder}/t", "-m", mark, *words, *session.posargs)
        session.run("pytest", *arguments, env={"TMPDIR": folder, **(env or {})})


@nox.session(python=PYTHONS)
def tests(session: nox.Session) -> None:
    """Unit, golden, property and real tests; the slow ones on the first Python only.

    In CI, which has half an hour, the first Python takes them all, the newest recorded facts and the engine.
    """
    is_first = session.python == PYTHONS[0]
    if "CI" in os.environ and session.python not in {PYTHONS[0], PYTHONS[-1]}:
        session.skip("in CI the oldest and the newest Python")
    session.install("-e", ".[test]")
    words = ["-n", "auto", "--dist", "worksteal"]
    if "CI" in os.environ and not is_first:
        words += ["tests/golden", "tests/unit/dsw_asw"]
    _pytest(session, *words, mark="" if is_first else "not slow and not vm")
    if is_first and os.environ.get("CI"):
        _fresh_lives(session)
    if session.python == PYTHONS[-1] and os.environ.get("CI"):
        session.notify("vm", posargs=["--short", "--apart"])
        session.notify(
            "cri", posargs=["--version", "1.7", "--seconds", "180", "--", "-m", "cri and not slow"]
        )


def _fresh_lives(session: nox.Session) -> None:
    """Lives of whole nodes by both wirings, with seeds that each change of the code draws anew."""
    for wiring in ((), ("--wiring", "examples.agent.simulated:agent")):
        words = ("--seed-of", "src", "examples/agent", "--seconds", "90", "--faults", "3600", *wiring)
        session.run("python", "-m", "nodealloc.testing.simulation", *words)


@nox.session(python=PYTHONS[0])
def simulation(session: nox.Session) -> None:
    """Whole nodes under simulation, with fresh seeds, and planted bugs; `-- --seconds 3600` for an hour."""
    session.install("-e", ".[test]")
    words = session.posargs or ("--seconds", "180")
    session.run("python", "-m", "nodealloc.testing.simulation", *words)
    if not session.posargs:
        planted = ("tests/unit/node/test_simulation.py", "tests/unit/node/test_simulation_mutants.py")
        _pytest(session, "-n", "auto", *planted, env={"NODEALLOC_HYPOTHESIS": "ci"})


@nox.session
def properties(session: nox.Session) -> None:
    """The laws, with many more examples than `tests` takes, and proofs by an independent solver.

    400 examples each, or as many as `NODEALLOC_EXAMPLES` says.
    """
    session.install("-e", ".[test,proof]")
    million = "tests/unit/dsw_asw/test_faults.py"  # its longest run
    _pytest(session, "-n", "auto", "tests/property", million, env={"NODEALLOC_HYPOTHESIS": "ci"})


@nox.session(python=PYTHONS[0])
def minimum(session: nox.Session) -> None:
    """Tests on the lowest dependencies that are declared."""
    lowest = [need.replace(">=", "==") for need in PROJECT["project"]["dependencies"]]
    session.install("-e", ".[test]")
    session.install(*lowest)
    _pytest(session, mark="not slow")


@nox.session
def types(session: nox.Session) -> None:
    """Types under mypy and pyright, both strict, and the completeness of the public types."""
    session.install(
        "-e", ".[test]", "mypy>=1.13", "pyright[nodejs]>=1.1.390", "types-PyYAML", "types-protobuf", "nox"
    )
    session.run("mypy")
    session.run("pyright")
    session.run("pyright", "--verifytypes", "nodealloc", "--ignoreexternal")


@nox.session
def lint(session: nox.Session) -> None:
    """ruff, and who may import whom."""
    session.install("-e", ".", "ruff>=0.8", "import-linter>=2.1")
    session.run("ruff", "check")
    session.run("ruff", "format", "--check")
    session.run("lint-imports")


@nox.session
def docs(session: nox.Session) -> None:
    """Build the pages with warnings as errors, and run every example in them."""
    session.install("-e", ".[docs]")
    session.run(
        "pytest", "--doctest-glob=*.md", "--doctest-modules", "README.md", "docs", "src/nodealloc", "-q"
    )
    session.run(
        "sphinx-build",
        "-nW",
        "--keep-going",
        "-q",
        "-b",
        "html",
        "docs",
        "docs/_build/html",
        *session.posargs,
    )


@nox.session
def wheel(session: nox.Session) -> None:
    """Build sdist and wheel, and run the tests against the wheel without the source tree."""
    session.install("build")
    place = HERE / "build" / "wheel"  # not the session's own folder: sockets need short paths
    shutil.rmtree(place, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(place / "dist"))
    (built,) = (place / "dist").glob("*.whl")
    session.install(f"{built}[test]", "--force-reinstall", "--no-deps")
    session.install(f"{built}[test]")
    for folder in ("tests", "examples", "bench", "docs"):
        shutil.copytree(HERE / folder, place / folder)
    shutil.copy(HERE / "pyproject.toml", place)
    session.chdir(place)
    outside = "import nodealloc; assert 'site-packages' in nodealloc.__file__, nodealloc.__file__"
    session.run("python", "-c", outside)
    _pytest(session, "-n", "auto", mark="not slow and not tree")


@nox.session
def bench(session: nox.Session) -> None:
    """One table of figures and ratios over all packages, as text, JSON and SVG."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "bench", *session.posargs)


def _agent(session: nox.Session, module: str) -> None:
    """Run a module of the example agent; with real containers in namespaces of their own."""
    session.install("-e", ".[agent,test]")
    if "containerd" in session.posargs:
        inside = ("tests.cri", "--version", "1.7", "--seconds", "7200", "--module", module, "--")
        session.run("python", "-m", *inside, *session.posargs, success_codes=[0, CRI_NOT_HERE])
    else:
        session.run("python", "-m", module, *session.posargs)


@nox.session
def demo(session: nox.Session) -> None:
    """The example agent on this machine; `-- --runtime containerd` with real containers."""
    _agent(session, "examples.agent.demo")


@nox.session
def soak(session: nox.Session) -> None:
    """The agent under random pods and SIGKILL; `-- --runtime containerd` with real containers."""
    _agent(session, "examples.agent.soak")


@nox.session(python=PYTHONS[0])
def vm(session: nox.Session) -> None:
    """What needs four real NUMA nodes and cgroup v2, in a virtual machine; skipped where it cannot boot."""
    session.install("-e", ".[test]")
    session.run(
        "python",
        "-m",
        "tests.vm",
        *([] if "CI" in os.environ else ["--demo"]),  # many times slower in there than outside
        "--seconds",
        "600",
        *session.posargs,
        success_codes=[0, VM_NOT_HERE],
    )


@nox.session(python=PYTHONS[0])
def foreign(session: nox.Session) -> None:
    """Device plugins in Go and JavaScript; `-- --install`, as root, installs Debian's packages first."""
    session.install("-e", ".[test]")
    building = ("python", "-m", "tests.foreign", *session.posargs)
    session.run(*building, success_codes=[0, FOREIGN_NOT_HERE])
    with tempfile.TemporaryDirectory(prefix="na-") as folder:
        session.run("pytest", "-m", "foreign", "-rs", "tests/real", env={"TMPDIR": folder})


@nox.session(python=PYTHONS[0])
def cri(session: nox.Session) -> None:
    """Real containers on Debian's containerd, in namespaces of their own; `-- --version 2.1` for another.

    In CI a tenth of the recorded stories as well.
    """
    session.install("-e", ".[agent,test]")
    session.run("python", "-m", "tests.cri", *session.posargs, success_codes=[0, CRI_NOT_HERE])
    if os.environ.get("CI"):
        session.run(
            "python", "-m", "tests.stories", "--short", "--tries", "3", success_codes=[0, CRI_NOT_HERE]
        )


@nox.session(python=PYTHONS[0])
def kills(session: nox.Session) -> None:
    """SIGKILL at every call of runtime and store, on processes and on containerd; `-- 2/4` for a part."""
    session.install("-e", ".[agent,test]")
    part = session.posargs[0] if session.posargs else "1/1"
    env = {"NODEALLOC_KILL_EVERY": "1", "NODEALLOC_KILL_PART": part}
    only = ("-k", "killed_at_many_calls", "-rP")
    session.run("pytest", "tests/real/test_podlife_killed.py", *only, env=env)
    inside = ("tests.cri", "--version", "1.7", "--seconds", "7200", "--", *only)
    session.run("python", "-m", *inside, env=env, success_codes=[0, CRI_NOT_HERE])


@nox.session(python=PYTHONS[0])
def stories(session: nox.Session) -> None:
    """What a kubelet was seen to do, done again by the agent and compared; `-- FILE…` names the stories."""
    session.install("-e", ".[agent,test]")
    session.run("python", "-m", "tests.stories", *session.posargs, success_codes=[0, CRI_NOT_HERE])


@nox.session
def protos(session: nox.Session) -> None:
    """Generate `_proto/` anew, with the generator whose code every protobuf of the declared range takes."""
    session.install("grpcio-tools==1.62.3", "setuptools<81")
    session.run("python", "proto/generate.py", *session.posargs)


@nox.session
def scheduler(session: nox.Session) -> None:
    """The scheduler example in a process pool and on a Dask cluster of this machine."""
    session.install("-e", ".[test,scheduler]")
    for how in ("here", "pool", "dask"):
        session.run("python", "-m", "examples.scheduler", "--how", how, *session.posargs)
