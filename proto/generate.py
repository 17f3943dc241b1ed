"""Compile the protocol files of this folder into `src/nodealloc/_proto/`.

    python proto/generate.py [TARGET]      (needs grpcio-tools 1.62.3 and nothing else)

That generator's code is understood by protobuf 4.21.12 and by every later one
that was tried, up to 7; code of a newer generator is refused by older
libraries. Messages go into a descriptor pool of their own: a program that
brings another module for the same wire package, as other people's `api_pb2.py`
do, could not import both otherwise.
"""
# ruff: noqa: INP001 - a script beside its sources, no package

from __future__ import annotations

import sys
from pathlib import Path

from grpc_tools import protoc

HERE = Path(__file__).resolve().parent
TARGET = HERE.parent / "src"
PACKAGE = Path("nodealloc/_proto")

SHARED_POOL = "_descriptor_pool.Default()"
OWN_POOL = "_descriptor_pool.DescriptorPool()"


def main(target: Path = TARGET) -> int:
    """Write `_pb2.py` and `_pb2.pyi` for every protocol file; the exit status is protoc's."""
    sources = sorted(str(path.relative_to(HERE)) for path in (HERE / PACKAGE).glob("*.proto"))
    status = protoc.main(["protoc", f"-I{HERE}", f"--python_out={target}", f"--pyi_out={target}", *sources])
    if status:
        return status
    for source in sources:
        module = target / source.replace(".proto", "_pb2.py")
        text = module.read_text(encoding="utf-8")
        if text.count(SHARED_POOL) != 1:
            sys.stderr.write(f"{module}: expected one {SHARED_POOL}; is this grpcio-tools 1.62.3?\n")
            return 1
        module.write_text(text.replace(SHARED_POOL, OWN_POOL), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(*map(Path, sys.argv[1:2])))
