"""The `tierrank` command; `python -m tierrank` is the same."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130  # what a shell reports of a command that Ctrl-C ended


def main() -> None:
    """Run the command; Ctrl-C ends it in silence, also while it is still being loaded."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed by who started this, as with >&-
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode))
    try:
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
            signal.signal(signal.SIGINT, _interrupt)
        from tierrank.cli import app

        app()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raise KeyboardInterrupt; but leave at once where modules are being loaded.

    There an exception may get lost, or come out in the midst of C++, which aborts.
    """
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            if os.isatty(2):
                os.write(2, b"\x1b[?25h")  # a progress display may have hidden the cursor
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
