#!/usr/bin/env bash
# Install what is missing to build, check or lint onnx-tile. Idempotent; a quick no-op when all is there.
#
#   scripts/setup.sh build    compiler, protobuf-c, the ONNX protos, libxml2; oneDNN unless ENGINE=no, GLPK unless GLPK=no
#   scripts/setup.sh missing  installs nothing: prints the packages that build lacks
#   scripts/setup.sh demo     the same, plus .venv with the pinned packages of scripts/requirements.txt
#   scripts/setup.sh check    the same, plus xmllint, zsh, fish, Chromium unless BROWSER=no, OpenCL and Vulkan for the CPU with their checkers
#   scripts/setup.sh lint     clang-tidy, clang-format, cppcheck
#   scripts/setup.sh format   clang-format
#   scripts/setup.sh fuzz     clang with libFuzzer
#   scripts/setup.sh matrix   .venv-matrix with the runtimes of scripts/requirements-matrix.txt
#   scripts/setup.sh wheel    what build needs, plus .venv-wheel with the packagers of scripts/requirements-wheel.txt
#   scripts/setup.sh site     .venv-site with the packages of scripts/requirements-site.txt
#   scripts/setup.sh deb      what build needs, plus debhelper, lintian, and mmdebstrap for the bare root of make check-deb
#   scripts/setup.sh cross-aarch64, cross-windows, cross-wasm    compilers and emulators of scripts/cross.sh
#   scripts/setup.sh tsan     clang with ThreadSanitizer and an OpenMP library that it understands
#
# What is there is found by trying it (a command, a header), not by package name, so that tools installed
# by other means count. Packages come from apt-get; sudo is used only when not root. INSTALL=no installs nothing and
# fails with the list of what is missing; TESTS=no leaves out what only tests need.
set -eu
cd "$(dirname "$0")/.."
# One at a time: `make -j release` prepares one environment for the wheel and for the archive, and apt-get may run once only.
if [ -z "${SETUP_ALONE:-}" ] && command -v flock >/dev/null && mkdir -p build 2>/dev/null; then
    SETUP_ALONE=yes exec flock --close build/.setup.lock bash scripts/setup.sh "$@"
fi
what=${1:-build}
read -r -a cc <<<"${CC:-gcc}" # may be called by another one: "ccache gcc"

has_command() { command -v "$1" >/dev/null; }
has_header() { printf '#include <stddef.h>\n#include <stdarg.h>\n#include <setjmp.h>\n#include <stdint.h>\n#include <%s>\n' "$1" | "${cc[@]}" -fsyntax-only -x c - 2>/dev/null; }

missing=()
need_command() { has_command "$1" || missing+=("$2"); }
need_header() { has_command "${cc[0]}" && has_header "$1" || missing+=("$2"); }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi
}

install_missing() {
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "${INSTALL:-yes}" = no ]; then
        echo "setup: please install: ${missing[*]}" >&2
        exit 1
    fi
    if ! has_command apt-get; then
        echo "setup: please install: ${missing[*]} (no apt-get here)" >&2
        exit 1
    fi
    echo "setup: installing ${missing[*]}" >&2
    export DEBIAN_FRONTEND=noninteractive
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
}

has_fuzzer() { echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return d && n < 0; }' |
    clang -fsanitize=fuzzer,address -x c - -o /dev/null 2>/dev/null; }

has_openmp() { printf '#include <omp.h>\nint main(void) { return omp_get_num_threads() < 0; }\n' |
    clang -fopenmp -fsanitize=thread -x c - -o /dev/null 2>/dev/null; }

need_build() {
    need_command make make
    # a compiler without its libc headers cannot compile a hello world: ask for both
    if ! has_command "${cc[0]}" || ! has_header stdio.h; then missing+=(gcc libc6-dev); fi
    need_command ar binutils
    need_command protoc-c protobuf-c-compiler
    need_command pkg-config pkg-config
    need_header protobuf-c/protobuf-c.h libprotobuf-c-dev
    [ "${GLPK:-yes}" = no ] || need_header glpk.h libglpk-dev
    [ "${ENGINE:-yes}" = no ] || need_header dnnl.h libdnnl-dev
    [ "${TESTS:-yes}" = no ] || need_header cmocka.h libcmocka-dev
    [ -f /usr/include/onnx/onnx.proto ] || missing+=(libonnx-dev)
    if ! has_command pkg-config || ! pkg-config --exists libxml-2.0; then missing+=(libxml2-dev); fi
}

setup_build() {
    need_build
    install_missing
    # devices; without these headers the program is built and says so
    missing=()
    need_header CL/cl.h opencl-headers
    need_header vulkan/vulkan.h libvulkan-dev
    (install_missing) || echo "setup: not installed: ${missing[*]}; what needs them will say so" >&2
}

good_python() { # can make a virtual environment, and is new enough for the pinned packages
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for p in python3 /usr/bin/python3; do
        if has_command "$p" && good_python "$p"; then echo "$p"; return 0; fi
    done
    return 1
}

