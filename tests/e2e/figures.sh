#!/usr/bin/env bash
# One run, one set of figures: table, JSON, XML, page, CSV and Markdown tell the same, parts add up, and no limit lies above a figure.
. "$(dirname "$0")/lib.bash"
make_model unet dncnn resnet50 mobilenet_v2 --small
py agree "$TOOL" "$tmp" || fail "outputs of one run differ"
finish
