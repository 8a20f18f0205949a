"""Drive the reports of browser.sh in headless Chromium. browser.py FOLDER SCREENSHOTS; one line for each thing that is wrong.

What must be true is read from the XML reports next to the pages (names of nodes, regions, figures), not from the pages. Nothing
here depends on how fast anything is: how long the largest page took to load is printed, its size is what is limited."""
import json
import os
import sys
import xml.etree.ElementTree as xml

import devtools

FOLDER, SHOTS = sys.argv[1:3]
LARGEST = 5 * 1000 * 1000
PHONE = 400
FOLDABLE = 150  # of more regions the page has a table only
# What each page has, besides the summary: ids of sections, in order.
PLANNED = ['regions', 'explain', 'graph', 'maps', 'roofline', 'barriers', 'target']
FREE = [p for p in PLANNED if p != 'barriers']
PAGES = {'resnet50': ['cards', *PLANNED], 'unet': ['cards', *PLANNED], 'transformer': ['cards', *FREE], 'empty': ['cards', *PLANNED[1:]],
         'bench': ['cards', 'bench', *FREE]}
PRINTED = ['unet', 'empty', 'bench', 'compare']
failures = 0
page_now = ''


def expect(true, what):
    global failures
    if not true:
        failures += 1
        print(f'FAIL: {page_now}: {what}')


def equal(got, want, what):
    expect(got == want, f'{what}: {got!r}, not {want!r}')


class Report:
    """What the XML report says."""

    def __init__(self, path):
        tree = xml.parse(path).getroot()
        self.nodes = [(n.get('name'), n.get('region')) for n in tree.iter('node')]
        self.regions = [r.get('id') for r in tree.iter('region')]


# ---- what holds for every page ----

def check_quiet(page):
    equal(page.complaints(), [], 'the console says')
    equal([u for u in page.requests() if not (u.startswith('file://') and u.endswith(os.path.basename(page.path)))], [],
          'it loads')


def check_width(page, name):
    page.size(PHONE, 800)
    wide = page.js('document.documentElement.scrollWidth')
    if wide > PHONE:
        first = page.js('''Array.from(document.querySelectorAll("body *")).filter(e =>
            !e.closest("svg, .scroll, .g-frame, .g-overview, .skip") && e.getBoundingClientRect().right > innerWidth + 1)
            .slice(0, 3).map(e => e.tagName + "." + e.className)''')
        expect(False, f'scrolls sideways at {PHONE} pixels, to {wide}: {first}')
    page.screenshot(f'{SHOTS}/{name}-phone.png')
    page.size(1280, 900)


def check_page(browser, name):
    page = devtools.Page(browser, f'{FOLDER}/{name}.html')
    expect(page.js('document.title.length > 0 && document.querySelector("h1").textContent.length > 0'), 'no title')
    equal(page.js('document.scripts.length'), 1, 'scripts')
    equal(page.js('document.querySelectorAll("img, iframe, object, embed, link, [onload], [onerror]").length'), 0,
          'foreign elements')
    equal(page.js('Array.from(document.querySelectorAll("svg[role=img]")).filter(e => !e.getAttribute("aria-label")).length'), 0,
          'drawings without a name')
    equal(page.js('''(() => { const s = new Set(), d = []; for (const e of document.querySelectorAll("[id]"))
        s.has(e.id) ? d.push(e.id) : s.add(e.id); return d; })()'''), [], 'ids given twice')
    page.screenshot(f'{SHOTS}/{name}-light.png')
    colours = '(c => [c.color, c.backgroundColor])(getComputedStyle(document.body))'
    light = page.js(colours)
    page.dark(True)
    expect(page.js(colours) != light, 'dark is as light')
    page.screenshot(f'{SHOTS}/{name}-dark.png')
    page.dark(False)
    check_width(page, name)
    if name in PRINTED:
        expect(page.pdf(f'{SHOTS}/{name}.pdf') >= 1, 'prints no page')
        page.size(720, 1000)  # of a sheet between its margins
        page.send('Emulation.setEmulatedMedia', media='print')
        wide = page.js('document.documentElement.scrollWidth')  # all of it is made smaller for a table that is wider: by a sixth at most
        expect(wide <= 864, f'is {wide} pixels wide on paper')
        page.dark(False)
        page.size(1280, 900)
    check_quiet(page)
    return page


