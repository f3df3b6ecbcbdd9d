// A server of node: reads a file by its threads for each line that it answers.
const fs = require("fs");
const net = require("net");

net.createServer((connection) => {
  connection.on("error", () => connection.destroy());
  connection.on("data", (line) => fs.stat(__filename, () => connection.write(line)));
}).listen(Number(process.argv[2]), "127.0.0.1");
