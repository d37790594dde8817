#!/usr/bin/env bash
# Makes the Python environments of the tests, which the two lines of the SDK cannot share:
#   test/python/install.sh DIR && ERAGATE_TEST_PYTHON=DIR npm test
set -euo pipefail
target=$(mkdir -p "${1:?usage: install.sh DIR}" && cd "$1" && pwd)
cd "$(dirname "$0")"
installs=()
for line in 1 2; do
  python3 -m venv "$target/$line"
  "$target/$line/bin/pip" install --quiet --disable-pip-version-check -r "requirements-$line.txt" &
  installs+=($!)
done
for install in "${installs[@]}"; do wait "$install"; done
