#!/usr/bin/env bash
# The packages of a folder in a bare root: run.sh DIST. The root has what Debian calls essential, apt, and what the packages depend on: no compiler, no Python.
set -eu
dist=$(realpath "${1:?folder with the packages}")
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
# /dev and /proc are not needed by what is run here, and a container may not mount them
mmdebstrap --quiet --variant=apt --skip=chroot/mount --aptopt='APT::Install-Recommends "false"' "$suite" "$tmp/root" \
    "deb http://deb.debian.org/debian $suite main"
cp "$dist"/onnx-tile_*.deb "$dist"/libonnxtile-dev_*.deb "$tmp/root/tmp"
cp /etc/resolv.conf "$tmp/root/etc/resolv.conf" 2>/dev/null || true
inside() { chroot "$tmp/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8 HOME=/root "$@"; }
fail() { echo "FAIL: $*"; exit 1; }

inside apt-get update -qq >"$tmp/log" 2>&1 || fail "$(tail -n 5 "$tmp/log")"
inside sh -c 'apt-get install -y -qq --no-install-recommends /tmp/onnx-tile_*.deb' >"$tmp/log" 2>&1 || fail "$(tail -n 5 "$tmp/log")"
! inside sh -c 'command -v gcc || command -v python3' || fail "the root is not bare"
"$python" "$root/models/make_models.py" "$tmp/root/tmp" vgg16_head
inside onnx-tile --version
inside onnx-tile /tmp/vgg16_head.onnx -o /tmp/tiled.onnx --goal memory --threads 1 --target cpu-generic --verify
"$python" "$root/scripts/compare.py" --rounds 1 "$tmp/root/tmp/vgg16_head.onnx" "$tmp/root/tmp/tiled.onnx"
[ -s "$tmp/root/usr/share/bash-completion/completions/onnx-tile" ] || fail "no completion"
[ -s "$tmp/root/usr/share/man/man1/onnx-tile.1.gz" ] || fail "no manual page"

# the library: an archive, a header, pkg-config, and a program that is built with them
inside sh -c 'apt-get install -y -qq --no-install-recommends /tmp/libonnxtile-dev_*.deb gcc libc6-dev pkg-config' >"$tmp/log" 2>&1 || fail "$(tail -n 5 "$tmp/log")"
cp "$root/examples/optimise.c" "$tmp/root/tmp"
inside sh -c 'gcc -std=c11 /tmp/optimise.c -o /tmp/optimise $(pkg-config --cflags --libs onnxtile)' || fail "the example cannot be built"
inside /tmp/optimise /tmp/vgg16_head.onnx /tmp/library.onnx 65536 >/dev/null || fail "the example does not run"
inside apt-get remove -y -qq onnx-tile libonnxtile-dev >/dev/null 2>&1 || fail "cannot be removed"
[ ! -e "$tmp/root/usr/bin/onnx-tile" ] || fail "removed, and still there"
echo "all good"
