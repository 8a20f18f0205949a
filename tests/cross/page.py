#!/usr/bin/env python3
"""Drive the page of page.sh: page.py PAGE FOLDER SCREENSHOTS; one line for each thing that is wrong.

FOLDER/given has models, FOLDER/want what the native program wrote and said of them."""
import functools
import http.server
import json
import os
import re
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'e2e'))
import devtools

PAGE, FOLDER, SHOTS = sys.argv[1:4]
GIVEN, WANT, SAVED = (os.path.join(FOLDER, name) for name in ('given', 'want', 'saved'))
PHONE, DESK = 390, 1280
PARTS = {'/index.html', '/page.css', '/page.js', '/worker.js', '/onnx-tile.js', '/onnx-tile.wasm'}
LIMIT = 300
failures = 0


def expect(true, what):
    global failures
    if not true:
        failures += 1
        print(f'FAIL: {what}')


def equal(got, want, what):
    expect(got == want, f'{what}: {got!r}, not {want!r}')


def read(*path):
    with open(os.path.join(*path), 'rb') as f:
        return f.read()


class Server(http.server.ThreadingHTTPServer):
    """The page's folder; remembers what was asked for."""

    def __init__(self):
        self.asked = []
        server = self

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_message(self, *_):
                server.asked.append((self.command, self.path))

        super().__init__(('127.0.0.1', 0), functools.partial(Handler, directory=PAGE))
        threading.Thread(target=self.serve_forever, daemon=True).start()


def wait(page, expression, what):
    """Processor time of a busy machine may be short: LIMIT is for a page that hangs."""
    end = time.monotonic() + LIMIT
    while time.monotonic() < end:
        if page.until(expression):
            return True
    expect(False, f'{what}: not within {LIMIT} s')
    return False


def choose(page, names):
    root = page.send('DOM.getDocument')['root']['nodeId']
    node = page.send('DOM.querySelector', nodeId=root, selector='#files')['nodeId']
    page.send('DOM.setFileInputFiles', nodeId=node, files=[os.path.join(GIVEN, name) for name in names])


def put(page, field, value):
    page.js(f'document.getElementById("{field}").value = {json.dumps(value)}')


def text(page, element):
    return page.js(f'document.getElementById("{element}").textContent')


def shown(page, element):
    return page.js(f'!document.getElementById("{element}").hidden')


def run(page, names, **fields):
    """Run it; True when there is a result, False when there is an error, in the page."""
    choose(page, names)
    for field in ('shapes', 'slowdown', 'more'):
        put(page, field, fields.get(field, ''))
    page.click('#run')
    return wait(page, '!document.getElementById("result").hidden || !document.getElementById("error").hidden', names[0]) and \
        shown(page, 'result')


def without_time(said):
    return re.sub(r', [0-9.]* s$', '', said, flags=re.M)


def save(page, name):
    """The files that its links save: all of them, by a click each."""
    folder = os.path.join(SAVED, name)
    os.makedirs(folder)
    page.browser.send('Browser.setDownloadBehavior', behavior='allow', downloadPath=folder)
    names = page.js('Array.from(document.querySelectorAll("#links a"), a => a.download)')
    for k, file in enumerate(names):
        page.click(f'#links li:nth-child({k + 1}) a')
        end = time.monotonic() + LIMIT
        while not os.path.exists(os.path.join(folder, file)) and time.monotonic() < end:
            page.js('0')
            time.sleep(0.05)
    return names


def check_report(page, name):
    """It is shown in a frame that is a target of its own, for it may not touch the page; its script runs."""
    expect(shown(page, 'report'), f'{name}: no report')
    frames = [t for t in page.browser.send('Target.getTargets')['targetInfos'] if t['type'] == 'iframe']
    equal(len(frames), 1, f'{name}: frames')
    session = page.browser.send('Target.attachToTarget', targetId=frames[0]['targetId'], flatten=True)['sessionId']
    look = '[document.querySelector("h1").textContent, document.querySelectorAll("th button").length > 0]'
    answer = page.browser.send('Runtime.evaluate', session, expression=look, returnByValue=True)
    equal(answer['result'].get('value'), [name + '.onnx', True], f'{name}: its report shows')


