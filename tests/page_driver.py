"""What a reader does with a page: open it, press keys, look at it small, dark or printed."""

from __future__ import annotations

import base64
import contextlib
from pathlib import Path
from typing import Any

from devtools import Browser

KEYS = {
    "Tab": (9, ""), "Enter": (13, "\r"), " ": (32, " "), "ArrowDown": (40, ""), "ArrowUp": (38, ""), "End": (35, ""),
}  # fmt: skip


class Reader:
    """One open page."""

    def __init__(self, browser: Browser) -> None:
        self.browser = browser

    def open(self, page: Path, width: int = 1280, height: int = 900, **media: str) -> None:
        """Load a file at a size, with media features such as `prefers_color_scheme="dark"`."""
        self.size(width, height)
        self.media(**media)
        self.browser.events.clear()
        self.browser.call("Page.navigate", url=page.resolve().as_uri())
        self.browser.wait("Page.loadEventFired")

    def size(self, width: int, height: int) -> None:
        """Size of the window in CSS pixels; below 500 it is a phone."""
        small = {"deviceScaleFactor": 1, "mobile": width < 500}
        self.browser.call("Emulation.setDeviceMetricsOverride", width=width, height=height, **small)

    def media(self, kind: str = "", **features: str) -> None:
        """`kind` is "print" or nothing; features are CSS media features with underscores."""
        listed = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.browser.call("Emulation.setEmulatedMedia", media=kind, features=listed)

    def js(self, code: str) -> Any:
        """Value of a JavaScript expression; an exception there is one here."""
        found = self.browser.call("Runtime.evaluate", expression=code, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def press(self, key: str, times: int = 1, shift: bool = False) -> None:
        """A key, as a keyboard sends it."""
        code, text = KEYS[key] if key in KEYS else (ord(key.upper()), key)
        event = {"key": key, "code": {" ": "Space"}.get(key, key), "windowsVirtualKeyCode": code}
        event |= {"modifiers": 8 if shift else 0}
        for _ in range(times):
            down = {"type": "keyDown", "text": text} if text else {"type": "rawKeyDown"}
            self.browser.call("Input.dispatchKeyEvent", **down, **event)
            self.browser.call("Input.dispatchKeyEvent", type="keyUp", **event)

    def choose(self, name: str, value: str) -> None:
        """Pick an option of a list by its value, as a reader would."""
        self.js(
            f"(() => {{ const s = document.getElementById({name!r}); s.value = {value!r};"
            " s.dispatchEvent(new Event('input', {bubbles: true})); })()"
        )

    def complaints(self) -> list[str]:
        """Console errors, exceptions and refused loads since the page was opened."""
        self.js("new Promise((done) => setTimeout(done, 50))")
        found, bad = [], ("error", "warning", "assert")
        for event in self.browser.events:
            method, inside = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                found.append(str(inside["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and inside["type"] in bad:
                found.append(str(inside["args"]))
            elif method == "Log.entryAdded" and inside["entry"]["level"] in bad:
                found.append(inside["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for, itself and what it carries left out."""
        sent = [
            event["params"]["request"]["url"]
            for event in self.browser.events
            if event.get("method") == "Network.requestWillBeSent"
        ]
        return [url for url in sent[1:] if not url.startswith("data:")]

    def picture(self, path: Path, whole: bool = False) -> None:
        """A screenshot as PNG, of the window or of the whole page."""
        found = self.browser.call(
            "Page.captureScreenshot", format="png", captureBeyondViewport=whole, timeout=120
        )
        path.write_bytes(base64.b64decode(found["data"]))

    def printed(self) -> bytes:
        """The page as PDF on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True}
        found = self.browser.call("Page.printToPDF", timeout=120, **paper)
        return base64.b64decode(found["data"])


@contextlib.contextmanager
def reader(program: str, profile: Path) -> Any:
    """A browser for the length of a block."""
    browser = Browser(program, profile)
    try:
        yield Reader(browser)
    finally:
        browser.close()
