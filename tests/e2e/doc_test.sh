#!/usr/bin/env bash
# run: first
# README and the documents: commands are run, output that is shown is compared, files, options, targets and links exist.
. "$(dirname "$0")/lib.bash"
"$PYTHON" "$root/tests/e2e/doc_test.py" "$TOOL" "$root" || fail "a document says what is not so"
"$PYTHON" "$root/scripts/results.py" --check >"$tmp/out" 2>&1 || fail "$(cat "$tmp/out")"

# a document of lies: what is found in it, a line each
mkdir -p "$tmp/repo/docs"
cd "$tmp/repo" && git init -q . || fail "no git"
printf '.PHONY: all\nall:\n' >Makefile
printf 'Members: `no_such_member`, `\n' >docs/json.md
cat >README.md <<'E'
# A document

No [file](docs/none.md), no [heading](#nothing), no `src/none.c`, no `none.h`, no `--no-such-option`, no `make nothing`.

    onnx-tile --list-targets --no-such-option

<!-- doc-test: exit 2 -->

    onnx-tile --version

```
$ onnx-tile --version
onnx-tile 9.9.9
```

<!-- doc-test: skip -->

    make all
E
"$PYTHON" "$root/tests/e2e/doc_test.py" "$TOOL" . >"$tmp/out" 2>&1 && fail "lies are believed"
for what in 'link to docs/none.md' 'link to #nothing: no such heading' 'names src/none.c' 'names none.h' 'speaks of --no-such-option' \
    'speaks of make nothing' 'exit 2, not 0' 'exit 0, not 2' 'prints otherwise' 'skipped without a reason' 'lists no_such_member'; do
    grep -qF -- "$what" "$tmp/out" || fail "not found: $what"
done
grep -q '^2 documents: 3 blocks of commands ran, of which 1 were compared; 1 skipped' "$tmp/out" || fail "another sum: $(tail -n 1 "$tmp/out")"
finish
