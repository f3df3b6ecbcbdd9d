#!/bin/sh
# DuckDB for Python: `python -c` prints a progress bar to standard output, even if that is a pipe.
#
# DuckDB's description of the setting enable_progress_bar: a long query prints its progress to the terminal.
# The Python package turns the setting on if the main module has no file, whatever standard output is.
# The same program in a file prints only its answer. With `python -c`, a query of more than two seconds
# spoils the JSON or CSV that another program reads.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --quiet --disable-pip-version-check duckdb==2.0.1 numpy==2.4.6
python=$folder/venv/bin/python
"$python" -c 'import duckdb; print("version: duckdb", duckdb.__version__, "(tested: 2.0.1)")'

cat >"$folder/query.py" <<'END'
import time

import duckdb


def slow(number: int) -> int:
    time.sleep(0.00006)
    return number


connection = duckdb.connect()
connection.execute("set threads = 1")
connection.create_function("slow", slow, side_effects=True)
print(connection.execute("select sum(slow(range)) from range(50000)").fetchone()[0])
END
describe="select description from duckdb_settings() where name = 'enable_progress_bar'"
"$python" -c "import duckdb; print('documented:', duckdb.sql(\"$describe\").fetchall()[0][0])"

"$python" "$folder/query.py" | cat >"$folder/file" &
"$python" -c "$(cat "$folder/query.py")" | cat >"$folder/text"
wait

# Judge the output of a program: only the answer, or also a progress bar.
kind() {
	if [ "$(cat "$1")" = 1249975000 ]; then
		echo "the answer"
	elif grep -q '[0-9]%' "$1" && grep -q 1249975000 "$1"; then
		echo "a progress bar, the answer"
	else
		echo "something else"
	fi
}

file=$(kind "$folder/file")
text=$(kind "$folder/text")
echo "expected in the pipe, python FILE:    the answer"
echo "seen in the pipe, python FILE:        $file"
echo "expected in the pipe, python -c TEXT: the answer"
echo "seen in the pipe, python -c TEXT:     $text"

[ "$file" = "the answer" ] || exit 1
[ "$text" = "a progress bar, the answer" ] || exit 1
