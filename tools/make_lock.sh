#!/bin/sh
# Write requirements/ci.txt anew, without index addresses: make_lock.sh PYTHON [--upgrade]
set -eu

python=$1
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

uv=$(command -v uv) || {
    "$python" -m pip install -qq --disable-pip-version-check --target "$place" uv
    uv="$place/bin/uv"
}

cp requirements/ci.txt "$place/ci.txt"
"$uv" pip compile pyproject.toml --all-extras --group dev \
    --universal --python-version 3.11 --generate-hashes \
    --no-config --no-header --no-emit-index-url --no-emit-find-links \
    --quiet "$@" -o "$place/ci.txt"
cmp -s "$place/ci.txt" requirements/ci.txt || cp "$place/ci.txt" requirements/ci.txt
echo "requirements/ci.txt names $(grep -c '==' requirements/ci.txt) packages" >&2
