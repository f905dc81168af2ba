# SPDX-License-Identifier: Apache-2.0
"""Run the measurements in sequence: `make measure`, or `python measure/run.py [--short] [step ...]`.

A step is a module of this folder with a function `main(short: bool) -> int`. The first line of its docstring describes
it. It prints figures as text; the last line represents it in the final table. It returns a status of `step.py`, or
raises NotHereError. Each step has its own process, ROS domain and folders, and its remaining processes are stopped. The
exit status is 1 if a vehicle moved without permission or did not stop, or if a step crashed or exceeded its time limit.
Slowness is not a failure.
"""

from __future__ import annotations

import argparse
import ast
import ctypes
import faulthandler
import importlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parent.parent / "test" / "support"))
sys.path.append(str(Path(__file__).resolve().parent.parent / "test" / "conformance" / "support"))
sys.path.append(str(Path(__file__).resolve().parent.parent / "test" / "runner"))
from descendants import end_descendants
from step import CRASHED, DOMAINS, MOVED, NOT_HERE, OK, NotHereError

from drone_bridge.ros.process.environment import name_profile_for_fast_dds_2
from drone_bridge.tools.demo.composition import confinement

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parent
SUPPORT = sys.path[-3:]
LIMIT_S = {True: 420.0, False: 3 * 3600.0}  # of a step, by whether it is the short form
GRACE_S = 10.0  # from SIGTERM to SIGKILL, in which a step reports where it hung
PERIOD_S = 0.2
INTERRUPTED = 130  # exit status, as in shells
_PR_SET_CHILD_SUBREAPER = 36
_VERDICTS = {OK: "ok", NOT_HERE: "not here"}


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a step."""

    name: str
    status: int
    figure: str
    seconds: float

    @property
    def verdict(self) -> str:
        return _VERDICTS.get(self.status, "FAILED")


def steps() -> dict[str, str]:
    """Return the first line of the docstring of each step, by the step's name."""
    found = {}
    for path in sorted(FOLDER.glob("*.py")):
        tree = ast.parse(path.read_text())
        mains = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "main")
        if any(node.args.args and node.args.args[0].arg == "short" for node in mains):
            found[path.stem] = (ast.get_docstring(tree) or path.stem).splitlines()[0]
    return found


def run_here(name: str, *, short: bool, limit_s: float) -> int:
    """Run a step in this process, and return its status. One that hangs prints its stacks, and ends."""
    faulthandler.dump_traceback_later(limit_s, exit=True)
    try:
        return int(importlib.import_module(name).main(short))
    except NotHereError as error:
        print(error, flush=True)
        return NOT_HERE
    except Exception as error:
        traceback.print_exc()
        print(f"crashed: {type(error).__name__}: {error}".splitlines()[0], flush=True)
        return CRASHED


def run_step(name: str, *, short: bool, limit_s: float) -> Result:
    """Run a step in its own process, show its output, and stop its remaining processes."""
    command = [sys.executable, __file__, "--here", name, "--limit", str(limit_s)]
    began_s, shown = time.monotonic(), [""]
    with tempfile.TemporaryDirectory(prefix=f"measure.{name}.") as scratch:
        process = subprocess.Popen(
            [*command, *(["--short"] if short else [])],
            env=environment(Path(scratch)),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            errors="replace",
            start_new_session=True,  # so that only this process forwards Ctrl-C
        )
        reader = threading.Thread(target=_show, args=(process, shown), daemon=True)
        reader.start()
        status = CRASHED
        try:
            while process.poll() is None and time.monotonic() < began_s + limit_s + GRACE_S:
                time.sleep(PERIOD_S)
            status = CRASHED if process.returncode is None else process.returncode
        finally:
            left = end_descendants(GRACE_S)
            process.wait()
            reader.join()
            process.stdout.close()  # type: ignore[union-attr]
    if left and status == OK:
        print(f"{name} left processes, which were stopped: {', '.join(left)}", flush=True)
    seconds = time.monotonic() - began_s
    if seconds >= limit_s:
        return Result(name, CRASHED, f"exceeded the limit of {limit_s:g} s", seconds)
    is_known = status in (OK, MOVED, CRASHED, NOT_HERE)
    return Result(name, status, shown[-1] if is_known else f"exited with status {status}", seconds)


