# SPDX-License-Identifier: Apache-2.0
"""Draw the rooms of the house and the imports between them into docs/architecture.md: make architecture.

The picture is Mermaid text, which code hosts render and diffs show. It comes from the code's own imports; a test
holds that it is current.
"""

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGE: Final = ROOT / "drone_bridge"
PAGE: Final = ROOT / "docs" / "architecture.md"
_PICTURE: Final = re.compile(r"(?<=```mermaid\n).*?(?=```\n)", re.DOTALL)

Rooms = dict[str, set[str]]


def imported_modules(path: Path) -> Iterator[str]:
    """Yield the modules of drone_bridge that a file imports, each also as the name of what is imported from it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rooms() -> Rooms:
    """Return which rooms each room imports. A room is a folder of drone_bridge, or a module beside the folders."""
    names = {path.stem for path in PACKAGE.iterdir() if path.is_dir() or path.suffix == ".py"} - {"__init__"}
    imports: Rooms = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        room = path.relative_to(PACKAGE).parts[0].removesuffix(".py")
        if room not in names:
            continue
        found = imports.setdefault(room, set())
        for module in imported_modules(path):
            parts = module.split(".")
            if parts[0] == "drone_bridge" and len(parts) > 1 and parts[1] in names - {room}:
                found.add(parts[1])
    return imports


def without_shortcuts(imports: Rooms) -> Rooms:
    """Leave out an arrow where a longer way leads to the same room: it would say nothing new."""

    def reachable(room: str) -> set[str]:
        return set().union(*({other} | reachable(other) for other in imports[room]), set())

    return {
        room: {target for target in targets if not any(target in reachable(other) for other in targets - {target})}
        for room, targets in imports.items()
    }


def floors(imports: Rooms) -> dict[int, list[str]]:
    """Return the rooms by floor; a room is one floor above the highest room that it imports."""

    def floor(room: str) -> int:
        return 1 + max(map(floor, imports[room]), default=0)

    found: dict[int, list[str]] = defaultdict(list)
    for room in sorted(imports):
        found[floor(room)].append(room)
    return dict(sorted(found.items(), reverse=True))


def picture() -> str:
    """Return the picture as Mermaid text."""
    imports = rooms()
    lines = ["flowchart TB"]
    for number, on_floor in floors(imports).items():
        lines.append(f"    subgraph floor{number}[ ]")
        lines += [f"        {room}" for room in on_floor]
        lines.append("    end")
    lines += [
        f"    {room} --> {target}"
        for room, targets in sorted(without_shortcuts(imports).items())
        for target in sorted(targets)
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the picture into the page."""
    text = PAGE.read_text()
    PAGE.write_text(_PICTURE.sub(lambda _: picture(), text))
    return 0


def is_current() -> bool:
    """Return whether the page shows the code as it is."""
    found = _PICTURE.search(PAGE.read_text())
    return bool(found) and found.group() == picture()


if __name__ == "__main__":
    sys.exit(main())
