#!/usr/bin/env bash
# The source archive in a bare root: bare_sdist.sh DIST (`make check-sdist`). pip compiles it there with the packages that docs/python.md lists, and
# nothing else of this tree; without them it says which are missing. The root has no network but what pip needs to build: that is brought along.
set -eu
dist=$(realpath "${1:?folder with the archive}")
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
tmp=$(mktemp -d)
clean() {
    ! mountpoint -q "$tmp/root/proc" || umount "$tmp/root/proc"
    rm -rf --one-file-system "$tmp"
}
trap clean EXIT
fail() { echo "FAIL: $*"; exit 1; }
packages=$(sed -n 's/^ *apt-get install \(.*libonnx-dev.*\)$/\1/p' "$root/docs/python.md" | sed 's/ *#.*//')
[ -n "$packages" ] || fail "docs/python.md lists no packages"
mmdebstrap --quiet --variant=apt --skip=chroot/mount --include=python3,python3-venv --aptopt='APT::Install-Recommends "false"' \
    "$suite" "$tmp/root" "deb http://deb.debian.org/debian $suite main"
inside() { chroot "$tmp/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root DEBIAN_FRONTEND=noninteractive "$@"; }
mount --bind /proc "$tmp/root/proc" # programs find the libraries beside them there
mkdir "$tmp/root/wheels" "$tmp/root/work"
"$python" -m pip --disable-pip-version-check download --quiet --dest "$tmp/root/wheels" 'setuptools>=77' wheel
cp "$dist"/onnx_tile-*.tar.gz "$tmp/root/work/"
"$python" "$root/models/make_models.py" "$tmp/root/work" sr --size 96
inside python3 -m venv /work/venv
install_it() { inside sh -c 'exec /work/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --find-links /wheels /work/onnx_tile-*.tar.gz'; }
! install_it >"$tmp/told" 2>&1 || fail "it compiled without a compiler"
inside apt-get update -qq
inside apt-get install -y -qq --no-install-recommends make >/dev/null 2>&1
! install_it >"$tmp/told" 2>&1 || fail "it compiled without a compiler"
grep -q 'setup: please install: .*libonnx-dev' "$tmp/told" || { cat "$tmp/told"; fail "what is missing is not named"; }
# shellcheck disable=SC2086 # words
inside apt-get install -y -qq --no-install-recommends $packages >/dev/null 2>&1
install_it || fail "it does not compile with: $packages"
inside sh -c 'cd /work && venv/bin/onnx-tile --version && venv/bin/onnx-tile sr.onnx -o t.onnx --goal memory && venv/bin/python -c "
import onnx_tile
print(onnx_tile.__version__, onnx_tile.inspect(\"sr.onnx\").regions[:1])"' || fail "it does not run"
echo "all good"
