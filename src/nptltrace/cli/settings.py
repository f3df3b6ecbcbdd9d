"""The settings of a user, in `nptltrace/settings.toml` of the configuration directory."""

from __future__ import annotations

import json
import os
from pathlib import Path

from nptltrace._dataclasses import dataclass
from nptltrace.errors import UsageError, named

__all__ = ["Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings.

    Attributes:
        skip: Patterns of functions and modules that are not call sites.
    """

    skip: tuple[str, ...] = ()

    @staticmethod
    def path() -> Path:
        """Return the path of the file, below `$XDG_CONFIG_HOME` or `~/.config`."""
        base = Path(os.environ.get("XDG_CONFIG_HOME", ""))
        config = base if base.is_absolute() else Path.home() / ".config"
        return config / "nptltrace" / "settings.toml"

    @classmethod
    def read(cls) -> Settings:
        """Return the settings in the file, or defaults if there is no file.

        Raises:
            OSError: The file cannot be read.
            UsageError: The content of the file is wrong.
        """
        path = cls.path()
        try:
            text = path.read_text()
        except (FileNotFoundError, NotADirectoryError):
            return cls()
        except OSError as error:
            # In a directory of another user, for example if HOME is still root's, assume no file.
            if isinstance(error, PermissionError) and not os.access(path, os.F_OK):
                return cls()
            raise named(error, str(path)) from None
        except UnicodeDecodeError as error:
            raise UsageError(f"{path}: {error}") from None
        import tomllib

        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{path}: {error}") from None
        skip = values.pop("skip", [])
        if not isinstance(skip, list) or not all(isinstance(item, str) and item for item in skip):
            raise UsageError(f'{path}: skip must be a list of patterns, as ["Lck_*"]')
        if values:
            raise UsageError(f"{path}: there is no setting {next(iter(values))!r}, only skip")
        return cls(tuple(skip))

    def write(self) -> None:
        """Write the settings.

        Raises:
            OSError: The file cannot be written.
        """
        import tempfile

        path = self.path()
        text = f"skip = {json.dumps(list(self.skip), ensure_ascii=False)}\n"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                "w", dir=path.parent, prefix=".", encoding="utf-8", delete=False
            ) as file:
                file.write(text)
            Path(file.name).replace(path)
        except OSError as error:
            raise named(error, str(path)) from None
