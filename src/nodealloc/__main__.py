"""`python -m nodealloc COMMAND`."""

from nodealloc._cli import main

if __name__ == "__main__":
    raise SystemExit(main())
