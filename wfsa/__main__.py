"""``python -m wfsa`` is the command ``wfsa``."""

from wfsa.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
