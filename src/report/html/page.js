/* Script of the report: sorting, searching, and opening what a link points into. The page is complete without it. It may hold
   neither a less-than sign nor an ampersand (the page is XML as well), and makes elements only of what is written here. */
"use strict";
(() => {
    const all = (selector, from) => Array.from((from || document).querySelectorAll(selector));

/* ---- sorting ---- */

    const keyOf = (row, column) => {
        const cell = row.cells[column];
        const numbers = all("data", cell);
        if (numbers.length > 0) return Number(numbers[numbers.length - 1].getAttribute("value"));
        const text = cell.textContent.trim();
        return text === "-" ? "" : text;
    };
    /* Numbers by size, texts with their numbers by size; what is absent comes last either way. */
    const compare = (a, b, sign) => {
        if (a === b) return 0;
        if (a === "") return 1;
        if (b === "") return -1;
        if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
        return sign * (typeof a === "number" ? a - b : a.localeCompare(b, "en", { numeric: true }));
    };
    const sort = (table, head, column) => {
        const sign = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
        for (const other of all("thead th", table)) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
        const body = table.tBodies[0];
        const rows = Array.from(body.rows, row => ({ row, key: keyOf(row, column) }));
        rows.sort((a, b) => compare(a.key, b.key, sign));
        body.append(...rows.map(entry => entry.row));
    };
    for (const table of all("table.sortable")) {
        all("thead th", table).forEach((head, column) => {
            const button = document.createElement("button");
            button.type = "button";
            button.title = "Sort by this column";
            button.append(...head.childNodes);
            button.addEventListener("click", () => sort(table, head, column));
            head.append(button);
            head.setAttribute("aria-sort", "none");
        });
    }

/* ---- opening ---- */

    const reveal = element => {
        for (let box = element.closest("details"); box; box = box.parentElement.closest("details")) box.open = true;
    };
    const follow = () => {
        const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
        if (!target) return;
        reveal(target);
        target.scrollIntoView();
    };
    addEventListener("hashchange", follow);
    follow();
    /* A link to the place where one already is changes no address. */
    document.addEventListener("click", event => {
        const link = event.target.closest("a[href^='#']");
        if (!link) return;
        const target = document.getElementById(link.getAttribute("href").slice(1));
        if (target) reveal(target);
    });

    let closed = [];
    addEventListener("beforeprint", () => {
        closed = all("details:not([open])");
        if (closed.length > 60) closed = [];
        for (const box of closed) box.open = true;
    });
    addEventListener("afterprint", () => {
        for (const box of closed) box.open = false;
        closed = [];
    });

/* ---- searching ---- */

    const form = document.getElementById("search");
    if (!form) return;
    const query = document.getElementById("query");
    const found = document.getElementById("found");
    const lower = text => text.toLowerCase();
    const names = all(".node[data-name], .n").map(element => ({
        element,
        name: lower(element.hasAttribute("data-name") ? element.getAttribute("data-name") : element.textContent),
        region: element.getAttribute("data-region"),
        isNode: element.classList.contains("node"),
    }));
    const foldable = all(".find");
    const hasGraph = names.some(entry => entry.isNode);
    let hits = [];
    let place = -1;

    const search = () => {
        const text = lower(query.value.trim());
        const regions = new Set();
        const distinct = new Set();
        hits = [];
        place = -1;
        for (const entry of names) {
            const fits = text === "" ? false : entry.name.includes(text);
            entry.element.classList.toggle("hit", fits);
            entry.element.classList.remove("here");
            if (!fits) continue;
            hits.push(entry.element);
            if (hasGraph ? entry.isNode : true) distinct.add(hasGraph ? entry.element : entry.name);
            if (entry.region !== null) regions.add(entry.region);
        }
        document.body.classList.toggle("searching", text !== "");
        for (const box of foldable) {
            const inRegion = box.hasAttribute("data-region") ? regions.has(box.getAttribute("data-region")) : false;
            const keep = text === "" ? true : inRegion || box.classList.contains("cut") || box.querySelector(".hit") !== null;
            box.hidden = !keep;
            box.classList.toggle("hit", text === "" ? false : inRegion);
        }
        const n = distinct.size || hits.length;
        found.textContent = text === "" ? "" : n === 0 ? "no node" : n === 1 ? "1 node" : n + " nodes";
    };
    const step = by => {
        if (hits.length === 0) return;
        if (place >= 0) hits[place].classList.remove("here");
        place = (place + by + hits.length) % hits.length;
        const hit = hits[place];
        hit.classList.add("here");
        reveal(hit);
        hit.scrollIntoView({ block: "center", inline: "center" });
        found.textContent = (place + 1) + " of " + hits.length;
    };
    const clear = () => {
        query.value = "";
        search();
    };

    form.hidden = false;
    let timer = 0;
    query.addEventListener("input", () => {
        clearTimeout(timer);
        timer = setTimeout(search, 60);
    });
    form.addEventListener("submit", event => {
        event.preventDefault();
        step(1);
    });
    query.addEventListener("keydown", event => {
        if (event.key !== "Enter") return;
        event.preventDefault();
        clearTimeout(timer);
        if (place === -1) search();
        step(event.shiftKey ? place === -1 ? 0 : -1 : 1);
    });
    document.addEventListener("keydown", event => {
        const typing = event.target.closest("input, textarea, select");
        if (event.key === "Escape") {
            clear();
            if (typing) query.blur();
        } else if (event.key === "/") {
            if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
            event.preventDefault();
            query.focus();
            query.select();
        }
    });
})();
