"""A progress bar for the compiler's ``progress(stage, fraction)`` callback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


class CompileBar:
    """A callback and context manager that draws one bar, named by the stage, until the compilation ends.

    If the console is not a terminal, nothing is drawn.
    """

    def __init__(self, console: Console) -> None:
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

        self._bar = Progress(
            TextColumn("{task.description:<22}"),
            BarColumn(),
            TextColumn("{task.percentage:>3.0f} %"),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._task = self._bar.add_task("compiling", total=1.0)

    def __enter__(self) -> CompileBar:
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, stage: str, fraction: float) -> None:
        self._bar.update(self._task, description=stage.replace("_", " "), completed=min(max(fraction, 0.0), 1.0))
