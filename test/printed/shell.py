# SPDX-License-Identifier: Apache-2.0
"""A person's shells on a machine of their own: what they type is run as printed, in a terminal."""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
from patience import wait_until
from processes import Process
from repository import ROOT

HOME = Path.home()
#: Whoever is not root becomes root in a namespace of users.
USER = () if os.geteuid() == 0 else ("--map-root-user",)
#: A loopback, shared memory, and copies on write of the home and of this folder.
MACHINE = """set -e
mount -t tmpfs tmpfs /dev/shm
for folder in "$HOME" "$ROOT"; do
    copy=/dev/shm/.copies/$folder && mkdir -p $copy/upper $copy/work
    mount -t overlay overlay -o lowerdir=$folder,upperdir=$copy/upper,workdir=$copy/work $folder
done
ip link set lo up multicast on
ip route add 224.0.0.0/4 dev lo
echo ready && read -r _
"""
INTERRUPTED = 128 + signal.SIGINT
CTRL_C = b"\x03"


class Typed(Process):
    """A command in a shell."""

    def __init__(self, *words):
        super().__init__(*words, stdin=subprocess.PIPE)

    @property
    def text(self):
        """The output without colours."""
        return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", self.output)

    def ctrl_c(self, statuses=(0, INTERRUPTED)):
        """Press Ctrl-C, and require that the command ends in order. Return its output."""
        if self.is_running:
            self._child.stdin.write(CTRL_C)
            self._child.stdin.flush()
        assert self.wait() in statuses, self.text
        assert "Traceback" not in self.text, self.text
        return self.text

    def end(self, patience_s=20):
        super().end(patience_s)
        self._child.stdin.close()


class Shell:
    """The machine. `start` and `run` type a command as printed, in the clone after `. env/activate`."""

    def __init__(self):
        environment = {**os.environ, "HOME": str(HOME), "ROOT": str(ROOT)}
        words = ["unshare", *USER, "--net", "--mount", "bash", "-c", MACHINE]
        self._holder = subprocess.Popen(
            words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        self._typed = []
        if (line := self._holder.stdout.readline()) != "ready\n":
            self.close()
            pytest.skip(f"namespaces can't be made here: {line}")

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                wait_until(lambda: not self.running(), "the end of all that was started")
        finally:
            self.close()

    @property
    def inside(self):
        """The words before a command that run it on this machine."""
        user = ("--user", "--preserve-credentials") if USER else ()
        return ["nsenter", f"--target={self._holder.pid}", *user, "--net", "--mount"]

    def start(self, command):
        """Type a command, on a machine with the addresses in it."""
        for address in re.findall(r"(?:host|interface):?[= ](192[\d.]+)", command):
            subprocess.run([*self.inside, *f"ip address replace {address}/32 dev lo".split()], check=True)
        kept = {name: os.environ[name] for name in ("LANG", "DRONE_BRIDGE_COVERAGE") if name in os.environ}
        path = os.pathsep.join(each for each in os.environ["PATH"].split(os.pathsep) if str(ROOT) not in each)
        kept |= {"HOME": str(HOME), "PATH": path, "SHELL": "/bin/bash", "TERM": "xterm", "USER": "root"}
        line = f"cd '{ROOT}'\n. env/activate\n{command}"
        variables = [f"{name}={value}" for name, value in kept.items()]
        typed = Typed(*self.inside, "env", "-i", *variables, "script", "-qefc", line, "/dev/null")
        self._typed.append(typed)
        return typed

    def run(self, command, timeout_s=300):
        """Type a command, and wait for its end. Return its output."""
        typed = self.start(command)
        assert typed.wait(timeout_s) == 0, typed.text
        assert "Traceback" not in typed.text, typed.text
        return typed.text

    def path(self, *parts):
        """Return the path from here of a file there."""
        return Path(f"/proc/{self._holder.pid}/root").joinpath(str(Path(*parts)).lstrip("/"))

    def running(self):
        """Return the command lines of what runs there."""
        namespace, found = os.readlink(f"/proc/{self._holder.pid}/ns/net"), []
        for process in Path("/proc").glob("[0-9]*"):
            try:
                if os.readlink(process / "ns/net") == namespace and int(process.name) != self._holder.pid:
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
            except OSError:
                continue  # it has ended
        return [each for each in found if each]

    def close(self):
        for typed in reversed(self._typed):
            typed.end(1)
        self._holder.stdin.close()
        self._holder.wait()
        self._holder.stdout.close()
