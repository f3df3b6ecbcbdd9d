#!/bin/sh
# PyArrow: the first array from a Python list imports pandas, if pandas is installed.
#
# The documentation of PyArrow (Installing PyArrow) calls pandas an optional dependency. The documentation
# of pyarrow.array() mentions pandas for pandas objects only. The first call of pyarrow.array() checks
# whether its argument is an object of pandas, and imports pandas for this check. A short program waits for
# the import in each environment that has pandas for another purpose.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --quiet --disable-pip-version-check \
	pyarrow==26.0.1 pandas==3.1.1 numpy==2.4.6
python=$folder/venv/bin/python
"$python" -c 'import importlib.metadata as m
print("version: pyarrow", m.version("pyarrow"), "pandas", m.version("pandas"), "(tested: 26.0.1, 3.1.1)")'

cat >"$folder/modules.py" <<'END'
import sys

import pyarrow

said = ["pandas" in sys.modules]
buffer = pyarrow.py_buffer(bytes(8))
pyarrow.Array.from_buffers(pyarrow.int64(), 1, [None, buffer]).to_pylist()
said.append("pandas" in sys.modules)
pyarrow.array([1, 2, 3], pyarrow.int64())
said.append("pandas" in sys.modules)
print(*said, sum(name.startswith("pandas.") for name in sys.modules) > 100)
END

seen=$("$python" "$folder/modules.py")
echo "asked:    is pandas imported after: import pyarrow; an array from a buffer; an array from a list"
echo "          are more than 100 modules of pandas imported at the end"
echo "expected: False False False False"
echo "seen:     $seen"

[ "$seen" = "False False True True" ] || exit 1
