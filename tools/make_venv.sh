#!/bin/sh
# Build the virtual environment from the lock: make_venv.sh PYTHON VENV
#
# Some distributions ship a Python that cannot put pip into a virtual environment. So: the plain
# way; else an environment without pip, filled by the pip outside it; else, as root with apt-get,
# the missing package; else three lines that say what to do.
set -eu

python=$1
venv=$2

say() { printf '%s\n' "$*" >&2; }

give_up() {
    say "perdure: $1"
    say "  kept: nothing was installed"
    say "  do:   $2"
    exit 1
}

# One that was built with this Python is brought up to date: to make it anew takes minutes.
kept() {
    [ -f "$venv/.built" ] && [ "$("$venv/bin/python" -V 2>&1)" = "$("$python" -V 2>&1)" ] || return 1
    "$venv/bin/python" -m pip --version >/dev/null 2>&1 || return 1
    pip="$venv/bin/python -m pip"
    gone=$("$venv/bin/python" tools/unlocked.py) || return 1
    [ -z "$gone" ] || $pip uninstall -qq -y $gone
}

plain() {
    "$python" -m venv --clear "$venv" >/dev/null 2>&1 && pip="$venv/bin/python -m pip"
}

# pip 22.3 and later can work on another interpreter.
from_outside() {
    "$python" -m venv --clear --without-pip "$venv" >/dev/null 2>&1 || return 1
    for outside in "$python -m pip" pip3 pip; do
        if $outside --python "$venv/bin/python" --version >/dev/null 2>&1; then
            pip="$outside --python $venv/bin/python"
            return 0
        fi
    done
    return 1
}

by_apt() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    say "installing $package, which this Python lacks"
    export DEBIAN_FRONTEND=noninteractive
    { apt-get install -qq -y "$package" || { apt-get update -qq && apt-get install -qq -y "$package"; }; } >/dev/null 2>&1 || return 1
    plain
}

# A checkout touches files without changing them: what counts is what they say.
built_from=$(cat pyproject.toml requirements/ci.txt "$0" | cksum)
if [ "$(cat "$venv/.built" 2>/dev/null)" = "$built_from" ]; then
    touch "$venv/.built"
    exit 0
fi

"$python" -c '' 2>/dev/null || give_up "there is no Python at '$python'" "install Python 3.11 or later, or name one: make venv PYTHON=python3.12"
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    give_up "$("$python" -V 2>&1) is too old; perdure needs 3.11" "name a newer one: make venv PYTHON=python3.12"

say "building $venv with $("$python" -V 2>&1)"
kept || plain || from_outside || by_apt || {
    rm -rf "$venv"
    give_up "this Python has neither ensurepip nor a pip of 22.3 or later beside it" "install them (Debian: apt install python3-venv), then make venv again"
}

say "installing $(grep -c '==' requirements/ci.txt) locked packages"
$pip install -qq --disable-pip-version-check --require-hashes -r requirements/ci.txt
$pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
printf '%s\n' "$built_from" >"$venv/.built"
