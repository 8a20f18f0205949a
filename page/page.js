/* The page: files and options go to a worker of their own for each run (worker.js); texts and files come back.
 *
 *   page -> worker   { files: [File...], args: [text...] }
 *   worker -> page   { status, out, err, files: [{ name, bytes }...] }: those it wrote, or { failed: text }
 */
"use strict";
(() => {
    const $ = id => document.getElementById(id);
    const REPORT = "report.html";
    const FILE_BYTES = 2 ** 31; /* what one file in memory has less than */
    let files = [], worker = null, urls = [];

    /* ---- the program ---- */

    /* Run it once; answer(message) is called at the end, unless the worker is terminated. */
    const start = (given, args, answer) => {
        let w;
        try {
            w = new Worker("worker.js");
        } catch (e) {
            answer({ failed: "this page must come from a server, as of `python3 -m http.server`: " + e.message });
            return null;
        }
        const end = message => { w.terminate(); answer(message); };
        w.onmessage = e => end(e.data);
        w.onerror = e => end({ failed: e.message || "the program cannot be loaded" });
        w.postMessage({ files: given, args });
        return w;
    };

    /* NAME  what it is: of --list-targets and --list-runtimes; not this machine, of which a page knows nothing. */
    const fill = (select, option, chosen) => start([], [option], message => {
        if (message.status !== 0) { fail(message); return; }
        const rows = message.out.trim().split("\n").map(line => line.match(/^(\S+)\s+(.*)$/)).filter(m => m && m[1] !== "host");
        select.replaceChildren(...rows.map(m => new Option(m[1] + ": " + m[2], m[1], false, m[1] === chosen)));
    });

    /* ---- files ---- */

    const sizeOf = n => n < 1e6 ? (n / 1e3).toFixed(1) + " KB" : n < 1e9 ? (n / 1e6).toFixed(1) + " MB" : (n / 1e9).toFixed(2) + " GB";
    /* The model among them: the one that is called so, or the only one. */
    const model = () => files.find(f => /\.onnx$/i.test(f.name)) || (files.length === 1 ? files[0] : null);

    const choose = list => {
        files = Array.from(list);
        const names = files.map(f => f.name + " (" + sizeOf(f.size) + ")").join(", ");
        $("chosen").textContent = model() ? names : files.length ? "No file of these ends in .onnx: " + names : "No file";
        $("chosen").classList.toggle("taken", model() !== null);
        $("run").disabled = !model() || worker !== null;
    };

    /* ---- a run ---- */

    const words = text => (text.match(/"[^"]*"|'[^']*'|\S+/g) || []).map(w => w.replace(/^(["'])(.*)\1$/, "$2"));
    const outName = () => model().name.replace(/\.onnx$/i, "") + ".tiled.onnx";

    const options = () => {
        const goal = $("goal").value;
        const args = ["--goal", goal, "--target", $("target").value, "--runtime", $("runtime").value];
        if (goal === "memory" && $("slowdown").value) args.push("--max-slowdown", $("slowdown").value);
        for (const shape of words($("shapes").value)) args.push("--shape", shape);
        return args.concat(words($("more").value));
    };

    const fail = message => {
        const line = message.failed || message.err.trim().split("\n").pop() || "exit status " + message.status;
        $("error").textContent = line;
        $("error").hidden = false;
    };

    const clear = () => {
        urls.forEach(url => URL.revokeObjectURL(url));
        urls = [];
        $("error").hidden = $("result").hidden = true;
        $("report").hidden = true;
        $("report").removeAttribute("srcdoc");
    };

    const link = file => {
        const a = document.createElement("a");
        const url = URL.createObjectURL(new Blob([file.bytes]));
        urls.push(url);
        a.href = url;
        a.download = file.name;
        a.textContent = "Save " + file.name;
        const item = document.createElement("li");
        item.append(a, " " + sizeOf(file.bytes.length));
        return item;
    };

    const show = message => {
        if (message.failed || message.status !== 0) { fail(message); return; }
        $("text").textContent = message.out + message.err;
        const place = name => name === outName() ? 0 : name === REPORT ? 2 : 1;
        message.files.sort((a, b) => place(a.name) - place(b.name));
        $("links").replaceChildren(...message.files.map(link));
        $("beside").hidden = !message.files.some(f => place(f.name) === 1);
        const report = message.files.find(f => f.name === REPORT);
        if (report) $("report").srcdoc = new TextDecoder().decode(report.bytes);
        $("report").hidden = !report;
        $("result").hidden = false;
    };

    const running = (on, text) => {
        $("run").disabled = on || !model();
        $("stop").hidden = !on;
        $("state").textContent = text;
    };

    const run = () => {
        clear();
        const large = files.find(f => f.size >= FILE_BYTES);
        if (large) {
            fail({ failed: large.name + " has " + sizeOf(large.size) + ": a file must be smaller than 2 GiB in a browser" });
            return;
        }
        const begin = Date.now();
        const seconds = () => ((Date.now() - begin) / 1000).toFixed(1) + " s";
        running(true, "running");
        const clock = setInterval(() => { $("state").textContent = "running, " + seconds(); }, 500);
        const end = text => {
            clearInterval(clock);
            worker = null;
            running(false, text);
        };
        const args = [model().name, "-o", outName(), "--report", REPORT].concat(options());
        worker = start(files, args, message => {
            end(message.status === 0 ? "done in " + seconds() : "");
            show(message);
        });
        if (!worker) return;
        const mine = worker;
        $("stop").onclick = () => { mine.terminate(); end("stopped"); };
    };

    /* ---- events ---- */

    $("files").addEventListener("change", e => choose(e.target.files));
    $("form").addEventListener("submit", e => { e.preventDefault(); if (!$("run").disabled) run(); });
    for (const kind of ["dragover", "dragleave", "drop"])
        document.addEventListener(kind, e => {
            e.preventDefault();
            $("drop").classList.toggle("over", kind === "dragover");
            if (kind === "drop" && e.dataTransfer.files.length) choose(e.dataTransfer.files);
        });
    $("goal").addEventListener("change", () => { $("slowdown").disabled = $("goal").value !== "memory"; });

    start([], ["--version"], message => { if (message.status === 0) $("version").textContent = message.out.trim(); else fail(message); });
    fill($("target"), "--list-targets", "cpu-generic");
    fill($("runtime"), "--list-runtimes", "onnxruntime");
})();
