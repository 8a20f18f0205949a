#!/usr/bin/env bash
# What `make release` has built, checked: release.sh DIST. Nothing is uploaded.
#
#   twine          descriptions and metadata, strictly
#   auditwheel     the wheel's platform is what its files ask for
#   release_check  tags, licences, what is inside (scripts/release_check.py)
set -eu
cd "$(dirname "$0")/.."
dist=${1:?folder of wheel and archive}
tools=${TOOLS:-$PWD/.venv-wheel/bin}
"$tools/twine" check --strict "$dist"/onnx_tile-*.whl "$dist"/onnx_tile-*.tar.gz
for wheel in "$dist"/onnx_tile-*.whl; do
    platform=$(basename "$wheel" .whl | sed 's/.*-none-//')
    "$tools/auditwheel" show "$wheel" >build/audit-show.log 2>&1 || { cat build/audit-show.log >&2; exit 1; }
    tr -s ' \n' ' ' <build/audit-show.log | grep -qF "platform tag: \"$platform\"" || { cat build/audit-show.log >&2; exit 1; }
    echo "auditwheel: $platform"
done
"$tools/python" scripts/release_check.py "$dist"
