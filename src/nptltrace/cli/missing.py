"""What a command says where a library that it needs is not installed."""

from __future__ import annotations

__all__ = ["LIBRARIES", "missing_libraries"]

# What reads traces depends on: module, and what pip installs it by. Recording needs none of them.
LIBRARIES = {
    "duckdb": "duckdb",
    "elftools": "pyelftools",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "rich": "rich",
    "starlette": "starlette",
    "symbolic": "symbolic",
    "uvicorn": "uvicorn",
}


def missing_libraries(error: ModuleNotFoundError) -> str | None:
    """Return a line about libraries that are not installed, or None if it is about something else.

    All that are missing are named, so that it is said once.

    Args:
        error: What the import of a module raised.
    """
    wanted = (error.name or "").partition(".")[0]
    if wanted not in LIBRARIES:
        return None
    from importlib.util import find_spec

    missing = [name for module, name in LIBRARIES.items() if find_spec(module) is None]
    names = " ".join(missing or [LIBRARIES[wanted]])
    return f"{LIBRARIES[wanted]} is not installed, which reading traces needs: pip install {names}"
