// Runs Perfetto's trace processor, as its web page does: node trace_processor.js DIRECTORY <requests >replies.
//
// DIRECTORY holds engine_bundle.js and the .wasm beside it. Requests and replies are TraceProcessorRpcStream messages.
"use strict";
const fs = require("fs");
const path = require("path");
const vm = require("vm");

const directory = process.argv[2];
const read = (name) => new Uint8Array(fs.readFileSync(path.join(directory, path.basename(String(name)))));

// All that the engine fetches is its .wasm file.
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
// What a worker in a browser has, and Node's own `process`, which would give it away.
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
// What waits for the engine to be ready was put in line before this.
setTimeout(() => port.onmessage({ data: new Uint8Array(fs.readFileSync(0)) }), 0);