def _show(process: subprocess.Popen[str], shown: list[str]) -> None:
    """Forward a step's output, and keep the last non-empty line."""
    for line in process.stdout or ():
        print(line, end="", flush=True)
        if line.strip():
            shown.append(line.strip())


def environment(scratch: Path) -> Mapping[str, str]:
    """Return the environment of a step: topics on this machine only, in a domain without tests, and its folders."""
    os.environ["FASTDDS_DEFAULT_PROFILES_FILE"] = str(ROOT / "config" / "fastdds_loopback.xml")  # as env/activate does
    name_profile_for_fast_dds_2(os.environ)
    variables = {
        **os.environ,
        **confinement(),
        "PYTHONPATH": os.pathsep.join([str(FOLDER), *SUPPORT]),
        "PYTHONUNBUFFERED": "1",
        "ROS_DOMAIN_ID": str(random.SystemRandom().choice(DOMAINS)),
        **dict.fromkeys(("ROS_HOME", "ROS_LOG_DIR", "TMPDIR"), str(scratch)),
    }
    variables.pop("PYTHONDONTWRITEBYTECODE", None)  # modules are compiled once, as in an installed package
    return variables


# Main program.


def table(results: Sequence[Result], seconds: float) -> str:
    """Return a row for each step, and the number of each verdict."""
    width = max((len(result.name) for result in results), default=0)
    rows = [f"{each.name:<{width}} {each.verdict:>8} {each.seconds:>6.0f} s  {each.figure}" for each in results]
    count = {verdict: sum(each.verdict == verdict for each in results) for verdict in ("ok", "not here", "FAILED")}
    ended = f"Steps: {len(results)} in {seconds:.0f} s, {count['ok']} ok, {count['not here']} not possible here, "
    return "\n".join([*rows, f"{ended}{count['FAILED']} failed"])


def heed_signals() -> None:
    """Make SIGINT and SIGTERM raise KeyboardInterrupt. Background programs of a shell start with SIGINT ignored."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("steps", nargs="*", help="names of steps (default: all)")
    parser.add_argument("--short", action="store_true", help="at most half an hour for all steps, on two cores")
    parser.add_argument("--list", action="store_true", help="print the steps with their descriptions")
    parser.add_argument("--limit", type=float, metavar="S", help="time limit of each step")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    known = steps()
    if unknown := [name for name in options.steps if name not in known]:
        parser.error(f"unknown: {', '.join(unknown)}; the steps are {', '.join(known)}")
    options.limit = options.limit or LIMIT_S[options.short]
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the steps of the command line, and print the table."""
    options = read_options(arguments)
    known = steps()
    if options.list:
        width = max(map(len, known), default=0)
        print("\n".join(f"{name:<{width}}  {line}" for name, line in known.items()))
        return 0
    if options.here:
        return run_here(options.steps[0], short=options.short, limit_s=options.limit)
    heed_signals()
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)  # adopt what a step leaves behind
    began_s, results, is_interrupted = time.monotonic(), list[Result](), False
    for name in options.steps or known:
        print(f"== {name}: {known[name]}", flush=True)
        try:
            results.append(run_step(name, short=options.short, limit_s=options.limit))
        except KeyboardInterrupt:
            is_interrupted = True
            break
    print(f"\n{table(results, time.monotonic() - began_s)}", flush=True)
    return INTERRUPTED if is_interrupted else int(any(result.verdict == "FAILED" for result in results))


if __name__ == "__main__":
    sys.exit(main())
