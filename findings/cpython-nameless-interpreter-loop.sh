#!/bin/sh
# CPython 3.14.10 (Debian): nearly all code of the interpreter's loop has no name.
#
# Profilers and debuggers find calls of the interpreter by the symbol _PyEval_EvalFrameDefault: an address is in
# the loop if it is within the size of the symbol. In Debian's build the symbol covers about 1 kB. The loop itself,
# more than 80 kB, lies elsewhere. No symbol covers it, only an entry of the unwind table.
set -eu

tested=3.14.10-1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

package=python3.14-minimal_${tested}_amd64.deb
if ! curl -fsS -o "$folder/$package" "https://deb.debian.org/debian/pool/main/p/python3.14/$package"; then
	echo "Debian has no $package any more"
	exit 1
fi
dpkg-deb -x "$folder/$package" "$folder/root"
python=$folder/root/usr/bin/python3.14

named=$(readelf -W --dyn-syms "$python" | awk '$8 == "_PyEval_EvalFrameDefault" {print $3}')
# The largest entry of the unwind table at whose begin no symbol is.
readelf -W --dyn-syms "$python" | awk '$2 ~ /^[0-9a-f]+$/ {print $2}' >"$folder/symbols"
nameless=$(readelf -W --debug-dump=frames "$python" 2>/dev/null | awk -v symbols="$folder/symbols" '
	BEGIN { while ((getline line < symbols) > 0) known[line] = 1 }
	function number(text, n, i) {
		n = 0
		for (i = 1; i <= length(text); i++)
			n = 16 * n + index("0123456789abcdef", substr(text, i, 1)) - 1
		return n
	}
	/ FDE .*pc=/ {
		sub(/.*pc=/, "")
		split($0, ends, /\.\./)
		size = number(ends[2]) - number(ends[1])
		if (!(ends[1] in known) && size > largest)
			largest = size
	}
	END { print largest }')
echo "expected:  the symbol covers the loop"
echo "seen:      the symbol has $named bytes, the largest function without a name has $nameless bytes"

[ "$named" -lt 2000 ] && [ "$nameless" -gt 80000 ] || exit 1
