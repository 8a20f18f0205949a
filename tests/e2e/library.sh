#!/usr/bin/env bash
# The library: the example program, the installed header and pkg-config file, and what is installed.
. "$(dirname "$0")/lib.bash"
make_model --small vgg16_head
expect 0 "$BUILD/examples/optimise" "$tmp/vgg16_head.onnx" "$tmp/t.onnx" 65536
"$PYTHON" -c 'import json, sys; json.load(open(sys.argv[1]))' "$tmp/out" || fail "the example prints no JSON"
expect 0 "$PYTHON" "$root/scripts/compare.py" --rounds 1 "$tmp/vgg16_head.onnx" "$tmp/t.onnx"
# its report is the tool's
expect 0 "$BUILD/examples/optimise" "$tmp/vgg16_head.onnx" "$tmp/t4.onnx" 65536 "$tmp/r.xml"
expect 0 "$TOOL" "$tmp/vgg16_head.onnx" -o "$tmp/t5.onnx" -q --l2 65536 --goal memory --target cpu-generic --report "$tmp/s.xml"
cmp -s <(sed 's/ output="[^"]*"//' "$tmp/r.xml") <(sed 's/ output="[^"]*"//' "$tmp/s.xml") || fail "the library's report is not the tool's"
expect 1 "$BUILD/examples/optimise" "$tmp/absent.onnx" "$tmp/t2.onnx"
[ ! -e "$tmp/t2.onnx" ] || fail "an output for an absent input"

# sessions: the same sums from the original and the tiled model, at one and two threads
if "$TOOL" --help | grep -q 'run MODEL.*needs the native engine'; then
    expect 2 "$BUILD/examples/run_session" "$tmp/vgg16_head.onnx"
    grep -q 'lacks the native engine' "$tmp/err" || fail "no word of the engine: $(cat "$tmp/err")"
else
    expect 0 "$BUILD/examples/run_session" "$tmp/vgg16_head.onnx"
    cp "$tmp/out" "$tmp/sums"
    grep -q ' sum [0-9]' "$tmp/sums" || fail "no sums: $(cat "$tmp/sums")"
    expect 0 "$BUILD/examples/run_session" "$tmp/t.onnx" 2
    py sums "$tmp/sums" "$tmp/out" || fail "the tiled model gives other sums"
    expect 1 "$BUILD/examples/run_session" "$tmp/absent.onnx"
fi

# install, then build the example against what was installed
(cd "$root" && make -s install BUILD="$BUILD" PREFIX=/usr DESTDIR="$tmp/dest") >"$tmp/log" 2>&1 || fail "make install: $(cat "$tmp/log")"
for f in bin/onnx-tile lib/libonnxtile.a include/onnx_tile.h lib/pkgconfig/onnxtile.pc share/man/man1/onnx-tile.1 share/onnx-tile/target.xsd share/bash-completion/completions/onnx-tile share/zsh/vendor-completions/_onnx-tile share/fish/vendor_completions.d/onnx-tile.fish; do
    [ -f "$tmp/dest/usr/$f" ] || fail "not installed: $f"
done
export PKG_CONFIG_PATH=$tmp/dest/usr/lib/pkgconfig PKG_CONFIG_SYSROOT_DIR=
# shellcheck disable=SC2046
expect 0 "${CC:-gcc}" -std=c11 "$root/examples/optimise.c" -o "$tmp/example" \
    $(pkg-config --define-variable=prefix="$tmp/dest/usr" --cflags --libs onnxtile)
expect 0 "$tmp/example" "$tmp/vgg16_head.onnx" "$tmp/t3.onnx" 65536
cmp -s "$tmp/t.onnx" "$tmp/t3.onnx" || fail "the installed library gives other bytes"

# what the header and the guide show is code: each example becomes a function, and the first one runs
py shown "$root" >"$tmp/shown.c" || fail "no examples found"
# shellcheck disable=SC2046
expect 0 "${CC:-gcc}" -std=c11 -Wall -Wextra -Werror "$tmp/shown.c" -o "$tmp/shown" \
    $(pkg-config --define-variable=prefix="$tmp/dest/usr" --cflags --libs onnxtile)
cp "$tmp/vgg16_head.onnx" "$tmp/in.onnx"
cd "$tmp" || exit 1
expect 0 ./shown
[ -s out.onnx ] && [ ! -s "$tmp/err" ] || fail "the header's first example does not work: $(cat "$tmp/err")"
finish
