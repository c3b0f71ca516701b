"""A real headless Chromium, driven by the DevTools protocol over two pipes: no port, no library."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")

OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--disable-dev-shm-usage", "--hide-scrollbars",
    "--remote-debugging-pipe",
)  # fmt: skip

# Chromium reads commands from descriptor 3 and answers on 4.
TRAMPOLINE = """
import os, sys
commands, answers = os.dup(int(sys.argv[1])), os.dup(int(sys.argv[2]))
while commands in (3, 4): commands = os.dup(commands)
while answers in (3, 4): answers = os.dup(answers)
os.dup2(commands, 3), os.dup2(answers, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Page:
    """One tab, with what it requested and what its console said."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._waiting = b""
        self._next = 0
        self._session: str | None = None
        self._others: list[dict[str, Any]] = []
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def start(self) -> None:
        """Attach to a new tab."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command, and its answer."""
        self._next += 1
        message = {"id": self._next, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        answer = self._until(lambda found: found.get("id") == message["id"])
        assert "error" not in answer, answer
        return dict(answer["result"])

    def open(self, url: str) -> None:
        """Load a page, to the end."""
        self.call("Page.navigate", url=url)
        self._until(lambda found: found.get("method") == "Page.loadEventFired")

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def resize(self, width: int, height: int = 900, *, phone: bool = False) -> None:
        """The size of the screen [pixels]; a phone has fingers."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=phone,
        )
        self.call("Emulation.setTouchEmulationEnabled", enabled=phone)

    def prefer(self, scheme: str, media: str = "") -> None:
        """Dark or light, on screen or on paper."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.call("Emulation.setEmulatedMedia", media=media, features=features)

    def screenshot(self, path: Path | None = None, clip: tuple[float, ...] | None = None) -> bytes:
        """A PNG of the whole page, or of a part of it: x, y, width, height."""
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        x, y, width, height = clip or (0, 0, size["width"], size["height"])
        area = {"x": x, "y": y, "width": width, "height": height, "scale": 1}
        answer = self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=area)
        data = base64.b64decode(answer["data"])
        if path is not None:
            path.write_bytes(data)
        return data

    def pdf(self) -> bytes:
        """The page on paper."""
        return base64.b64decode(self.call("Page.printToPDF", preferCSSPageSize=True)["data"])

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """A mouse event at a place of the window."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def touch(self, kind: str, *points: tuple[float, float]) -> None:
        """Fingers at places of the window."""
        touching = [{"x": x, "y": y, "id": k} for k, (x, y) in enumerate(points)]
        self.call("Input.dispatchTouchEvent", type=kind, touchPoints=touching)

    def key(self, key: str) -> None:
        """A key pressed and released."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        while True:
            while b"\0" not in self._waiting:
                part = os.read(self._answers, 1 << 16)
                assert part, "Chromium has ended"
                self._waiting += part
            text, _, self._waiting = self._waiting.partition(b"\0")
            found = json.loads(text)
            self._note(found)
            if wanted(found):
                return found  # type: ignore[no-any-return]

    def _note(self, found: dict[str, Any]) -> None:
        params = found.get("params", {})
        match found.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning", "assert"):
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                self.complaints.append(params["entry"]["text"])


@contextmanager
def chromium() -> Iterator[Page]:
    """A tab of a browser of our own, with a home of its own, that ends with the context."""
    assert CHROMIUM is not None
    theirs, commands = os.pipe()
    answers, ours = os.pipe()
    with tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True) as home:
        arguments = [CHROMIUM, *OPTIONS, f"--user-data-dir={home}/data"]
        browser = subprocess.Popen(
            [sys.executable, "-c", TRAMPOLINE, str(theirs), str(ours), *arguments],
            pass_fds=(theirs, ours),
            env={**os.environ, "HOME": home},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(theirs)
        os.close(ours)
        try:
            page = Page(commands, answers)
            page.start()
            yield page
        finally:
            os.killpg(browser.pid, signal.SIGKILL)
            browser.wait()
            os.close(commands)
            os.close(answers)
