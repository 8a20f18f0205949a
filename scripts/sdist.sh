#!/usr/bin/env bash
# The source archive of the Python package: sdist.sh OUT-FOLDER (`make sdist`), from which pip compiles it.
#
#   onnx_tile-VERSION.tar.gz
#     onnx_tile/, setup.py, pyproject.toml, README.md, LICENSE    the package, as in the wheel but for what is compiled
#     tree/                                                       what the Makefile needs for that, and nothing else
#
# HOMEPAGE=PREFIX: links of the README lead to PREFIX/docs/...
set -eu
cd "$(dirname "$0")/.."
out=$(realpath -m "${1:?folder for the archive}")
tools=$PWD/.venv-wheel/bin
version=$(sed -n 's/^VERSION *:= *//p' Makefile)
stage=build/sdist
rm -rf "$stage"
mkdir -p "$stage/tree/python" "$stage/tree/reports" "$stage/tree/scripts" "$out"
cp -r python/onnx_tile python/setup.py "$stage/"
cp LICENSE "$stage/"
cp -r Makefile include src "$stage/tree/"
cp -r python/native "$stage/tree/python/"
cp reports/benefit.xsd "$stage/tree/reports/"
cp scripts/setup.sh "$stage/tree/scripts/"
find "$stage" -name __pycache__ -prune -exec rm -rf {} +
# Nothing is bundled: the licence is ours alone.
sed -e 's/^license = .*/license = "Apache-2.0"/' -e 's/^license-files = .*/license-files = ["LICENSE"]/' \
    -e '/^# Of the package, and of the libraries/d' python/pyproject.toml >"$stage/pyproject.toml"
python3 scripts/pypi_readme.py README.md "$stage/README.md" --home "${HOMEPAGE:-}"
echo 'graft tree' >"$stage/MANIFEST.in"
ONNX_TILE_VERSION=$version "$tools/python" -m build --sdist --no-isolation --outdir "$out" "$stage" >build/sdist.log 2>&1 ||
    { cat build/sdist.log >&2; exit 1; }
ls -l "$out/onnx_tile-$version.tar.gz" | awk '{ print $9 ", " $5 " bytes" }'
