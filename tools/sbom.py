"""Writes the contents and dependencies of a wheel as CycloneDX 1.6: `tools/sbom.py FILE`.

The wheel contains PTT and the packages of `web/licences.txt`, which are bundled into the page of
`ptt ui`. It depends on Python packages, which are installed beside it.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
import uuid
from base64 import b64decode
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parent.parent


def _setting(name: str) -> str:
    """Return a value from the package's `_version.py`."""
    text = (_ROOT / "src/nptltrace/_version.py").read_text("utf-8")
    value = re.search(rf'^{name} = "(.+)"$', text, re.MULTILINE)
    if value is None:
        raise SystemExit(f"nptltrace has no {name}")
    return value[1]


def _bundled() -> list[dict[str, Any]]:
    """Return the packages in the page, with the hashes of the downloads."""
    lock = json.loads((_ROOT / "web/package-lock.json").read_text("utf-8"))["packages"]
    text = (_ROOT / "web/licences.txt").read_text("utf-8")
    components = []
    for name, version, licence in re.findall(r"^== (\S+) (\S+) \((.+)\)$", text, re.MULTILINE):
        algorithm, _, digest = lock[f"node_modules/{name}"]["integrity"].partition("-")
        purl = f"pkg:npm/{name.replace('@', '%40')}@{version}"
        components.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "version": version,
                "hashes": [
                    {
                        "alg": algorithm.upper().replace("SHA", "SHA-"),
                        "content": b64decode(digest).hex(),
                    }
                ],
                "licenses": [{"license": {"id": licence}}],
                "purl": purl,
            }
        )
    return components


def _needed() -> list[dict[str, Any]]:
    """Return the Python packages that are installed beside it; which versions, pip decides."""
    with (_ROOT / "pyproject.toml").open("rb") as file:
        wanted = tomllib.load(file)["project"]["dependencies"]
    components = []
    for requirement in wanted:
        name = re.split(r"[^\w.-]", requirement)[0]
        purl = f"pkg:pypi/{name}"
        components.append(
            {
                "type": "library",
                "bom-ref": purl,
                "name": name,
                "purl": purl,
                "properties": [{"name": "nptltrace:requirement", "value": requirement}],
            }
        )
    return components


def document() -> dict[str, Any]:
    """Return the document; the same sources give the same one."""
    version = _setting("__version__")
    own = f"pkg:pypi/nptltrace@{version}"
    bundled, needed = _bundled(), _needed()
    parts = [part["bom-ref"] for part in (*bundled, *needed)]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own)}",
        "version": 1,
        "metadata": {
            "timestamp": f"{_setting('__date__')}T00:00:00Z",
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "nptltrace",
                "version": version,
                "licenses": [{"license": {"id": "MIT"}}],
                "purl": own,
                "components": bundled,
            },
        },
        "components": needed,
        "dependencies": [{"ref": own, "dependsOn": parts}, *({"ref": part} for part in parts)],
    }


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(document(), indent=2) + "\n", "utf-8")
