#!/usr/bin/env bash
# The Debian packages: deb.sh OUT-FOLDER (`make deb`). A copy of the tree is built in build/deb, so that nothing is left in this one.
set -eu
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:?folder for the packages}")
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
told=$(dpkg-parsechangelog -S Version)
[ "$version" = "$told" ] || { echo "deb: debian/changelog is of $told, the Makefile of $version" >&2; exit 1; }
work=build/deb
rm -rf "$work"
mkdir -p "$work/onnx-tile" "$out"
tar -c --exclude=./build --exclude=./dist --exclude='./.venv*' --exclude=./.git . | tar -x -C "$work/onnx-tile"
(cd "$work/onnx-tile" && DEB_BUILD_OPTIONS="parallel=$(nproc) ${DEB_BUILD_OPTIONS:-}" dpkg-buildpackage --build=binary --no-sign --no-check-builddeps) >"$work/log" 2>&1 ||
    { tail -n 20 "$work/log" >&2; exit 1; }
lintian --fail-on error,warning "$work"/*.changes
cp "$work"/*.deb "$out"
ls -l "$out"/*.deb
