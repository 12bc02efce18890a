#!/bin/sh
# Write requirements/ci.txt and those of the measured peers anew, without index addresses: make_lock.sh PYTHON [--upgrade]
set -eu

python=$1
shift
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT

uv=$(command -v uv) || {
    "$python" -m pip install -qq --disable-pip-version-check --target "$place" uv
    uv="$place/bin/uv"
}

# lock FILE SOURCE…: what is pinned there stays, unless it no longer fits
lock() {
    file=$1
    shift
    if [ -e "$file" ]; then cp "$file" "$place/pinned.txt"; else : >"$place/pinned.txt"; fi
    "$uv" pip compile --universal --python-version 3.11 --generate-hashes \
        --no-config --no-header --no-emit-index-url --no-emit-find-links \
        --quiet -o "$place/pinned.txt" "$@"
    cmp -s "$place/pinned.txt" "$file" || cp "$place/pinned.txt" "$file"
    echo "$file names $(grep -c '==' "$file") packages" >&2
}

lock requirements/ci.txt pyproject.toml --all-extras --group dev --group docs "$@"
for source in benchmarks/peers/requirements/*.in; do
    lock "${source%.in}.txt" "$source" "$@"
done
