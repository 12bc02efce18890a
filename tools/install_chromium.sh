#!/bin/sh
# Make sure that there is a Chromium for tests/browser: install_chromium.sh
#
# The tests drive the distribution's Chromium (PERDURE_CHROMIUM names another). As root with apt-get
# it is installed; otherwise one line says why the browser tests will be skipped.
set -eu

say() { printf '%s\n' "$*" >&2; }

if [ -n "${PERDURE_CHROMIUM:-}" ] || command -v chromium >/dev/null || command -v chromium-browser >/dev/null; then
    exit 0
fi
if [ "$(id -u)" != 0 ] || ! command -v apt-get >/dev/null; then
    say "perdure: no Chromium, and only root with apt-get can install it; the browser tests are skipped"
    exit 0
fi
say "installing chromium for the browser tests"
export DEBIAN_FRONTEND=noninteractive
{ apt-get install -qq -y --no-install-recommends chromium || { apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; }; } >/dev/null 2>&1 ||
    say "perdure: chromium could not be installed; the browser tests are skipped"
