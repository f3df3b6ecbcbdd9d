// Runs Perfetto's trace processor, as its web page does: node trace_processor.js DIRECTORY <requests >replies.
//
// DIRECTORY holds engine_bundle.js and the .wasm beside it. Requests and replies are TraceProcessorRpcStream messages.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const directory = process.argv[2];
const read = (name) => new Uint8Array(fs.readFileSync(path.join(directory, path.basename(String(name)))));

// The engine fetches only its .wasm file.
class XMLHttpRequest {
	open(_method, name) {
		this.name = name;
	}
	send() {
		this.response = read(this.name).buffer;
	}
}

const port = { postMessage: (data) => fs.writeSync(1, data) };
const quiet = () => undefined;
// The globals of a worker in a browser. Node's `process` is hidden: the engine would detect Node by it.
const worker = {
	self: { location: { href: "http://localhost/engine_bundle.js" } },
	WorkerGlobalScope: quiet,
	console: { log: quiet, warn: quiet, error: console.error },
	XMLHttpRequest,
	fetch: async (name) => new Response(read(name), { headers: { "Content-Type": "application/wasm" } }),
	process: undefined,
};
new Function(...Object.keys(worker), fs.readFileSync(path.join(directory, "engine_bundle.js"), "utf8"))(
	...Object.values(worker),
);
worker.self.onmessage({ data: port });
// The requests that wait for the engine are already in the queue.
setTimeout(() => port.onmessage({ data: new Uint8Array(fs.readFileSync(0)) }), 0);