def check_sections(page, name, report):
    equal(page.js('Array.from(document.querySelectorAll("main > section"), s => s.id)'), PAGES[name], 'sections')
    equal(page.js('Array.from(document.querySelectorAll("nav.bar ul a"), a => a.getAttribute("href"))'),
          ['#' + s for s in PAGES[name]], 'navigation')
    equal(page.js('document.querySelectorAll("#region-table tbody tr").length'), len(report.regions), 'rows of the region table')
    foldable = page.js('Array.from(document.querySelectorAll("details.region"), d => d.id)')
    equal(foldable, [f'region-{r}' for r in report.regions][:FOLDABLE], 'foldable regions')
    empty = page.js('''Array.from(document.querySelectorAll("main > section")).filter(s => {
        const b = s.getBoundingClientRect(); return b.width * b.height === 0; }).map(s => s.id)''')
    equal(empty, [], 'sections that show nothing')


# ---- sorting ----

# Of each row its place in the file (column 0 before sorting) and the key of a column: a number where the cell has one.
ROWS = '''Array.from(document.querySelector("#region-table").tBodies[0].rows, row => { const c = row.cells[%d];
    const d = c.querySelectorAll("data"); return [row.dataset.region, d.length ? d[d.length - 1].getAttribute("value") : null,
    c.textContent.trim()]; })'''


def is_sorted(keys, descending):
    pairs = zip(keys[1:], keys) if descending else zip(keys, keys[1:])
    return all(a <= b for a, b in pairs)


def check_sorting(page):
    heads = page.js('Array.from(document.querySelectorAll("#region-table thead th"), h => h.textContent)')
    before = [r[0] for r in page.js(ROWS % 0)]
    expect(len(before) > 10, 'too few regions: texts and numbers sort alike')
    moved = 0
    for column, head in enumerate(heads):
        for turn, word in enumerate(('ascending', 'descending')):
            page.click(f'#region-table thead th:nth-child({column + 1}) button')
            equal(page.js('Array.from(document.querySelectorAll("#region-table thead th"), h => h.getAttribute("aria-sort"))'),
                  [word if k == column else 'none' for k in range(len(heads))], f'aria-sort after sorting by {head}')
            rows = page.js(ROWS % column)
            equal(sorted(r[0] for r in rows), sorted(before), f'rows after sorting by {head}')
            if all(r[1] is not None for r in rows):
                expect(is_sorted([float(r[1]) for r in rows], turn), f'sorted by {head}, {word}: {[r[1] for r in rows]}')
            elif column == 0:
                equal([r[0] for r in rows], before[::-1] if turn else before, 'regions by their number')
            moved += [r[0] for r in rows] != before
    expect(moved >= len(heads), 'sorting moves next to nothing')
    page.click('#region-table thead th:nth-child(1) button')


# ---- folding ----

def check_folding(page, report):
    last = report.regions[:FOLDABLE][-1]
    at = f'document.getElementById("region-{last}")'
    page.click(f'#region-table a[href="#region-{last}"]')
    expect(page.until(f'{at}.open'), 'the link to a region does not open it')
    expect(page.until(f'(() => {{ const b = {at}.getBoundingClientRect(); return b.top >= 0 && b.top < innerHeight; }})()'),
           'the link to a region does not go there')
    expect(page.js(f'{at}.querySelector("table tbody tr") !== null'), 'an open region shows no table')
    page.click(f'#region-{last} > summary')
    expect(page.until(f'!{at}.open'), 'the heading of an open region does not close it')
    page.click(f'#region-table a[href="#region-{last}"]')
    expect(page.until(f'{at}.open'), 'the same link does not open it again')
    drawn = page.js('document.querySelector("a.g-group").getAttribute("href")')
    page.click('a.g-group rect')
    expect(page.until(f'document.querySelector({json.dumps(drawn)}).closest("details").open'), 'a box of the graph does not open')


# ---- searching ----

def check_search(page, report, word):
    fits = [(name, region) for name, region in report.nodes if word.lower() in name.lower()]
    expect(0 < len(fits) < len(report.nodes), f'{word!r} is no test')
    shown = {region for _, region in fits if region is not None}
    page.js('document.activeElement.blur()')
    page.key('/')
    equal(page.js('document.activeElement.id'), 'query', 'after "/" the focus is on')
    page.type(word)
    expect(page.until('document.body.classList.contains("searching")'), 'typing does nothing')
    names = page.js('Array.from(document.querySelectorAll(".node.hit"), e => e.dataset.name)')
    expect(names and set(names) <= {n for n, _ in fits}, f'marks {sorted(set(names) - {n for n, _ in fits})[:3]} for {word!r}')
    drawn = page.js('Array.from(document.querySelectorAll(".node[data-name]"), e => e.dataset.name)')
    expect(set(names) == {name for name, _ in fits} & set(drawn), f'does not mark all nodes for {word!r}')
    rows = page.js('Array.from(document.querySelectorAll("#region-table tbody tr"), r => [r.dataset.region, r.hidden])')
    equal([r for r, hidden in rows if not hidden], [r for r, _ in rows if r in shown], f'rows that stay for {word!r}')
    page.key('Enter')
    expect(page.until('document.querySelectorAll(".here").length === 1'), 'Enter goes nowhere')
    expect(page.js('(() => { const b = document.querySelector(".here").getBoundingClientRect(); '
                   'return b.bottom > 0 && b.top < innerHeight && b.height > 0; })()'), 'Enter does not show what it found')
    page.key('Escape')
    expect(page.until('!document.body.classList.contains("searching")'), 'Escape does not end the search')
    equal(page.js('document.querySelectorAll(".hit, .here, .find[hidden]").length'), 0, 'left after Escape')
    equal(page.js('document.getElementById("query").value'), '', 'the box after Escape')


