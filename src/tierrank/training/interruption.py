"""Ctrl-C, answered between two steps."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interruption:
    """Turns the first Ctrl-C into a flag, so that a step is never cut in two; the second one cuts.

        with Interruption() as interruption:
            for step in steps:
                ...
                if interruption.asked:
                    keep the state
                    raise KeyboardInterrupt

    Off the main thread, where Python gives nobody a signal, the flag stays down.
    """

    def __init__(self) -> None:
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> Interruption:
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._note)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
