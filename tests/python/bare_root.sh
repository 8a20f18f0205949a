#!/usr/bin/env bash
# The wheel in a bare root: bare_root.sh DIST. The root has what Debian calls essential, and Python with venv: no compiler, no library that the
# wheel brings. Times what a newcomer does: install the wheel, run README's lines of Python for a ResNet-50 and a super-resolution network.
set -eu
dist=$(realpath "${1:?folder with the wheel}")
root=$(cd "$(dirname "$0")/../.." && pwd)
python=${PYTHON:-$root/.venv/bin/python}
suite=${SUITE:-$(. /etc/os-release && echo "$VERSION_CODENAME")}
limit=60 # seconds
tmp=$(mktemp -d)
clean() {
    ! mountpoint -q "$tmp/root/proc" || umount "$tmp/root/proc"
    rm -rf --one-file-system "$tmp"
}
trap clean EXIT
fail() { echo "FAIL: $*"; exit 1; }
mmdebstrap --quiet --variant=apt --skip=chroot/mount --include=python3,python3-venv --aptopt='APT::Install-Recommends "false"' \
    "$suite" "$tmp/root" "deb http://deb.debian.org/debian $suite main"
inside() { chroot "$tmp/root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root "$@"; }
mount --bind /proc "$tmp/root/proc" # `check` measures memory there
! inside sh -c 'command -v gcc || command -v cc || command -v ld' || fail "the root is not bare"

# what pip would fetch, so that the root needs no network
version=$(inside python3 -c 'import sys; print("%d.%d" % sys.version_info[:2])')
mkdir "$tmp/root/wheels" "$tmp/root/work"
"$python" -m pip --disable-pip-version-check download --quiet --only-binary :all: --python-version "$version" --dest "$tmp/root/wheels" numpy onnxruntime
cp "$dist"/onnx_tile-*.whl "$tmp/root/wheels"

# README's lines from `import onnx_tile` on; x and options are what their reader has
sed -n '/^## Python$/,/^## /p' "$root/README.md" | sed -n '/^    import onnx_tile$/,/^$/s/^    //p' >"$tmp/lines"
[ "$(wc -l <"$tmp/lines")" -ge 5 ] || fail "README has no lines of Python"
{
    echo 'import numpy, onnxruntime'
    echo 'options = onnxruntime.SessionOptions()'
    echo 'x = numpy.random.default_rng(0).random(onnxruntime.InferenceSession("model.onnx").get_inputs()[0].shape, numpy.float32)'
    cat "$tmp/lines"
    echo 'assert numpy.isfinite(y).all()'
} >"$tmp/root/work/readme.py"
"$python" "$root/models/make_models.py" "$tmp/root/work" resnet50 --batch 8 --size 224
"$python" "$root/models/make_models.py" "$tmp/root/work" sr --size 360
mv "$tmp/root/work/sr.onnx" "$tmp/root/work/super_resolution.onnx"

start=$(date +%s)
inside python3 -m venv /work/venv
inside /work/venv/bin/python -m pip install --quiet --disable-pip-version-check --no-index --find-links /wheels onnx_tile numpy onnxruntime
echo "installed after $(($(date +%s) - start)) s"
for model in resnet50 super_resolution; do
    echo "== $model"
    mv "$tmp/root/work/$model.onnx" "$tmp/root/work/model.onnx"
    inside sh -c 'cd /work && exec venv/bin/python readme.py' >"$tmp/told" || fail "README's lines for $model"
    cat "$tmp/told"
    grep -q '^outputs: the same' "$tmp/told" || fail "$model: not the same"
done
seconds=$(($(date +%s) - start))
echo "$seconds s in all"
[ "$seconds" -lt "$limit" ] || fail "more than $limit s"
inside sh -c 'cd /work && venv/bin/onnx-tile --version && venv/bin/pip uninstall --quiet --yes onnx_tile && ! ls venv/bin | grep onnx-tile' || fail "cannot be removed"
echo "all good"
