# SPDX-License-Identifier: Apache-2.0
"""Recordings: the bags in the default folders, for the page: list, download, report, and a page that plays one.

A bag is played by a child process, `drone-bridge view`, on a port of its own. There is one at a time.
"""

import contextlib
import html
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable
from operator import itemgetter
from pathlib import Path
from typing import Any

from drone_bridge.net.python_child import module_command
from drone_bridge.net.wire_log import minutes_folder
from drone_bridge.tools.bags.folders import bag_folders

#: Length of the list, the newest first.
MAX_LISTED = 200
STOP_TIMEOUT_S = 2.0
_LINK = re.compile(rb"Open in a browser: (\S+)")


class Recordings:
    """The bags in some folders, by the names of their own folders. Thread-safe."""

    def __init__(self, host: str, *folders: Path) -> None:
        """Serve the bags in some folders, by default in those of recordings. `host`: address of the page for one."""
        self._host = host
        self._folders, self._wires = folders or bag_folders(), minutes_folder()
        self._child: subprocess.Popen[bytes] | None = None
        self._requested = threading.Lock()  # held from a request to the start of its child
        self._starting = threading.Lock()
        self._is_closed = False
        self._pages: tempfile.TemporaryDirectory[str] | None = None  # of reports
        self._reporting = threading.Lock()  # one at a time
        self._reporter: subprocess.Popen[str] | None = None

    def document(self) -> dict[str, Any]:
        """Return the folders and their recordings, the newest first: name, size, and time of the last change.

        Saved minutes of the wire are among them.
        """
        recordings: list[dict[str, Any]] = []
        files = self._files()
        folders = *self._folders, self._wires
        used = [each for each in folders if any(file.is_relative_to(each) for file in files.values())]
        for name, file in files.items():
            with contextlib.suppress(FileNotFoundError):  # deleted meanwhile
                status = file.stat()
                facts = {"changed_s": status.st_mtime, "is_wire": file.parent == self._wires}
                recordings.append({"name": name, "bytes": status.st_size, **facts})
        recordings.sort(key=itemgetter("changed_s"), reverse=True)
        return {"folder": " and ".join(map(str, used or self._folders[:1])), "recordings": recordings[:MAX_LISTED]}

    def file(self, name: str) -> Path | None:
        """Return the file of a recording, or None if there is none of that name."""
        return self._files().get(name)

    def play(self, name: str, answer: Callable[[str, str], None]) -> None:
        """Play a recording in place of the one before. A thread calls `answer` with a link, or "" and a reason.

        Refused while the request before is executed, since each one takes a thread.
        """
        if self._requested.acquire(blocking=False):
            threading.Thread(target=self._play, args=(name, answer), daemon=True).start()
        else:
            answer(
                "", f"'{name:.80}' is not played: another recording is just being opened. Please repeat the request."
            )

    def report(self, name: str) -> Path | None:
        """Return the page of a recording's report, or one that says why there is none; None for an unknown name."""
        if (file := self.file(name)) is None:
            return None
        with self._reporting:
            self._pages = self._pages or tempfile.TemporaryDirectory(prefix="drone_bridge_reports_")
            page = Path(self._pages.name) / f"{name}.html"
            if page.exists() and page.stat().st_mtime > file.stat().st_mtime:
                return page
            command = module_command("drone_bridge.tools.cli", "report", str(file.parent), "--output", str(page))
            pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
            with self._starting:
                if self._is_closed:
                    return None
                self._reporter = subprocess.Popen(command, stderr=subprocess.STDOUT, **pipes)
            said, _ = self._reporter.communicate()
            if self._reporter.returncode:
                page = page.with_name("problem.html")
                page.write_text(f"<!doctype html><title>No report</title><pre>{html.escape(said)}</pre>", "utf-8")
        return page

    def close(self) -> None:
        """Stop playing, and end a report that is being written."""
        with self._starting:
            self._is_closed = True
            self._stop()
            if self._reporter:
                self._reporter.kill()
        with self._reporting:
            if self._pages:
                self._pages.cleanup()

    def _files(self) -> dict[str, Path]:
        """Return the files by name. Only the first file of a recording has the name of its folder."""
        names = {file.stem: file for file in self._wires.glob("*.mcap")}
        for file in (file for each in self._folders for file in sorted(each.glob("*/*.mcap"))):
            if file.is_file():
                folder = file.parent.name
                names[f"{folder} {file.stem}" if folder in names else folder] = file
        return names

    def _play(self, name: str, answer: Callable[[str, str], None]) -> None:
        try:
            child = self._start(name)
        finally:
            self._requested.release()
        if isinstance(child, str):
            answer("", child)
            return
        assert child.stdout
        last = b""
        for line in child.stdout:
            last = line
            if match := _LINK.search(line):
                answer(match[1].decode(), "")
                break
        else:
            answer("", last.decode(errors="replace").strip() or f"'{name}' can't be played.")
        for _ in child.stdout:  # or its pipe would fill
            pass

    def _start(self, name: str) -> "subprocess.Popen[bytes] | str":
        """Start the child process of a recording in place of the one before. Return it, or why it can't be started."""
        file = self.file(name)
        if file is None:
            return f"There is no recording '{name:.80}'."
        with self._starting:
            if self._is_closed:
                return f"'{name:.80}' is not played: the node ends."
            self._stop()
            command = module_command("drone_bridge.tools.cli", "view", str(file.parent), "--no-browser")
            self._child = child = subprocess.Popen(
                [*command, "--host", self._host, "--port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
        return child

    def _stop(self) -> None:
        if self._child:
            self._child.terminate()
            try:
                self._child.wait(STOP_TIMEOUT_S)
            except subprocess.TimeoutExpired:  # it reads a large bag
                self._child.kill()
                self._child.wait()
            self._child = None
