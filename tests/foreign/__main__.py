"""`python -m tests.foreign [--install]`: build device plugins in Go and JavaScript.

The tests marked `foreign` run them: they speak to nodealloc through other
people's gRPC. What is built stays in `.cache/foreign`. Go's packages are
Debian's (`--install` installs them, as root); JavaScript's come from npm.

Exit status: 0 when one is built at least, 75 when none can be had here; the
reasons are printed.
"""

from __future__ import annotations

import argparse
import sys

from tests.foreign.built import LANGUAGES, Absent, build, install

NOT_HERE = 75


def main() -> int:
    """Build what can be built."""
    parser = argparse.ArgumentParser(prog="python -m tests.foreign", description=__doc__)
    parser.add_argument("--install", action="store_true", help="install Debian's packages first; needs root")
    chosen = parser.parse_args()
    status = NOT_HERE
    for language in LANGUAGES:
        try:
            if chosen.install:
                install(language)
            sys.stdout.write(f"foreign: {language}: built in {build(language)}\n")
            status = 0
        except Absent as reason:
            sys.stdout.write(f"foreign: {language}: not built: {reason}\n")
    return status


if __name__ == "__main__":
    sys.exit(main())
