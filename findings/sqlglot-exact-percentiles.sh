#!/bin/sh
# SQLGlot: exact percentiles become approximate percentiles without a warning, even from Spark to Spark.
#
# The documentation of SQLGlot: it aims at SQL that keeps its meaning. With unsupported_level=RAISE it
# raises UnsupportedError for SQL that it cannot translate. Spark (3.3 and later) and Databricks have
# percentile_cont and percentile_disc WITHIN GROUP. SQLGlot writes percentile_approx for both. The
# continuous median of 1, 2, 3 and 4 is 2.5, but percentile_approx returns one of the four numbers.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --quiet --disable-pip-version-check sqlglot==30.30.0
python=$folder/venv/bin/python
"$python" -c 'import sqlglot; print("version: sqlglot", sqlglot.__version__, "(tested: 30.30.0)")'

cat >"$folder/translate.py" <<'END'
import sys

import sqlglot

print(
    sqlglot.transpile(
        f"SELECT {sys.argv[3]}(0.5) WITHIN GROUP (ORDER BY x) FROM t",
        read=sys.argv[1],
        write=sys.argv[2],
        unsupported_level=sqlglot.ErrorLevel.RAISE,
    )[0]
)
END

status=0
for dialects in "postgres postgres" "postgres spark" "spark spark" "databricks databricks"; do
	for function in PERCENTILE_CONT PERCENTILE_DISC; do
		expected="SELECT $function(0.5) WITHIN GROUP (ORDER BY x) FROM t"
		# shellcheck disable=SC2086 # two words
		seen=$("$python" "$folder/translate.py" $dialects $function)
		echo "expected, $dialects: $expected"
		echo "seen, $dialects:     $seen"
		case $dialects in
		"postgres postgres") surprise=$expected ;;
		*) surprise="SELECT PERCENTILE_APPROX(x, 0.5) FROM t" ;;
		esac
		[ "$seen" = "$surprise" ] || status=1
	done
done
exit $status
