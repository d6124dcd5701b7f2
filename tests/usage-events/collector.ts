import { appendFileSync } from "node:fs";
import { createServer } from "node:http";

/*
 * A collector of CloudEvents in a process of its own. Appends every event that it accepts to a file, one a line, together with the
 * headers of its batch, before it answers.
 *
 *     node collector.ts PORT FILE
 */
const [port, file] = process.argv.slice(2);

const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on("data", (chunk: Buffer) => chunks.push(chunk));
  request.on("end", () => {
    const { authorization, "content-type": type } = request.headers;
    const events = JSON.parse(Buffer.concat(chunks).toString()) as readonly unknown[];
    const lines = events.map((event) => JSON.stringify({ authorization, type, batch: events.length, event }));
    appendFileSync(file!, `${lines.join("\n")}\n`);
    response.writeHead(204).end();
  });
});
server.listen(Number(port), "127.0.0.1", () => process.stdout.write("listening\n"));
