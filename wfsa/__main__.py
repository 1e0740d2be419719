"""Runs the command ``wfsa`` as ``python -m wfsa``."""

from wfsa.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