# ---- keyboard, no script ----

def check_keyboard(browser, name, report):
    page = devtools.Page(browser, f'{FOLDER}/{name}.html')
    path, want = [], f'#region-{report.regions[0]}'
    while len(path) < 60 and (not path or path[-1] != want):
        page.key('Tab')
        path.append(page.js('(e => e.getAttribute("href") || e.id || e.tagName)(document.activeElement)'))
    equal(path[0], '#content', 'the first Tab goes to')
    sections = [h for h in path if h in ['#' + s for s in PAGES[name]]]
    equal(sections, ['#' + s for s in PAGES[name]], 'Tab goes through the navigation')
    expect(path[-1] == want, f'{len(path)} Tabs do not reach {want}: {path}')
    expect(page.js('getComputedStyle(document.activeElement).outlineStyle') != 'none', 'the focus is not to be seen')
    page.key('Enter')
    expect(page.until(f'document.querySelector({json.dumps(want)}).open'), 'Enter on the link of a region does not open it')
    check_quiet(page)
    page.close()


def check_plain(browser, name, report):
    page = devtools.Page(browser, f'{FOLDER}/{name}.html', script=False)
    equal(page.js('getComputedStyle(document.getElementById("search")).display'), 'none', 'without script the search box is')
    equal(page.js('document.querySelectorAll("th button").length'), 0, 'buttons that do nothing')
    equal(page.js('document.querySelectorAll("#region-table tbody tr").length'), len(report.regions), 'rows without script')
    text = page.js('document.body.textContent')
    missing = [n for n, region in report.nodes if region is not None and n.replace('\u202e', 3 * '\ufffd') not in text]
    equal(missing[:3], [], 'names that are missing without script')
    page.click(f'#region-{report.regions[0]} > summary')
    expect(page.until(f'document.getElementById("region-{report.regions[0]}").open'), 'folding needs the script')
    page.screenshot(f'{SHOTS}/{name}-plain.png')
    check_quiet(page)
    page.close()


# ---- the pages ----

def check_largest(page, path, report):
    size = os.path.getsize(path)
    expect(size < LARGEST, f'{size} bytes')
    expect(len(report.nodes) >= 4000, f'only {len(report.nodes)} nodes')
    print(f'{len(report.nodes)} nodes, {len(report.regions)} regions: {size / 1e6:.2f} MB, loaded in {page.load_time:.2f} s, '
          f'{len(page.long_tasks)} tasks above 50 ms, the longest {max(page.long_tasks, default=0):.0f} ms')


def run(browser):
    global page_now
    for name in PAGES:
        page_now = name
        if not os.path.exists(f'{FOLDER}/{name}.html'):
            continue  # bench, in a build without the engine
        report = Report(f'{FOLDER}/{name}.xml')
        page = check_page(browser, name)
        check_sections(page, name, report)
        if name == 'transformer':
            check_largest(page, f'{FOLDER}/{name}.html', report)
        if name == 'resnet50':
            check_sorting(page)
        if report.regions:
            check_folding(page, report)
            check_search(page, report, {'resnet50': 'conv_2', 'unet': '<IMG'}.get(name, report.nodes[0][0]))
        check_quiet(page)
        page.close()
        if name == 'resnet50':
            check_keyboard(browser, name, report)
        if name in ('resnet50', 'unet'):
            check_plain(browser, name, report)
    page_now = 'compare'
    check_page(browser, 'compare').close()


def main():
    program = devtools.find()
    if not program:
        print('FAIL: no Chromium: `scripts/setup.sh check` installs it; BROWSER=no leaves this test out')
        return 1
    try:
        browser = devtools.Browser(program)
        try:
            run(browser)
        finally:
            browser.close()
    except (devtools.Silent, OSError, RuntimeError) as e:
        expect(False, f'{program}: {e}')
    return failures != 0


sys.exit(main())
