#!/usr/bin/env bash
# Other machines, built and tested on this one (x86-64 Debian): cross.sh PLATFORM [build|check]
#
#   aarch64   gcc-aarch64-linux-gnu, libraries of Debian's arm64 in build/cross/aarch64-root, run under qemu-user
#   windows   mingw-w64, the optimizer alone (no engine); libxml2 and protobuf-c of Debian's sources; run under Wine
#   wasm      emscripten, the optimizer alone as windows; run under Node.js
#
#   build     build/cross/PLATFORM/onnx-tile (onnx-tile.exe, onnx-tile.js)
#   check     golden plans, and models that must be written byte for byte as build/onnx-tile writes them;
#             aarch64: the unit tests of what depends on the machine, too (UNIT='test_a test_b': others)
#   page      wasm alone: build/page/onnx-tile.js, whose files are in memory (make page)
#
# Nothing is installed into this system but compilers and emulators (scripts/setup.sh cross-PLATFORM).
set -eu
cd "$(dirname "$0")/.."
platform=${1:-} what=${2:-build}
jobs=${JOBS:-$(nproc)}
here=build/cross program=
build=$here/$platform
python=${PYTHON:-$PWD/.venv/bin/python}
case $platform:$what in
aarch64:build | aarch64:check | windows:build | windows:check | wasm:build | wasm:check | wasm:page) ;;
*) sed -n '2,15s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
scripts/setup.sh "cross-$platform"
mkdir -p "$here"

# Folders of Debian's packages for arm64, as they are unpacked: nothing of them is run to install them.
aarch64_root() {
    local root=$here/aarch64-root suite
    [ -f "$root/.done" ] && return
    rm -rf "$root"
    suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
    mmdebstrap --quiet --variant=extract --architectures=arm64 \
        --include=libc6-dev,libgcc-12-dev,libstdc++-12-dev,libxml2-dev,libprotobuf-c-dev,libdnnl-dev,libgomp1,libcmocka-dev,libonnx-dev,opencl-headers,libvulkan-dev,ocl-icd-libopencl1,libvulkan1 \
        "$suite" "$root" "deb http://deb.debian.org/debian $suite main"
    # links to /lib/... lead out of the root: one linker takes an archive instead, another fails
    find "$root/usr/lib" -type l -lname '/*' | while read -r link; do ln -srfn "$root$(readlink "$link")" "$link"; done
    touch "$root/.done"
}

# What the Makefile would find out about this machine, for that one.
configure() { # flags for libxml2, folder of onnx.proto
    {
        echo 'PROTOBUF_LIBS := -lprotobuf-c'
        echo "XML_CFLAGS := $1"
        echo 'XML_LIBS := -lxml2'
        echo 'CMOCKA_LIBS := -lcmocka'
        echo "ONNX_PROTO_DIR := $2"
    } >"$here/$platform.mk"
}

made=(make -j"$jobs" --no-print-directory GLPK=no CONFIG="$here/$platform.mk")
case $platform in
aarch64)
    aarch64_root
    root=$PWD/$here/aarch64-root
    configure "-I$root/usr/include/libxml2" "$root/usr/include/onnx"
    made+=(CC="${CCACHE:-} aarch64-linux-gnu-gcc --sysroot=$root" AR=aarch64-linux-gnu-ar)
    run=(qemu-aarch64 -L "$root") exe=
    ;;
windows)
    scripts/cross_deps.sh windows "$build"
    root=$PWD/$build/root
    configure "-I$root/include/libxml2 -DLIBXML_STATIC" /usr/include/onnx
    made+=(CC="${CCACHE:-} x86_64-w64-mingw32-gcc -isystem $root/include" AR=x86_64-w64-mingw32-ar PLATFORM=windows ENGINE=no
        LDFLAGS="-static -L$root/lib")
    export WINEPREFIX=$PWD/$here/wine WINEDEBUG=-all
    run=(wine) exe=.exe
    ;;
wasm)
    export NODE_PATH=/usr/share/nodejs:/usr/lib/nodejs # Debian's modules, for a Node.js that is not Debian's
    scripts/cross_deps.sh wasm "$build"
    root=$PWD/$build/root
    configure "-I$root/include/libxml2 -DLIBXML_STATIC" /usr/include/onnx
    linked="-L$root/lib -sALLOW_MEMORY_GROWTH -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=8MB -sEXIT_RUNTIME -sMALLOC=dlmalloc"
    made+=(CC="${CCACHE:-} emcc -isystem $root/include" AR=emar OPT=-O2 PLATFORM=wasm ENGINE=no)
    if [ "$what" = page ]; then
        program=build/page/onnx-tile.js
        mkdir -p build/page
        linked+=" -sMODULARIZE -sEXPORT_NAME=onnxTile -sINVOKE_RUN=0 -sFORCE_FILESYSTEM"
        linked+=" -sENVIRONMENT=worker -sEXPORTED_RUNTIME_METHODS=FS,callMain"
        made+=(TOOL="$program" LDFLAGS="$linked")
    else
        made+=(LDFLAGS="$linked -sNODERAWFS -sENVIRONMENT=node")
    fi
    run=(node --no-experimental-fetch) exe=.js # emscripten 3.1.6 takes a fetch for a browser's
    ;;
esac

# A program of the other machine as one of this: FILE becomes a script that runs PROGRAM.
wrap() { # FILE PROGRAM
    mkdir -p "$(dirname "$1")"
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "${run[*]}" "$(realpath "$2")" >"$1"
    chmod +x "$1"
}

program=${program:-$build/onnx-tile$exe}
case $what in
build | page)
    "${made[@]}" BUILD="$build" "$program"
    [ "$program" != "$build/onnx-tile.js" ] || wrap "$build/run/onnx-tile" "$program"
    ls -l "${program%.js}"* | awk '{ print $9 ", " $5 " bytes" }'
    ;;
check)
    "${made[@]}" BUILD="$build" "$build/onnx-tile$exe"
    make -j"$jobs" --no-print-directory build/onnx-tile >/dev/null
    wrap "$build/run/onnx-tile" "$build/onnx-tile$exe"
    [ "$platform" != windows ] || wine wineboot --init >"$here/wine.log" 2>&1 # its services say nothing into the tests then
    export TOOL=$PWD/$build/run/onnx-tile PYTHON=$python TEST_JOBS=$jobs
    tests=(tests/cross/golden.sh tests/cross/same_files.sh)
    if [ "$platform" = aarch64 ]; then
        # vector code, threads, mapped files
        read -r -d '' -a units <<<"${UNIT:-test_engine_chain test_engine_product test_engine_qconv test_engine_winograd
            test_engine_rows test_engine_reduce test_engine_sample test_engine_fast_move test_engine_tiles test_engine_threads}" || true
        names=("${units[@]/#/$build/tests/}")
        "${made[@]}" BUILD="$build" "${names[@]}"
        for name in "${names[@]}"; do wrap "$build/run/$(basename "$name")" "$name"; done
        tests+=("${units[@]/#/$build/run/}")
    fi
    scripts/run_tests.sh "${tests[@]}"
    ;;
esac
