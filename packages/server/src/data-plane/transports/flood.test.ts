import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../../../cli/src/main.ts", import.meta.url));
const attackers = 40;
const livez = "GET /livez HTTP/1.1\r\nhost: a\r\n\r\n";

/** A separate process, so that its CPU time can be measured. */
let server: ChildProcess;
let ports: { readonly http: number; readonly resp: number };
let sockets: Socket[];

beforeEach(async () => {
  sockets = [];
  const ask = ["--port", "0", "--grpc-port", "off", "--resp-port", "0", "--log-format", "json"];
  server = spawn(process.execPath, ["-C", "source", main, "serve", ...ask], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { PATH: process.env.PATH },
  });
  let out = "";
  server.stdout!.setEncoding("utf8").on("data", (text: string) => {
    out += text;
  });
  await expect.poll(() => out, { timeout: 30_000 }).toMatch(/http:.*redis:/);
  ports = { http: Number(/http:[^"]*:(\d+)/.exec(out)![1]), resp: Number(/redis:[^"]*:(\d+)/.exec(out)![1]) };
}, 60_000);

afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.kill("SIGKILL");
  await once(server, "exit");
});

function open(port: number): Socket {
  const socket = connect(port, "127.0.0.1").on("error", () => {});
  sockets.push(socket);
  return socket;
}

/** Sends the same request over and over, and reads no answer. */
function attack(port: number, request: string): void {
  for (let i = 0; i < attackers; i++)
    open(port)
      .pause()
      .write(request.repeat(Math.ceil((256 * 1024) / request.length)));
}

/** Asks something else, one question after the other, and gives up on a server that does not answer. */
async function askOften(port: number, question: string, answer: string): Promise<void> {
  for (let times = 0; times < 10; times++) {
    const socket = open(port).setEncoding("latin1");
    const heard = new Promise((resolve) => {
      socket.once("data", resolve);
      setTimeout(resolve, 15_000, "nothing").unref();
    });
    socket.write(question);
    expect(await heard).toContain(answer);
    socket.destroy();
  }
}

/** Of Linux alone; other systems count as taking nothing. */
function residentMb(): number {
  try {
    return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${server.pid}/status`, "utf8"))![1]) / 1024;
  } catch {
    return 0;
  }
}

describe("while clients send requests ahead and read no answer, others are answered and memory stays bounded", () => {
  it.each([
    ["GET /metrics HTTP/1.1\r\nhost: a\r\n\r\n"],
    ["GET / HTTP/1.1\r\n\r\n"],
    ["GET /v1/hot-keys HTTP/1.1\r\nexpect: 100-continue\r\nhost: a\r\n\r\n"],
  ])("%j", { timeout: 60_000 }, async (request) => {
    const before = residentMb();
    attack(ports.http, request);
    await askOften(ports.http, livez, "200 OK");
    await askOften(ports.resp, "PING\r\n", "+PONG");
    expect(residentMb() - before).toBeLessThan(250);
  });

  it("of Redis clients", { timeout: 60_000 }, async () => {
    const before = residentMb();
    attack(ports.resp, "COMMAND\r\n");
    await askOften(ports.http, livez, "200 OK");
    await askOften(ports.resp, "PING\r\n", "+PONG");
    expect(residentMb() - before).toBeLessThan(250);
  });
});
