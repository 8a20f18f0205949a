#!/usr/bin/env bash
# The site without its packager: references have every function, and links that lead nowhere are found.
. "$(dirname "$0")/lib.bash"
py "$root" "$tmp" || fail "see above"
finish
