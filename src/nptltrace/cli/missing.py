"""The error message about libraries that are not installed."""

from __future__ import annotations

__all__ = ["LIBRARIES", "missing_libraries"]

# Libraries that reading needs: module, and name for pip. Recording needs no library.
LIBRARIES = {
    "duckdb": "duckdb",
    "numpy": "numpy",
    "pyarrow": "pyarrow",
    "rich": "rich",
    "starlette": "starlette",
    "symbolic": "symbolic",
    "uvicorn": "uvicorn",
}
# By purpose: the message names the libraries of one purpose only.
_GROUPS = {
    "reading traces": LIBRARIES,
    "a store of many runs": {"deltalake": "deltalake"},
    "--engine spark": {"pyspark": "pyspark", "sqlglot": "sqlglot"},
}


def missing_libraries(error: ModuleNotFoundError) -> str | None:
    """Return a message with all missing libraries of one purpose, on one line.

    Args:
        error: The error of an import.

    Returns:
        None if the error is about another module.
    """
    wanted = (error.name or "").partition(".")[0]
    for what, known in _GROUPS.items():
        if wanted in known:
            from importlib.machinery import PathFinder

            missing = [n for module, n in known.items() if PathFinder.find_spec(module) is None]
            names = " ".join(missing or [known[wanted]])
            return f"{known[wanted]} is not installed, which {what} needs: pip install {names}"
    return None
