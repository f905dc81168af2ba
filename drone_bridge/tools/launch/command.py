# SPDX-License-Identifier: Apache-2.0
"""`drone-bridge launch`: command line, and search for launch files."""

import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from drone_bridge.programs.options import suggestion
from drone_bridge.tools.cli import REFUSED
from drone_bridge.tools.command_parser import CommandParser
from drone_bridge.tools.launch.arguments import declared_in, describe, parse_assignments
from drone_bridge.tools.launch.evaluate import evaluate
from drone_bridge.tools.launch.parse import LaunchFileError, load
from drone_bridge.tools.launch.processes import supervise
from drone_bridge.tools.launch.substitutions import SubstitutionError, package_prefix

_ENDING = ".launch.xml"
#: Folder of files for inclusion only.
_PARTS = "parts"


def main(argv: Sequence[str]) -> int:
    """Run a launch file. Return the exit status, which is 2 if the file or an argument is refused."""
    parser = CommandParser(
        prog="drone-bridge launch",
        usage="%(prog)s [-s] [[package] file [name:=value ...]]",
        description="Run an XML launch file.",
    )
    parser.add_argument("-s", "--show-args", action="store_true", help="show the launch file's arguments")
    parser.add_argument(
        "words",
        nargs="*",
        metavar="file",
        help="a launch file, by its path or by its name in a package (in drone_bridge if none is given), "
        "and its arguments (of several values for a name, the last one counts); without any: list the files",
    )
    options = parser.parse_intermixed_args(argv)
    if not options.words:
        print("Launch files, by name (arguments of one: drone-bridge launch -s NAME):\n")
        print("\n".join(_lines("drone_bridge")))
        return 0
    try:
        path, assignments = _find_file(options.words)
        given = parse_assignments(assignments)
        if options.show_args:
            print(describe(declared_in(load(path))))
            return 0
        with tempfile.TemporaryDirectory(prefix="drone_bridge_launch_") as folder:
            processes = evaluate(path, given, Path(folder), _warn)
            for file, text in ((file, text) for process in processes for file, text in process.files.items()):
                file.write_text(text)
            return supervise(processes)
    except (LaunchFileError, SubstitutionError, OSError) as error:
        if isinstance(error, BrokenPipeError):
            raise
        print(f"drone-bridge launch: {error}", file=sys.stderr)
        return REFUSED
    except RecursionError:
        print(f"drone-bridge launch: {options.words[0]}: groups and files are nested too deeply", file=sys.stderr)
        return REFUSED


def _warn(text: str) -> None:
    print(f"drone-bridge launch: {text}", file=sys.stderr)


def _find_file(words: Sequence[str]) -> tuple[Path, Sequence[str]]:
    """Return the path of the launch file, and the words after it."""
    first, *rest = words
    if Path(first).is_file():
        return Path(first), rest
    if rest and "=" not in rest[0]:
        return file_of_package(first, rest[0]), rest[1:]
    return file_of_package("drone_bridge", first), rest


def file_of_package(package: str, name: str) -> Path:
    """Return the launch file of a package by its name, with or without its suffix. Raises LaunchFileError."""
    share = package_prefix(package) / "share" / package
    found = sorted(path for path in share.rglob("*") if path.name in (name, f"{name}{_ENDING}") and path.is_file())
    if len(found) == 1:
        return found[0]
    if found:
        raise LaunchFileError(f"'{name}' is in several places: {', '.join(map(str, found))}; name one by its path")
    there = [_stem(path) for path in _launch_files(share)]
    hint = suggestion(name.removesuffix(_ENDING), there)
    raise LaunchFileError(
        f"there is no launch file '{name}', neither here nor in the package {package}{hint}; "
        f"it has {', '.join(there) or 'none'}"
    )


def _launch_files(share: Path) -> list[Path]:
    """Return the launch files of a package, except those for inclusion only."""
    return sorted(path for path in share.rglob(f"*{_ENDING}") if path.parent.name != _PARTS)


def _lines(package: str) -> Iterator[str]:
    """Yield a line per launch file of a package, with the first sentence of its comment."""
    paths = _launch_files(package_prefix(package) / "share" / package)
    width = max((len(_stem(path)) for path in paths), default=0)
    for path in paths:
        comments = re.findall(r"<!--(.*?)-->", path.read_text(), re.DOTALL)
        words = next((" ".join(each.split()) for each in comments if "SPDX" not in each), "")
        yield f"  {_stem(path):{width}}  {re.split('[.:] ', words + ' ')[0]}"


def _stem(path: Path) -> str:
    return path.name.removesuffix(_ENDING)
