"""The version of the installed package; ``0+unknown`` in a work tree that was never installed."""

from importlib import metadata
from typing import Final

UNKNOWN: Final = "0+unknown"

try:
    __version__ = metadata.version("wfsa")
except metadata.PackageNotFoundError:
    __version__ = UNKNOWN
