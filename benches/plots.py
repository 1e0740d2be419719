"""Plots as SVG, the same bytes for the same numbers; none where matplotlib is not installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def svg(
    path: Path, draw: Callable[[Any], None], metadata: dict[str, str] | None = None, **subplots: Any
) -> Path | None:
    """Let ``draw`` fill the axes of ``plt.subplots(**subplots)``, write them to ``path``; None without matplotlib.

    `metadata` goes into the file: keys of Dublin Core.
    """
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "wfsa"  # same input, same bytes
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(**subplots)
    draw(axes)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Date": None, **(metadata or {})})
    plt.close(figure)
    return path


def shades(n: int) -> Any:
    """n colours that also differ in lightness."""
    import matplotlib.pyplot as plt

    return plt.get_cmap("viridis")([0.1 + 0.7 * i / max(n - 1, 1) for i in range(n)])
