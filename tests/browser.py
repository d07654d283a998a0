"""A real browser for tests: chromium without a window, spoken to over two pipes.

The DevTools protocol over `--remote-debugging-pipe` is JSON, each message ended by a zero byte,
that chromium reads from descriptor 3 and writes to descriptor 4. No driver and no port is needed.
"""

import base64
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip

# The pipes' ends are moved out of the way first: they may themselves be 3 and 4.
_START = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3); os.dup2(ends[1], 4)
for end in ends: os.close(end)
os.execv(sys.argv[3], sys.argv[3:])
"""


def find() -> str | None:
    """The path of a browser, if there is one."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class BrowserError(RuntimeError):
    """The browser refused something, or did not answer."""


class Browser:
    """A running browser. Use it in a `with`, which ends it."""

    def __init__(self, path: str, seconds: float = 60.0) -> None:
        self.seconds = seconds  # to wait for an answer at most
        self._profile = tempfile.mkdtemp(prefix="browser-")
        read_there, self._to = os.pipe()
        self._from, write_there = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-c", _START, str(read_there), str(write_there),
             path, *FLAGS, f"--user-data-dir={self._profile}"],
            pass_fds=(read_there, write_there), start_new_session=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        os.close(read_there)
        os.close(write_there)
        self._received = b""
        self._last = 0
        self.events: list[dict[str, Any]] = []

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            os.killpg(
                self._process.pid, signal.SIGKILL
            )  # a group of its own: see start_new_session
            self._process.wait(10)
        os.close(self._to)
        os.close(self._from)
        shutil.rmtree(self._profile, ignore_errors=True)

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; events that come before it are kept."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data) :]
        end = time.monotonic() + self.seconds
        while True:
            answer = self._next(end, method)
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def wait_for(self, method: str, session: str) -> None:
        """Wait until an event has come."""
        end = time.monotonic() + self.seconds
        while not any(e.get("method") == method and e.get("sessionId") == session
                      for e in self.events):  # fmt: skip
            self.events.append(self._next(end, method))

    def open(
        self, file: Path, *, width: int, height: int = 900, dark: bool = False, scripts: bool = True
    ) -> "Tab":
        """A file in a new tab of this size, loaded."""
        tab = Tab(self, width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        tab.load(file)
        return tab

    def _next(self, end: float, waiting_for: str) -> dict[str, Any]:
        while b"\0" not in self._received:
            ready, _, _ = select.select([self._from], [], [], max(0.0, end - time.monotonic()))
            if not ready:
                raise BrowserError(f"no answer to {waiting_for} within {self.seconds} seconds")
            data = os.read(self._from, 1 << 16)
            if not data:
                raise BrowserError(f"the browser ended before it answered to {waiting_for}")
            self._received += data
        message, self._received = self._received.split(b"\0", 1)
        return json.loads(message)


class Tab:
    """A page as one visitor sees it. Use it in a `with`, which closes it."""

    def __init__(self, browser: Browser, width: int, height: int) -> None:
        self._browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = browser.call(
            "Target.attachToTarget", targetId=self._target, flatten=True
        )["sessionId"]  # fmt: skip
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=width < 600)  # fmt: skip

    def __enter__(self) -> "Tab":
        return self

    def __exit__(self, *_: object) -> None:
        self._browser.call("Target.closeTarget", targetId=self._target)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.call(method, self._session, **parameters)

    def load(self, file: Path) -> None:
        """Go to a file, and wait until all of it is there."""
        self.call("Page.navigate", url=file.resolve().as_uri())
        self._browser.wait_for("Page.loadEventFired", self._session)

    def run(self, script: str) -> Any:
        """The value of an expression of JavaScript, as far as JSON can say it."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise BrowserError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def picture(self) -> bytes:
        """The whole page, also what is below the window, as PNG."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        shot = self.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=True,
            clip={"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1},
        )  # fmt: skip
        return base64.b64decode(shot["data"])

    def requests(self) -> list[str]:
        """All addresses that the page asked for, its own among them."""
        return [each["request"]["url"] for each in self._events("Network.requestWillBeSent")]

    def complaints(self) -> list[str]:
        """Errors and warnings: of scripts, of the console, and of the browser itself."""
        said = [each["exceptionDetails"] for each in self._events("Runtime.exceptionThrown")]
        said += [each for each in self._events("Runtime.consoleAPICalled")
                 if each["type"] in ("error", "warning", "assert")]  # fmt: skip
        said += [each["entry"] for each in self._events("Log.entryAdded")]
        return [json.dumps(each) for each in said]

    def _events(self, method: str) -> list[dict[str, Any]]:
        self.run("0")  # what happened before this answer has arrived with it
        return [
            each["params"]
            for each in self._browser.events
            if each.get("method") == method and each.get("sessionId") == self._session
        ]