def check_same(page, name, files=(), **fields):
    """Bytes, report and texts are those of the native program."""
    if not run(page, [name + '.onnx', *files], **fields):
        expect(False, f'{name}: {text(page, "error")}')
        return
    names = save(page, name)
    tiled = sorted(n for n in os.listdir(WANT) if n.startswith(name + '.tiled.onnx'))
    equal(sorted(names), sorted(['report.html', *tiled]), f'{name}: files')
    for file in tiled:
        expect(file in names and read(SAVED, name, file) == read(WANT, file), f'{name}: other bytes in {file}')
    expect(read(SAVED, name, 'report.html') == read(WANT, name + '.html'), f'{name}: another report')
    said = (read(WANT, name + '.out') + read(WANT, name + '.err')).decode().replace('../want/', '')
    equal(without_time(text(page, 'text')), without_time(said), f'{name}: it says')
    check_report(page, name)


def check_failure(page, names, line, **fields):
    expect(not run(page, names, **fields), f'{names}: not refused')
    equal(text(page, 'error'), line, f'{names}: the error')
    expect(page.js('!document.getElementById("run").disabled'), f'{names}: no other run after an error')


def check_widths(page):
    for width in (DESK, PHONE):
        page.size(width, 900)
        wide = page.js('document.documentElement.scrollWidth')
        expect(wide <= width, f'{wide} px wide, of {width}')
        page.screenshot(f'{SHOTS}/page-{width}.png')
        page.js('document.getElementById("report").scrollIntoView()')
        page.screenshot(f'{SHOTS}/page-report-{width}.png', whole=False)
        page.js('scrollTo(0, 0)')
    page.size(DESK, 900)


def check_drop(page):
    page.js('''(() => { const d = new DataTransfer(); d.items.add(new File(["x"], "dropped.onnx"));
        document.body.dispatchEvent(new DragEvent("drop", { dataTransfer: d, bubbles: true, cancelable: true })); })()''')
    expect('dropped.onnx' in text(page, 'chosen'), 'a file that is dropped is not taken')
    page.js('document.getElementById("run").click(); document.getElementById("stop").click()')
    equal(text(page, 'state'), 'stopped', 'a run that is stopped says')
    expect(page.js('!document.getElementById("run").disabled'), 'no other run after one that was stopped')


def main():
    program = devtools.find()
    if not program:
        sys.exit('FAIL: no Chromium: scripts/setup.sh check installs it')
    server, browser = Server(), devtools.Browser(program)
    try:
        page = devtools.Page(browser, f'http://127.0.0.1:{server.server_address[1]}/index.html', DESK)
        wait(page, '["target", "runtime"].every(id => document.getElementById(id).options.length > 4) && '
                   'document.getElementById("version").textContent.startsWith("onnx-tile ")', 'what the program knows')
        equal(page.js('[document.getElementById("target").value, document.getElementById("runtime").value]'), ['cpu-generic', 'onnxruntime'],
              'chosen are')
        page.screenshot(f'{SHOTS}/page-empty.png')
        check_same(page, 'unet')
        check_same(page, 'resnet50')
        check_same(page, 'outside', ['outside.bin'])
        check_widths(page)
        check_same(page, 'free', shapes='x=1,4,256,256', slowdown='40', more='--force  --l2 "64K"')
        check_failure(page, ['broken.onnx'], read(WANT, 'broken.err').decode().strip())
        check_failure(page, ['unet.onnx'], "onnx-tile: error: unknown option '--gaol': did you mean '--goal'?", more='--gaol memory')
        page.screenshot(f'{SHOTS}/page-error.png')
        check_failure(page, ['unet.onnx', 'large.bin'], 'large.bin has 2.15 GB: a file must be smaller than 2 GiB in a browser')
        check_drop(page)
        equal(page.complaints(), [], 'the console says')
        own = (f'http://127.0.0.1:{server.server_address[1]}/', 'blob:', 'data:')
        equal([u for u in page.requests() if not u.startswith(own)], [], 'it asks elsewhere for')
        equal(sorted({p for _, p in server.asked} - PARTS), [], 'it asks for')
        equal({c for c, _ in server.asked}, {'GET'}, 'it asks by')
    finally:
        browser.close()
        server.shutdown()
    return 1 if failures else 0


sys.exit(main())
