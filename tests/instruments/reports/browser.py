"""A headless Chromium, driven over the DevTools protocol through a pair of pipes: nothing listens on a port."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --hide-scrollbars --remote-debugging-pipe"
).split()
PATIENCE = 30.0
"""Seconds for an answer."""
AT_THE_PLACE = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
for end, place in zip(ends, (3, 4)):
    os.dup2(end, place)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""The browser looks for its pipe at the descriptors 3 and 4."""


def chromium():
    """The program: ``$CHROMIUM``, or the first of its names on the path; None where there is none."""
    named = os.environ.get("CHROMIUM")
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


class Browser:
    """A page that was opened, what its console said, and every address that it asked for."""

    def __init__(self, send, receive):
        self.send, self.receive, self.left = send, receive, b""
        self.number, self.session = 0, None
        self.complaints, self.asked_for, self.loaded = [], [], False

    def ask(self, method, **params):
        """The answer to a command; what the page tells meanwhile is noted."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            command["sessionId"] = self.session
        os.write(self.send, json.dumps(command).encode() + b"\0")
        while True:
            message = self._message()
            if message.get("id") == self.number:
                assert "error" not in message, (method, message["error"])
                return message["result"]
            self._note(message)

    def _message(self):
        until = time.monotonic() + PATIENCE
        while b"\0" not in self.left:
            ready, _, _ = select.select([self.receive], [], [], max(0.0, until - time.monotonic()))
            assert ready, "the browser does not answer"
            part = os.read(self.receive, 1 << 20)
            assert part, "the browser has ended"
            self.left += part
        text, _, self.left = self.left.partition(b"\0")
        return json.loads(text)

    def _note(self, message):
        params = message.get("params", {})
        match message.get("method"):
            case "Runtime.exceptionThrown":
                self.complaints.append(str(params["exceptionDetails"]))
            case "Runtime.consoleAPICalled" if params["type"] in {"error", "warning", "assert"}:
                self.complaints.append(str(params["args"]))
            case "Log.entryAdded" if params["entry"]["level"] in {"error", "warning"}:
                self.complaints.append(str(params["entry"]))
            case "Network.requestWillBeSent":
                self.asked_for.append(params["request"]["url"])
            case "Page.loadEventFired":
                self.loaded = True

    def open(self, path, width, *, dark=False):
        """Show a file in a window of this width, and wait until it has drawn itself."""
        self.look(width, dark=dark)
        self.loaded = False
        self.ask("Page.navigate", url=Path(path).resolve().as_uri())
        while not self.loaded:
            self._note(self._message())
        self.frames()

    def look(self, width, *, dark=False, height=900):
        """Another width, or another colour scheme."""
        self.ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def frames(self):
        """Wait until what has changed is drawn."""
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50))))")

    def run(self, program):
        """The value of an expression of JavaScript in the page."""
        found = self.ask("Runtime.evaluate", expression=program, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def point(self, selector, across, down=0.5):
        """Move the pointer to a part of an element, scrolled into view."""
        place = self.run(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}}); "
            "const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height]; })()"
        )
        x, y = place[0] + across * place[2], place[1] + down * place[3]
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.frames()
        return x, y

    def click(self, selector):
        """Click on the middle of an element."""
        x, y = self.point(selector, 0.5)
        for kind in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.frames()

    def picture(self, height):
        """The top of the page as PNG."""
        self.run("scrollTo(0, 0)")
        width = self.run("innerWidth")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        shot = self.ask("Page.captureScreenshot", format="png", clip=clip, captureBeyondViewport=True)
        return base64.b64decode(shot["data"])


@contextmanager
def browsing():
    """A :class:`Browser` with an empty page and a profile of its own, which ends with the block."""
    reads, send = os.pipe()
    receive, writes = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        command = [sys.executable, "-c", AT_THE_PLACE, str(reads), str(writes)]
        command += [chromium(), *FLAGS, f"--user-data-dir={folder}"]
        process = subprocess.Popen(
            [*command, "about:blank"], pass_fds=(reads, writes), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(reads)
        os.close(writes)
        try:
            browser = Browser(send, receive)
            target = browser.ask("Target.createTarget", url="about:blank")["targetId"]
            browser.session = browser.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
            for domain in ("Page", "Runtime", "Log", "Network"):
                browser.ask(f"{domain}.enable")
            yield browser
        finally:
            process.terminate()
            process.wait(PATIENCE)
            os.close(send)
            os.close(receive)
