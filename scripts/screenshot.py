#!/usr/bin/env python3
"""Top of a page as a PNG for the README: screenshot.py PAGE.html OUT.png [WIDTH HEIGHT]. Needs Chromium."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'tests', 'e2e'))
import devtools

page, out = sys.argv[1:3]
width, height = (int(a) for a in sys.argv[3:5]) if len(sys.argv) > 4 else (1260, 900)
program = devtools.find()
if not program:
    sys.exit('screenshot: no Chromium: scripts/setup.sh check installs it')
browser = devtools.Browser(program)
try:
    devtools.Page(browser, page, width, height).screenshot(out, whole=False)
finally:
    browser.close()
