"""Sets up everything that the project's checks need, inside the clone, and runs one.

    python3 dev.py demo          the example agent on this machine
    python3 dev.py tests         the tests, on every Python from 3.11 up that is installed
    python3 dev.py --list        all checks

Needs Python 3.11 or later with its `venv` module, and a package index that pip
reaches. It installs nox into `.venv/` and lets it do the rest; caches stay in
`.cache/`. Nothing outside the clone is written. This file keeps to a syntax
that old Pythons read, so that they can say what is missing.
"""

import os
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
VENV = os.path.join(HERE, ".venv")
CACHE = os.path.join(HERE, ".cache")
STAMP = os.path.join(VENV, "ready")
NOX = "nox>=2024.4.15"
OLDEST = (3, 11)
NEWEST = (3, 15)
NO_SUCH_CHECK = 3  # as nox ends then


def stop(message):
    """Say what is missing, and end."""
    sys.stderr.write("dev.py: %s\n" % message)
    raise SystemExit(2)


def surroundings():
    """Environment in which every tool keeps its files inside the clone."""
    inside = dict(os.environ)
    for name in ("PYTHONHOME", "PYTHONPATH", "PIP_TARGET", "PIP_PREFIX", "PIP_USER", "VIRTUAL_ENV"):
        inside.pop(name, None)
    inside["PIP_CACHE_DIR"] = os.path.join(CACHE, "pip")
    inside["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    inside["PIP_REQUIRE_VIRTUALENV"] = "1"
    inside["PYRIGHT_PYTHON_CACHE_DIR"] = os.path.join(CACHE, "pyright")
    inside["MPLCONFIGDIR"] = os.path.join(CACHE, "matplotlib")
    inside["XDG_CACHE_HOME"] = CACHE
    if os.path.expanduser("~") == "~":  # a user without a passwd entry and without HOME
        inside["HOME"] = CACHE
    return inside


def newer_python():
    """Another interpreter on this machine that is new enough, or None."""
    which = getattr(shutil, "which", lambda _name: None)  # Python 2 has none
    for minor in range(NEWEST[1], OLDEST[1] - 1, -1):
        found = which("python3.%d" % minor)
        if found and subprocess.call([found, "-c", ""], stderr=subprocess.DEVNULL) == 0:
            return found
    return None


def check_python():
    """Go on with a Python that is new enough and has venv, or say what is missing."""
    if sys.version_info < OLDEST:
        other = newer_python()
        if other is None:
            version = "%d.%d" % sys.version_info[:2]
            stop("Python 3.11 or later is needed, this is %s; install one and call it" % version)
        os.execv(other, [other, os.path.abspath(__file__)] + sys.argv[1:])
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError as missing:
        stop(
            "the module %s of %s is missing; on Debian and Ubuntu: apt-get install python3-venv"
            % (missing.name, sys.executable)
        )


def run(command, what, environment):
    """Run a command of the set-up; where it fails, show what it said and end."""
    done = subprocess.run(
        command, cwd=HERE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout.decode(errors="replace"))
        stop("%s failed (see above); mend it and call again, the set-up then starts anew" % what)


def prepare(environment):
    """Make `.venv` with nox in it, once; a set-up that was cut off is begun anew."""
    if os.path.exists(STAMP):
        return
    try:
        shutil.rmtree(VENV, ignore_errors=True)
        os.makedirs(CACHE, exist_ok=True)
        sys.stderr.write("dev.py: setting up .venv, once\n")
        run([sys.executable, "-m", "venv", VENV], "making a virtual environment in .venv", environment)
    except OSError as error:
        stop("the clone cannot be written: %s" % error)
    pip = [os.path.join(VENV, "bin", "python"), "-m", "pip", "install", "--quiet", NOX]
    run(pip, "installing nox from the package index", environment)
    with open(STAMP, "w") as stamp:
        stamp.write(NOX + "\n")


def main(arguments):
    """Run nox with the session that is named."""
    if not arguments or arguments[0] in ("-h", "--help"):
        sys.stdout.write(__doc__ + "\n")
        return 0
    check_python()
    environment = surroundings()
    prepare(environment)
    if arguments[0].startswith("-"):
        words = arguments
    else:
        words = ["-s", arguments[0]] + arguments[1:]
    nox = [os.path.join(VENV, "bin", "python"), "-m", "nox", "-f", os.path.join(HERE, "noxfile.py")]
    status = subprocess.call(nox + words, cwd=HERE, env=environment)
    if status == NO_SUCH_CHECK:
        sys.stderr.write("dev.py: python3 dev.py --list shows what there is\n")
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