# folder, list of packages, modules that must load: a virtual environment, made anew when the list changes
setup_environment() {
    local stamp
    stamp=$1/.stamp-$(cksum < "$2" | tr ' ' '-')
    [ -f "$stamp" ] && return 0
    missing=()
    find_python >/dev/null || missing+=(python3 python3-venv)
    install_missing
    python=$(find_python) || { echo "setup: no Python 3.11 or newer with venv" >&2; exit 1; }
    echo "setup: preparing $1" >&2
    rm -rf "$1"
    "$python" -m venv "$1"
    "$1/bin/python" -m pip install --quiet --disable-pip-version-check -r "$2"
    "$1/bin/python" -c "import $3"
    touch "$stamp"
}

setup_python() { setup_environment .venv scripts/requirements.txt 'onnx, onnxruntime, numpy'; }

has_font() { [ -n "$(find /usr/share/fonts /usr/local/share/fonts -name '*.[ot]tf' -print -quit 2>/dev/null)" ]; }

# What tests of reports need: a schema checker, a browser and a font for it. Without them those tests fail, the others run.
setup_reports() {
    missing=()
    need_command xmllint libxml2-utils
    if [ "${BROWSER:-}" != no ]; then
        has_command chromium || has_command chromium-browser || has_command google-chrome || missing+=(chromium)
        has_font || missing+=(fonts-dejavu-core)
    fi
    (install_missing) || echo "setup: not installed: ${missing[*]}; tests of reports will fail" >&2
}

# What tests of completion need, and those of documents, which look at what is kept in the repository.
setup_shells() {
    missing=()
    need_command git git
    need_command zsh zsh
    need_command fish fish
    (install_missing) || echo "setup: not installed: ${missing[*]}; tests of completion and documents will fail" >&2
}

has_library() { PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -qF "$1"; }
has_file() { [ -n "$(find "$1" -name "$2" -print -quit 2>/dev/null)" ]; }

# What tests of devices need: loaders, drivers for the CPU, checkers, a compiler of GLSL, one of C++ for what stands for CUDA's driver.
# Without them those tests are skipped.
setup_devices() {
    missing=()
    need_command g++ g++
    has_library libOpenCL.so.1 || missing+=(ocl-icd-libopencl1)
    has_file /etc/OpenCL/vendors '*.icd' || missing+=(pocl-opencl-icd)
    need_command oclgrind oclgrind
    has_library libvulkan.so.1 || missing+=(libvulkan1)
    has_file /usr/share/vulkan/icd.d 'lvp_icd*.json' || missing+=(mesa-vulkan-drivers)
    has_file /usr/share/vulkan/explicit_layer.d 'VkLayer_khronos_validation.json' || missing+=(vulkan-validationlayers)
    need_command glslangValidator glslang-tools
    (install_missing) || echo "setup: not installed: ${missing[*]}; tests of devices are skipped" >&2
}

case $what in
build) setup_build ;;
check) setup_build; setup_python; setup_reports; setup_shells; setup_devices ;;
demo) setup_build; setup_python ;;
lint)
    need_command clang-tidy clang-tidy
    need_command clang-format clang-format
    need_command cppcheck cppcheck
    install_missing
    ;;
format)
    need_command clang-format clang-format
    install_missing
    ;;
fuzz)
    need_command clang clang
    has_fuzzer || missing+=(libclang-rt-dev)
    install_missing
    ;;
matrix)
    setup_build
    setup_environment .venv-matrix scripts/requirements-matrix.txt 'onnx, onnxruntime, numpy'
    ;;
wheel)
    setup_build
    setup_environment .venv-wheel scripts/requirements-wheel.txt 'auditwheel, build, setuptools'
    ;;
site) setup_environment .venv-site scripts/requirements-site.txt 'mkdocs, material' ;;
deb)
    setup_build
    missing=()
    need_command dh debhelper
    need_command dpkg-buildpackage dpkg-dev
    need_command fakeroot fakeroot
    need_command lintian lintian
    need_command mmdebstrap mmdebstrap
    install_missing
    ;;
tsan)
    need_command clang clang
    has_openmp || missing+=(libclang-rt-dev libomp-dev)
    install_missing
    ;;
cross-aarch64)
    setup_build
    missing=()
    need_command aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu
    need_command qemu-aarch64 qemu-user
    need_command mmdebstrap mmdebstrap
    install_missing
    ;;
cross-windows)
    setup_build
    missing=()
    need_command x86_64-w64-mingw32-gcc gcc-mingw-w64-x86-64-win32
    need_command wine wine
    has_file /usr/lib/wine wine64 || missing+=(wine64)
    need_command dpkg-source dpkg-dev
    install_missing
    ;;
cross-wasm)
    setup_build
    missing=()
    need_command emcc emscripten
    need_command node nodejs
    need_command dpkg-source dpkg-dev
    install_missing
    ;;
missing)
    need_build
    echo "${missing[*]}"
    ;;
*) echo "usage: scripts/setup.sh [build|missing|check|demo|lint|format|fuzz|matrix|wheel|site|deb|tsan|cross-aarch64|cross-windows|cross-wasm]" >&2; exit 2 ;;
esac
