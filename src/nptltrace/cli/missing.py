"""What a command says where a library that it needs is not installed."""

from __future__ import annotations

__all__ = ["LIBRARIES", "missing_libraries"]

# What reads traces depends on: module, and what pip installs it by. Recording needs none of them.
LIBRARIES = {
    "duckdb": "duckdb",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "rich": "rich",
    "starlette": "starlette",
    "symbolic": "symbolic",
    "uvicorn": "uvicorn",
}
# By what needs them: extras are asked for where they are needed, and not with the others.
_GROUPS = {
    "reading traces": LIBRARIES,
    "a store of many runs": {"deltalake": "deltalake"},
    "--engine spark": {"pyspark": "pyspark", "sqlglot": "sqlglot"},
}


def missing_libraries(error: ModuleNotFoundError) -> str | None:
    """Return a line about libraries that are not installed, or None if it is about something else.

    All that are missing are named, so that it is said once.

    Args:
        error: What the import of a module raised.
    """
    wanted = (error.name or "").partition(".")[0]
    for what, known in _GROUPS.items():
        if wanted in known:
            from importlib.machinery import PathFinder

            missing = [n for module, n in known.items() if PathFinder.find_spec(module) is None]
            names = " ".join(missing or [known[wanted]])
            return f"{known[wanted]} is not installed, which {what} needs: pip install {names}"
    return None
