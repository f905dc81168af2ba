# SPDX-License-Identifier: Apache-2.0
"""What mkdocs makes of pages that are read on GitHub too: their places in the site, their links, and the API."""

import logging
import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
#: Pages that have another name than their file, or are outside of docs/, by their places in the site.
ELSEWHERE = {
    "index.md": "README.md",
    "guide.md": "docs/README.md",
    "contributing.md": "CONTRIBUTING.md",
    "figures.md": "measure/README.md",
}
#: Tabs, with beginnings of pages' names; what is named nowhere is under the last one.
TABS = {
    "Start": ("index", "guide", "first_program", "install", "launch", "view", "rosbridge"),
    "Protocols": ("bridges", "servers", "testbed", "dronegui", "ardrone", "robot", "simulator", "telemetry"),
    "Flying": ("controllers",),
    "Operation": ("deploy", "network", "bags", "figures", "course"),
    "Development": ("contributing", "architecture", "new_protocol", "protocols", "api"),
    "Reference": ("reference/",),
    "More": ("",),
}
#: The library, for writers of programs and packages: what to import, and where it is.
MODULES = {
    "drone_bridge.vehicle": "drone_bridge.vehicle",
    "drone_bridge.protocols": "drone_bridge.wire",
    **{
        f"drone_bridge.protocols.{name}": f"drone_bridge.{name}.codec"
        for name in ("testbed", "dronegui", "ardrone", "robot", "simulator", "telemetry")
    },
    **{
        name: name
        for name in ("drone_bridge.kind", "drone_bridge.ros.node.protocol_node", "drone_bridge.session.session")
    },
}
_LINK = re.compile(r"(?<=\]\()(?!\w+:|#)([^)#\s]+)")
_log = logging.getLogger("mkdocs.plugins.site_hooks")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Sort the pages into tabs."""
    names = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    left = sorted(
        {*names, *ELSEWHERE, "api.md"} - {"README.md"}, key=lambda name: (name.startswith("reference/"), name)
    )
    nav: list[dict[str, Any]] = []
    for tab, beginnings in TABS.items():
        pages = [name for beginning in beginnings for name in left if name.startswith(beginning)]
        left = [name for name in left if name not in pages]
        if pages:
            nav.append({tab: pages})
    config.nav = nav
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages outside of docs/, and that of the API."""
    for place, page in ELSEWHERE.items():
        files.append(File.generated(config, place, content=(ROOT / page).read_text()))
    api = "\n\n".join(["# The library", *(f"## {name}\n\n::: {module}" for name, module in MODULES.items())])
    files.append(File.generated(config, "api.md", content=api))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to pages to their places in the site, and those to other files to the repository."""
    here = page.file.src_uri
    folder = posixpath.dirname(ELSEWHERE.get(here, f"docs/{here}"))
    places = {path: place for place, path in ELSEWHERE.items()}

    def place_of(link: re.Match[str]) -> str:
        path = posixpath.normpath(posixpath.join(folder, link[1]))
        if path in places or path.startswith("docs/"):
            place = places.get(path, path.removeprefix("docs/"))
            return posixpath.relpath(place, posixpath.dirname(here) or ".")
        if not (ROOT / path).exists():
            _log.warning("%s links to %s, which is not there.", here, path)
        return f"{config.repo_url}/blob/main/{path}"

    return _LINK.sub(place_of, markdown)
