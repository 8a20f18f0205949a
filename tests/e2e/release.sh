#!/usr/bin/env bash
# What `make release` looks for is found: archives and wheels with planted faults. README as a package's description. What pip's build says of
# missing packages.
. "$(dirname "$0")/lib.bash"
py "$root" "$tmp" || fail "see above"

# the description has no link into the tree, and all words
expect 0 "$PYTHON" "$root/scripts/pypi_readme.py" "$root/README.md" "$tmp/described.md"
grep -nE '\]\((docs|CONTRIBUTING|CHANGELOG)' "$tmp/described.md" && fail "a link into the tree stays"
grep -q 'guide: all commands' "$tmp/described.md" || fail "the words of a link are gone"
expect 0 "$PYTHON" "$root/scripts/pypi_readme.py" "$root/README.md" "$tmp/described.md" --home https://example.org/tree
grep -qF '](https://example.org/tree/docs/guide.md)' "$tmp/described.md" || fail "--home does not come before paths"
grep -qF '![Memory of the process over time, before and after: FSRCNN x2, 960 x 540](https://example.org/tree/docs/memory.svg)' "$tmp/described.md" || fail "a picture has no address"

# nothing is installed where that is not wanted; the list has what is missing and only that
mkdir "$tmp/bin"
for name in bash cat dirname env grep make sed; do ln -s "$(command -v $name)" "$tmp/bin/$name"; done
expect 1 env PATH="$tmp/bin" INSTALL=no TESTS=no GLPK=no "$tmp/bin/bash" "$root/scripts/setup.sh" build
grep -q '^setup: please install: .*gcc.*protobuf-c-compiler' "$tmp/err" || fail "missing packages are not named: $(cat "$tmp/err")"
grep -q cmocka "$tmp/err" && fail "what tests alone need is asked for"

# one at a time: both would make the same environment
mkdir -p "$tmp/tree/scripts" "$tmp/tree/build"
cp "$root/scripts/setup.sh" "$tmp/tree/scripts/"
expect 0 "$tmp/tree/scripts/setup.sh" missing
expect 124 flock "$tmp/tree/build/.setup.lock" timeout 3 "$tmp/tree/scripts/setup.sh" missing

# nothing of GLPK is asked for by who makes a wheel
cp "$root/Makefile" "$tmp/tree/"
expect 2 env PATH="$tmp/bin" INSTALL=no "$tmp/bin/make" -C "$tmp/tree" wheel
grep -q '^setup: please install: .*protobuf-c-compiler' "$tmp/err" || fail "missing packages are not named: $(cat "$tmp/err")"
grep -q glpk "$tmp/err" && fail "a wheel needs no GLPK: $(cat "$tmp/err")"
finish
