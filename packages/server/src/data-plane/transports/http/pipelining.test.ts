import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { createLimiter } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import { HeldBytes } from "../held-bytes.ts";
import { Turns } from "../turns.ts";
import type { HttpServerOptions } from "./server.ts";
import { type StartedHttp, startHttp } from "./testing/start-http.ts";

let server: StartedHttp;
const sockets: Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await server.close();
});

async function start(options: HttpServerOptions = {}): Promise<void> {
  const policies = { policies: [{ id: "p", limits: [{ by: ["user"], windows: ["1M/s"] }] }] };
  server = await startHttp(createLimiter({ policies }), {}, options);
}

function open(): Socket {
  const socket = connect({ port: server.port, host: "127.0.0.1", allowHalfOpen: true }).on("error", () => {});
  sockets.push(socket);
  return socket;
}

/** All that is answered until the connection is gone. */
function listen(socket: Socket): Promise<string> {
  let text = "";
  socket.setEncoding("latin1").on("data", (chunk) => {
    text += chunk;
  });
  return new Promise((resolve) => socket.on("close", () => resolve(text)).on("end", () => socket.end()));
}

const get = (path: string): string => `GET ${path} HTTP/1.1\r\nhost: a\r\n\r\n`;
const post = (body: string): string =>
  `POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;

/** Which of the requests below an answer is for. */
function classify(answer: string): string {
  if (answer.includes('"allowed":true')) return "check";
  if (answer.includes("sluice_build_info")) return "metrics";
  return answer.includes("nothing at this path") ? "nothing" : "other";
}

describe("requests that are sent ahead", () => {
  const one = post('{"dimensions":{"user":"u"}}') + get("/metrics") + get("/nothing");
  const kinds = ["check", "metrics", "nothing"];

  it("are answered in order, each once, even if the client stops writing after them", async () => {
    await start();
    const socket = open();
    const heard = listen(socket);
    socket.end(one.repeat(50));
    const answers = (await heard).split(/(?=HTTP\/1\.1 \d)/);
    expect(answers.map(classify)).toEqual(Array.from({ length: 50 }, () => kinds).flat());
  });

  it("are answered wherever they are cut", async () => {
    await start();
    const socket = open().setNoDelay(true);
    const heard = listen(socket);
    const text = one.repeat(4);
    for (let at = 0; at < text.length; at += 97) {
      socket.write(text.slice(at, at + 97));
      await new Promise((resolve) => setImmediate(resolve));
    }
    socket.end();
    const answers = (await heard).split(/(?=HTTP\/1\.1 \d)/);
    expect(answers.map(classify)).toEqual(Array.from({ length: 4 }, () => kinds).flat());
  });

  it("are answered before an invalid request behind them, which ends the connection", async () => {
    await start();
    const socket = open();
    const heard = listen(socket);
    socket.write(`${get("/metrics").repeat(3)}no request\r\n\r\n${get("/metrics")}`);
    const statuses = [...(await heard).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(["200", "200", "200", "400"]);
  });

  it("come to nothing behind one for a tunnel or for another protocol, which we do not have", async () => {
    await start();
    const socket = open();
    const heard = listen(socket);
    socket.write(`CONNECT a:1 HTTP/1.1\r\nhost: a\r\n\r\n${get("/livez").repeat(500)}`);
    expect(await heard).toBe("");
    const upgrade = "GET /livez HTTP/1.1\r\nhost: a\r\nconnection: upgrade\r\nupgrade: h2c\r\n\r\n";
    const upgrading = open();
    const answered = listen(upgrading);
    upgrading.write(upgrade + get("/livez").repeat(50));
    const statuses = [...(await answered).matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => status);
    expect(statuses).toEqual(["200", "400"]);
    // One alone is an ordinary request, as is the next.
    const patient = open().setEncoding("latin1");
    for (const request of [upgrade, get("/livez")]) {
      patient.write(request);
      expect((await once(patient, "data"))[0]).toContain("200 OK");
    }
  });

  it("wait for their turn, and others do not wait for them", async () => {
    // As if the time of a turn were always spent.
    const turns = new Turns();
    turns.mayGoOn = () => false;
    await start({ turns });
    const ahead = open();
    let answers = 0;
    let last = 0;
    ahead.setEncoding("latin1").on("data", (text: string) => {
      answers += text.match(/HTTP\/1\.1 200/g)?.length ?? 0;
    });
    ahead.write(get("/livez").repeat(2_000));
    await expect.poll(() => answers).toBeGreaterThan(0);
    const other = open();
    for (let times = 0; times < 5; times++) {
      const answered = once(other, "data");
      other.write(get("/livez"));
      await answered;
      expect(answers).toBeLessThan(2_000);
      expect(answers).toBeGreaterThanOrEqual(last);
      last = answers;
    }
    await expect.poll(() => answers, { timeout: 30_000 }).toBe(2_000);
  });

  it("are not parsed while answers wait to be read", async () => {
    await start();
    const socket = open().pause();
    socket.write(get("/openapi.json").repeat(50_000));
    const answered = async (): Promise<number> => {
      const page = await (await fetch(`${server.url}/metrics`)).text();
      return Number(/sluice_http_requests_total\{[^}]*openapi[^}]*\} (\d+)/.exec(page)?.[1] ?? 0);
    };
    // The buffers of both ends fill up, then nothing moves.
    let [before, now] = [-1, 0];
    while (now === 0 || now !== before) {
      before = now;
      await new Promise((resolve) => setTimeout(resolve, 300));
      now = await answered();
    }
    expect(now).toBeLessThan(5_000);
    const { status } = await fetch(`${server.url}/livez`);
    expect(status).toBe(200);
  });
});

describe("what all connections hold", () => {
  it("is bounded: of those that send half a body, the oldest are closed, and others are served", async () => {
    const held = new HeldBytes(1024 * 1024);
    await start({ held });
    const head =
      "POST /v1/check HTTP/1.1\r\nhost: a\r\ncontent-type: application/json\r\ncontent-length: 200000\r\n\r\n";
    const closed: number[] = [];
    for (let i = 0; i < 30; i++) {
      const before = held.total + closed.length;
      const socket = open();
      socket
        .on("close", () => closed.push(i))
        .on("end", () => socket.destroy())
        .resume()
        .write(head + "x".repeat(100_000));
      // One after the other, so that it is known which is the oldest.
      await expect.poll(() => held.total + closed.length, { timeout: 30_000, interval: 1 }).not.toBe(before);
    }
    await expect.poll(() => closed.length, { timeout: 30_000 }).toBeGreaterThan(15);
    expect(held.total).toBeLessThanOrEqual(1024 * 1024);
    expect(closed).not.toContain(29);
    const response = await fetch(`${server.url}/v1/check`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: '{"dimensions":{"user":"u"}}',
    });
    expect(response.status).toBe(200);
    for (const socket of sockets) socket.destroy();
    await expect.poll(() => held.total).toBe(0);
  });

  it("is nothing once requests are whole and answers are read", async () => {
    const held = new HeldBytes();
    await start({ held });
    const socket = open();
    const heard = listen(socket);
    socket.write(post(`{"dimensions":{"user":"${"u".repeat(3_000)}"}}`));
    socket.end(get("/openapi.json").repeat(20));
    expect((await heard).match(/HTTP\/1\.1 200/g)).toHaveLength(21);
    await expect.poll(() => held.total).toBe(0);
  });
});
