#!/usr/bin/env bash
# run: first
# Golden plans of a build for another machine (TOOL); without the engine those of kernels that are compiled for devices are left out.
set -u
cd "$(dirname "$0")/../.." || exit 1
parts=()
for folder in tests/golden/*/; do
    case $folder in
    */device/) "$TOOL" --help | grep -q 'run-kernel.*needs the native engine' && continue ;;
    esac
    parts+=("${folder#tests/golden/}")
done
[ ${#parts[@]} -gt 5 ] || { echo "FAIL: only ${#parts[@]} folders"; exit 1; }
exec scripts/golden.sh "${parts[@]}"
