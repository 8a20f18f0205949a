"""A headless Chromium, driven over its DevTools protocol.

    Browser  one process; messages go through a pair of pipes (--remote-debugging-pipe): JSON texts that end in a zero byte
      |      our end  fd 3 of Chromium: commands       fd 4: answers and events
      `- Page  one tab, made empty: what happens in it from the first byte of the file on is in .events

Every wait ends: a browser that says nothing for LIMIT seconds is an error (Silent), not a hang. Needs nothing but Python.
"""
import base64
import json
import os
import re
import select
import shutil
import subprocess
import tempfile
import time

LIMIT = 180.0
NAMES = ('chromium', 'chromium-browser', 'google-chrome', 'chrome')


class Silent(Exception):
    """The browser did not answer, or ended."""


def find():
    """The program, or None."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    def __init__(self, program):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        command_out, self.out = os.pipe()
        self.input, answer_in = os.pipe()

        def place():  # above all numbers that are taken, then down to 3 and 4
            os.dup2(command_out, 103)
            os.dup2(answer_in, 104)
            os.dup2(103, 3)
            os.dup2(104, 4)

        # The pages are the tool's own and the tests often run in a container, where Chromium's sandbox cannot.
        self.process = subprocess.Popen(
            [program, '--headless=new', '--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars',
             '--no-first-run', '--disable-background-networking', '--disable-component-update', '--disable-extensions',
             '--force-color-profile=srgb', '--font-render-hinting=none', f'--user-data-dir={self.folder.name}',
             '--remote-debugging-pipe', 'about:blank'],
            preexec_fn=place, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(command_out)
        os.close(answer_in)
        self.rest, self.count, self.pages = b'', 0, {}

    def read(self):
        """The next message; events are handed to their page."""
        until = time.monotonic() + LIMIT
        while b'\0' not in self.rest:
            ready, _, _ = select.select([self.input], [], [], max(0.0, until - time.monotonic()))
            part = os.read(self.input, 1 << 20) if ready else b''
            if not part:
                raise Silent('the browser ended' if ready else f'the browser said nothing for {LIMIT:.0f} s')
            self.rest += part
        text, _, self.rest = self.rest.partition(b'\0')
        message = json.loads(text)
        if 'method' in message and message.get('sessionId') in self.pages:
            self.pages[message['sessionId']].events.append(message)
        return message

    def send(self, method, session=None, **params):
        """Do it and return the result."""
        self.count += 1
        mine = self.count
        message = {'id': mine, 'method': method, 'params': params}
        if session:
            message['sessionId'] = session
        data = memoryview(json.dumps(message).encode() + b'\0')
        while data:
            data = data[os.write(self.out, data):]
        while True:
            answer = self.read()
            if answer.get('id') == mine:
                if 'error' in answer:
                    raise RuntimeError(f"{method}: {answer['error'].get('message')}")
                return answer['result']

    def close(self):
        try:
            self.send('Browser.close')
            self.process.wait(10)
        except (Silent, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        self.folder.cleanup()


# Runs before the page's own script: counts what would make it feel slow.
WATCH = '''window.longTasks = [];
new PerformanceObserver(list => { for (const e of list.getEntries()) longTasks.push(e.duration); })
    .observe({ type: "longtask", buffered: true });'''
KEYS = {'Enter': (13, '\r'), 'Escape': (27, ''), 'Tab': (9, '')}


class Page:
    """Of a file, or of an http address."""

    def __init__(self, browser, path, width=1280, height=900, dark=False, script=True):
        self.browser, self.events, self.path = browser, [], path
        self.target = browser.send('Target.createTarget', url='about:blank')['targetId']
        self.session = browser.send('Target.attachToTarget', targetId=self.target, flatten=True)['sessionId']
        browser.pages[self.session] = self
        for domain in ('Page', 'Runtime', 'Log', 'Network'):
            self.send(domain + '.enable')
        if not script:
            self.send('Emulation.setScriptExecutionDisabled', value=True)
        self.send('Page.addScriptToEvaluateOnNewDocument', source=WATCH)
        self.size(width, height)
        self.dark(dark)
        start = time.monotonic()
        self.send('Page.navigate', url=path if path.startswith('http://') else 'file://' + os.path.abspath(path))
        while not any(e['method'] == 'Page.loadEventFired' for e in self.events):
            browser.read()
        self.js('new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))' if script else '0')
        self.load_time = time.monotonic() - start
        self.long_tasks = self.js('longTasks') if script else []

    def send(self, method, **params):
        return self.browser.send(method, self.session, **params)

    def js(self, expression):
        """The expression's value, as JSON can say it."""
        answer = self.send('Runtime.evaluate', expression=expression, returnByValue=True, awaitPromise=True)
        if 'exceptionDetails' in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer['result'].get('value')

    def size(self, width, height):
        self.send('Emulation.setDeviceMetricsOverride', width=width, height=height, deviceScaleFactor=1, mobile=False)

    def dark(self, on):
        self.send('Emulation.setEmulatedMedia',
                  features=[{'name': 'prefers-color-scheme', 'value': 'dark' if on else 'light'},
                            {'name': 'prefers-reduced-motion', 'value': 'reduce'}])

    def complaints(self):
        """What the console would show."""
        texts = []
        for e in self.events:
            p = e['params']
            if e['method'] == 'Log.entryAdded':
                texts.append(p['entry']['text'])
            elif e['method'] == 'Runtime.exceptionThrown':
                texts.append(p['exceptionDetails']['text'])
            elif e['method'] == 'Runtime.consoleAPICalled':
                texts.append(f"console.{p['type']}")
            elif e['method'] == 'Page.javascriptDialogOpening':
                texts.append('a dialog: ' + p['message'])
        return texts

    def requests(self):
        return [e['params']['request']['url'] for e in self.events if e['method'] == 'Network.requestWillBeSent']

    def click(self, selector):
        """With the mouse, in the middle of the first box that the element fills."""
        where = self.js(f'''(() => {{ const e = document.querySelector({json.dumps(selector)});
            e.scrollIntoView({{ block: "center", behavior: "instant" }}); const b = e.getClientRects()[0];
            return [b.x + b.width / 2, b.y + b.height / 2]; }})()''')
        for kind in ('mousePressed', 'mouseReleased'):
            self.send('Input.dispatchMouseEvent', type=kind, x=where[0], y=where[1], button='left', clickCount=1)

    def key(self, key):
        code, text = KEYS.get(key, (ord(key[0].upper()), key))
        self.send('Input.dispatchKeyEvent', type='keyDown', key=key, windowsVirtualKeyCode=code, **({'text': text} if text else {}))
        self.send('Input.dispatchKeyEvent', type='keyUp', key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.send('Input.insertText', text=text)

    def until(self, expression):
        """Wait for it to become true; False when it does not."""
        end = time.monotonic() + 30
        while time.monotonic() < end:
            if self.js(expression):
                return True
            time.sleep(0.02)
        return False

    def screenshot(self, path, most=6000, whole=True):
        """The whole page, its first `most` pixels; or what the window shows."""
        more = {}
        if whole:
            width, height = self.js('[innerWidth, document.documentElement.scrollHeight]')
            clip = {'x': 0, 'y': 0, 'width': width, 'height': min(height, most), 'scale': 1}
            more = {'captureBeyondViewport': True, 'clip': clip}
        with open(path, 'wb') as f:
            f.write(base64.b64decode(self.send('Page.captureScreenshot', format='png', **more)['data']))

    def pdf(self, path):
        """Print it; the number of pages."""
        data = base64.b64decode(self.send('Page.printToPDF', printBackground=True)['data'])
        with open(path, 'wb') as f:
            f.write(data)
        return len(re.findall(rb'/Type\s*/Page\b(?!s)', data))

    def close(self):
        self.browser.send('Target.closeTarget', targetId=self.target)
        del self.browser.pages[self.session]
