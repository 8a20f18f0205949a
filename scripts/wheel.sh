#!/usr/bin/env bash
# Pack what `make wheel` has built: the package of python/, the program and the library, and the libraries that these need.
#
#   BUILD=build/wheel VERSION=0.1.0 scripts/wheel.sh dist
#
#   python/onnx_tile + libonnxtile.so + shared-program --build--> a wheel for Linux --auditwheel--> one for every Linux of this C library or newer
#
# Libraries that every Python's machine has stay out (glibc, libstdc++); auditwheel copies the others in, under names of their own.
set -eu
cd "$(dirname "$0")/.."
out=$1
stage=$BUILD/package
libs=$BUILD/bundled
tools=$PWD/.venv-wheel/bin
read -r -a cc <<<"${CC:-gcc}"
export PATH=$tools:$PATH

# path of a library that the built one needs, by the beginning of its name; empty: none
needed() { ldd "$BUILD/libonnxtile.so" | awk -v name="$1" 'index($1, name) == 1 { print $3; exit }'; }

# libxml2 without ICU, whose tables are 31 MB (python/native/no_icu.c).
rm -rf "$stage" "$libs"
mkdir -p "$libs" "$out"
: >"$BUILD/packages"
xml=$(needed libxml2.so)
icu=$(patchelf --print-needed "$xml" | grep '^libicuuc\.so' || true)
if [ -n "$icu" ]; then
    cp "$xml" "$libs/"
    "${cc[@]}" -O2 -shared -fPIC -DICU="${icu##*.}" -Wl,-soname,libonnxtile-no-icu.so -o "$libs/libonnxtile-no-icu.so" python/native/no_icu.c
    patchelf --replace-needed "$icu" libonnxtile-no-icu.so "$libs/$(basename "$xml")"
fi

cp -r python "$stage"
python3 scripts/pypi_readme.py README.md "$stage/README.md" --home "${HOMEPAGE:-}"
mkdir -p "$stage/onnx_tile/bin" "$stage/onnx_tile/lib" "$stage/onnx_tile/licenses"
find "$stage" -name __pycache__ -prune -exec rm -rf {} +
cp "$BUILD/libonnxtile.so" "$stage/onnx_tile/lib/"
if [ -f "$BUILD/libonnxtile_ort.so" ]; then cp "$BUILD/libonnxtile_ort.so" "$stage/onnx_tile/lib/"; fi
cp "$BUILD/shared-program" "$stage/onnx_tile/bin/onnx-tile"
cp LICENSE "$stage/onnx_tile/licenses/onnx-tile"

# What the bundled libraries ask of who passes them on, as their packages have it.
for name in libdnnl libgomp libprotobuf-c libxml2 liblzma libOpenCL; do
    file=$(needed $name.so)
    [ -n "$file" ] || continue
    file=$(readlink -f "$file")
    package=$({ dpkg-query -S "$file" || dpkg-query -S "${file#/usr}"; } 2>/dev/null | sed 's/:.*//;q') || continue
    dpkg-query -W -f '${Package} ${Version}\n' "$package" | sed -n 1p >>"$BUILD/packages"
    [ -f "/usr/share/doc/$package/copyright" ] && cp "/usr/share/doc/$package/copyright" "$stage/onnx_tile/licenses/$package"
done

rm -rf "$BUILD/unrepaired"
ONNX_TILE_VERSION=$VERSION "$tools/python" -m build --wheel --no-isolation --outdir "$BUILD/unrepaired" "$stage" >"$BUILD/build.log" 2>&1 ||
    { cat "$BUILD/build.log" >&2; exit 1; }
rm -f "$out"/onnx_tile-*.whl
LD_LIBRARY_PATH=$PWD/$libs "$tools/auditwheel" repair --strip --zip-compression-level 9 -w "$out" "$BUILD"/unrepaired/*.whl >"$BUILD/audit.log" 2>&1 ||
    { cat "$BUILD/audit.log" >&2; exit 1; }
"$tools/python" scripts/wheel_bill.py "$out"/onnx_tile-*.whl "$BUILD/packages"
ls -l "$out"/onnx_tile-*.whl | awk '{ print $9 ", " $5 " bytes" }'
