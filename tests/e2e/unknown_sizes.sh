#!/usr/bin/env bash
# Sizes that are free, not known, or inside of bodies: exit status of every limit for every runtime, as docs/reports.md has it, and no figure of any output is 0.
. "$(dirname "$0")/lib.bash"
py grid "$TOOL" "$tmp" "$root/docs/reports.md" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py figures "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py bodies "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py decided "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py cures "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py trees "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py ranges "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
py behind "$TOOL" "$tmp" >"$tmp/out" 2>&1 || fail "$(tail -n 30 "$tmp/out")"
finish
