#!/usr/bin/env bash
# Shows that the edits alone change nothing: tests/nptl/unswitched.sh SOURCE OBJECTS
#
# SOURCE is the unmodified source of a glibc, OBJECTS the directory where it has been configured (without
# --enable-systemtap) and built. The script edits a copy of the source. It compiles the objects of libc.so in the edited
# directories again, from the copy, with the same commands and without ENABLE_NPTL_TRACE. Each object must be the same,
# byte for byte. The copy and its objects lie in OBJECTS/ptt-unswitched.
set -euo pipefail
cd "$(dirname "$0")/../.."
source=$(realpath "$1") objects=$(realpath "$2")
python=${PYTHON:-python3}
work=$objects/ptt-unswitched
rm -rf "$work"
mkdir -p "$work"
cp -a "$source" "$work/source"
cp native/glibc/include/nptl-trace*.h "$work/source/include/"
PYTHONPATH=src "$python" - "$work/source" <<'EDIT'
import sys
from pathlib import Path

from nptltrace.nptl.edit import apply_edits, load_edits

apply_edits(Path(sys.argv[1]), load_edits(Path("native/glibc/edits.toml")))
EDIT
# The copy reuses every file that is made before the first object, but no object.
mkdir "$work/objects"
tar -C "$objects" --exclude='./ptt*' --exclude='*.o' --exclude='*.os' --exclude='*.oS' --exclude='*.a' --exclude='*.so' \
	--exclude='*.out' -cf - . | tar -C "$work/objects" -xf -
sed -i "s|$source|$work/source|g; s|$objects|$work/objects|g" "$work/objects"/config.make "$work/objects"/Makefile
for directory in nptl libio malloc; do
	make -C "$work/source/$directory" -r PARALLELMFLAGS= -j"$(nproc)" subdir=$directory ..=../ \
		objdir="$work/objects" object-suffixes=.os subdir_lib >"$work/$directory.log" 2>&1 || true
done
same=0 different=()
for object in "$work"/objects/{nptl,libio,malloc}/*.os; do
	name=${object#"$work"/objects/}
	if cmp -s "$object" "$objects/$name"; then same=$((same + 1)); else different+=("$name"); fi
done
echo "$same objects are the same, ${#different[@]} differ: ${different[*]}"
[ "$same" -gt 300 ] && [ ${#different[@]} -eq 0 ]
