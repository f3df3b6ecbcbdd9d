# shellcheck shell=bash
# Shared by try.sh and check.sh: packages of the machine, and a private Python environment.
# bash sources this file from the top of the tree.

say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 1; }

# Print a new enough Python.
find_python() {
	local candidate
	for candidate in "${PYTHON:-python3}" python3.13 python3.12 python3.11 /usr/bin/python3; do
		if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
			command -v "$candidate"
			return
		fi
	done
	return 1
}

# need WHAT PACKAGE TEST...: want a Debian package unless TEST succeeds. WHAT is "must" or "may": without a "may" package,
# some tests are skipped. PACKAGE may be several names with | between them: the first available name counts.
wanted_must=() wanted_may=()
need() {
	local what=$1 package=$2
	shift 2
	"$@" >/dev/null 2>&1 && return
	if [ "$what" = must ]; then wanted_must+=("$package"); else wanted_may+=("$package"); fi
}
has() { command -v "$1"; }

# Want the packages of every build. A bare Debian has Python without venv, and may have a compiler without headers.
need_build() {
	need must python3 find_python
	need must python3-venv "$(find_python || echo false)" -c 'import ensurepip, venv'
	need must gcc has gcc
	need must libc6-dev gcc -fsyntax-only -include pthread.h -x c /dev/null
	need must make has make
	need must cmake has cmake
}

# available NAME|NAME...: print the first package that this release has.
available() {
	local name
	for name in ${1//|/ }; do
		# Not grep -q: it ends early, and then apt-cache may fail because nothing reads its output.
		if apt-cache policy "$name" 2>/dev/null | grep '^  Candidate: [^(]' >/dev/null; then
			echo "$name"
			return
		fi
	done
	return 1
}

# Install the packages that `need` found missing with apt, or tell the user to install them.
install_wanted() {
	local all=("${wanted_must[@]}" "${wanted_may[@]}") package
	[ ${#all[@]} -eq 0 ] && return
	if [ "$(id -u)" -eq 0 ] && has apt-get >/dev/null; then
		say "Installing Debian packages: ${all[*]}"
		local apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
		export DEBIAN_FRONTEND=noninteractive
		"${apt[@]}" update || die "apt-get could not update its lists"
		all=()
		for package in "${wanted_must[@]}"; do
			all+=("$(available "$package")") || die "this release has no package $package"
		done
		for package in "${wanted_may[@]}"; do
			all+=("$(available "$package")") || {
				unset 'all[-1]'
				echo "This release has no package $package: some tests are skipped"
			}
		done
		if [ ${#all[@]} -gt 0 ] && ! "${apt[@]}" install -y --no-install-recommends "${all[@]}" >/dev/null; then
			die "apt-get could not install: ${all[*]}"
		fi
	elif [ ${#wanted_must[@]} -gt 0 ]; then
		die "please install these first (names of Debian packages): ${all[*]}"
	else
		echo "Some tests are skipped without these (names of Debian packages): ${all[*]}"
	fi
	wanted_must=() wanted_may=()
}

# make_environment DIR: make a private Python environment once.
make_environment() {
	[ -x "$1/bin/pip" ] && return
	say "Making a Python environment in $1"
	"$(find_python)" -m venv --clear "$1"
}

# requirements GROUP...: print the project's dependencies and the packages of dependency groups, each on a line.
requirements() {
	"$(find_python)" - "$@" <<-'END'
	import sys, tomllib

	with open("pyproject.toml", "rb") as file:
	    project = tomllib.load(file)

	def group(name):
	    for item in project["dependency-groups"][name]:
	        if isinstance(item, str):
	            yield item
	        else:
	            yield from group(item["include-group"])

	print(*project["project"]["dependencies"], sep="\n")
	for name in sys.argv[1:]:
	    print(*group(name), sep="\n")
	END
}
