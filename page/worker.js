/* One run of the program (onnx-tile.js, built by emscripten) in a folder of files in memory. */
"use strict";
importScripts("onnx-tile.js");

const text = bytes => new TextDecoder().decode(new Uint8Array(bytes));

async function run(files, args) {
    const out = [], err = [];
    const into = list => byte => { if (byte !== null) list.push(byte & 255); };
    const program = await onnxTile({ stdin: () => null, stdout: into(out), stderr: into(err) });
    const FS = program.FS;
    FS.mkdir("/work");
    FS.chdir("/work");
    const given = new Set();
    for (const file of files) {
        FS.writeFile(file.name, new Uint8Array(await file.arrayBuffer()), { canOwn: true });
        given.add(FS.lookupPath(file.name).node);
    }
    const status = program.callMain(args);
    const results = FS.readdir(".").filter(name => FS.isFile(FS.stat(name).mode) && !given.has(FS.lookupPath(name).node))
        .map(name => ({ name, bytes: FS.readFile(name) }));
    return { status, out: text(out), err: text(err), files: results };
}

onmessage = e => {
    run(e.data.files, e.data.args).then(
        answer => postMessage(answer, answer.files.map(f => f.bytes.buffer)),
        error => postMessage({ failed: "the program ended: " + (error.message || error) }));
};
