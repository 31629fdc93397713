"""A small client of the Chrome DevTools Protocol over a pair of pipes: no port, no web socket, no extra package."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import select
import signal
import time
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions", "--mute-audio",
    "--hide-scrollbars", "--remote-debugging-pipe",
)  # fmt: skip
TIMEOUT = 30.0


class Browser:
    """Headless Chromium with one page open; answers are matched to calls, everything else is kept as events."""

    def __init__(self, program: str, profile: Path) -> None:
        # Chromium reads commands from file 3 and writes answers to file 4. The copies lie high, so that putting one
        # in its place cannot overwrite the other.
        to_child, self._out = os.pipe()
        self._in, from_child = os.pipe()
        high = [fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in (to_child, from_child)]
        actions = [(os.POSIX_SPAWN_DUP2, high[0], 3), (os.POSIX_SPAWN_DUP2, high[1], 4)]
        log = os.open(profile / "chromium.log", os.O_WRONLY | os.O_CREAT, 0o600)
        actions += [(os.POSIX_SPAWN_DUP2, log, 1), (os.POSIX_SPAWN_DUP2, log, 2)]
        arguments = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        environment = os.environ | {"HOME": str(profile)}
        self._pid = os.posix_spawn(program, arguments, environment, file_actions=actions, setpgroup=0)
        for end in (to_child, from_child, *high, log):
            os.close(end)
        self._rest, self._last, self._session = b"", 0, None
        self.events: list[dict[str, Any]] = []
        targets = self.call("Target.getTargets")["targetInfos"]
        target = next(info["targetId"] for info in targets if info["type"] == "page")
        found = self.call("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network", "DOM", "Accessibility"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End the browser and every process that it started."""
        with contextlib.suppress(OSError, TimeoutError):
            self._session = None
            self.call("Browser.close", timeout=5)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        os.close(self._out)
        os.close(self._in)

    def call(self, method: str, timeout: float = TIMEOUT, **parameters: Any) -> dict[str, Any]:
        """One command; its result, or an error with Chromium's own words."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._out, data) :]
        end = time.monotonic() + timeout
        while (answer := self._receive(end, method)).get("id") != self._last:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        return dict(answer["result"])

    def wait(self, event: str, timeout: float = TIMEOUT) -> None:
        """Return once `event` has been seen since the events were last cleared."""
        end = time.monotonic() + timeout
        while not any(message.get("method") == event for message in self.events):
            self.events.append(self._receive(end, event))

    def _receive(self, end: float, what: str) -> dict[str, Any]:
        while b"\0" not in self._rest:
            if not select.select([self._in], [], [], max(0.0, end - time.monotonic()))[0]:
                raise TimeoutError(f"chromium did not answer: {what}")
            piece = os.read(self._in, 1 << 20)
            if not piece:
                raise OSError("chromium has ended")
            self._rest += piece
        first, self._rest = self._rest.split(b"\0", 1)
        return dict(json.loads(first))
