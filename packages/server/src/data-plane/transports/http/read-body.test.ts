import { EventEmitter } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { createLimiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type ReadBody, readBody } from "./read-body.ts";
import { type StartedHttp, startHttp } from "./testing/start-http.ts";

let server: StartedHttp;

beforeAll(async () => {
  server = await startHttp(createLimiter());
});

afterAll(() => server.close());

/** Sends pieces one by one, each when the one before is out, and gives back all that is answered. */
function send(...pieces: readonly string[]): Promise<string> {
  return new Promise((resolve, reject) => {
    let answer = "";
    const socket = connect(server.port, "127.0.0.1", async () => {
      socket.setNoDelay(true);
      for (const piece of pieces) {
        await new Promise((written) => socket.write(piece, written));
        await new Promise((turned) => setImmediate(turned));
      }
    });
    socket.setEncoding("utf8").on("data", (chunk) => {
      answer += chunk;
    });
    socket.on("end", () => resolve(answer)).on("error", reject);
  });
}

const head = "POST /v1/check HTTP/1.1\r\nhost: a\r\nconnection: close\r\ncontent-type: application/json\r\n";
const text = '{"dimensions":{"user":"é"}}';
const bytes = Buffer.byteLength(text);

describe("a body", () => {
  it("is read in however many pieces it comes, even if its length is not given", async () => {
    const chunk = (part: string): string => `${Buffer.byteLength(part).toString(16)}\r\n${part}\r\n`;
    for (const pieces of [
      [`${head}content-length: ${bytes}\r\n\r\n${text}`],
      [`${head}content-length: ${bytes}\r\n\r\n`, text],
      [`${head}content-length: ${bytes}\r\n\r\n`, ...text],
      [`${head}transfer-encoding: chunked\r\n\r\n`, ...[...text].map(chunk), "0\r\n\r\n"],
    ])
      expect(await send(...pieces), pieces.join("|")).toMatch(/^HTTP\/1\.1 200 [\s\S]*"allowed":true/);
  });

  it("of 64 KiB is accepted, and one byte more is not, with or without a length; the connection stays if the length was given", async () => {
    const padded = (length: number): string => text + " ".repeat(length - bytes);
    const charge = head.replace("/v1/check", "/v1/charge");
    const chunked = (length: number): Promise<string> =>
      send(`${charge}transfer-encoding: chunked\r\n\r\n${length.toString(16)}\r\n${padded(length)}\r\n0\r\n\r\n`);
    expect(await send(`${charge}content-length: 65536\r\n\r\n${padded(65_536)}`)).toMatch(/^HTTP\/1\.1 204 /);
    expect(await chunked(65_536)).toMatch(/^HTTP\/1\.1 204 /);
    const kept = charge.replace("connection: close\r\n", "");
    const next = "GET /livez HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    expect(await send(`${kept}content-length: 65537\r\n\r\n${padded(65_537)}${next}`)).toMatch(
      /^HTTP\/1\.1 413 [\s\S]*65537 bytes[\s\S]*HTTP\/1\.1 200 /,
    );
    // A reset may be faster than the answer.
    expect(await chunked(65_537).catch(() => "HTTP/1.1 413 ")).toMatch(/^HTTP\/1\.1 413 /);
  });

  it.each(["application/json", "Application/JSON; charset=utf-8", "application/json ;charset=utf-8"])(
    "is JSON by the type %s",
    async (type) => {
      const { status } = await fetch(`${server.url}/v1/check`, {
        method: "POST",
        headers: { "content-type": type },
        body: text,
      });
      expect(status).toBe(200);
    },
  );

  it.each(["application/jsonp", "application/json-seq", "text/json", "json"])("is not by the type %s", async (type) => {
    const response = await fetch(`${server.url}/v1/check`, {
      method: "POST",
      headers: { "content-type": type },
      body: text,
    });
    expect(response.status).toBe(415);
    expect(await response.json()).toMatchObject({ code: "invalid_request", detail: expect.stringContaining(type) });
  });

  it("that is missing is reported, with and without a type", async () => {
    expect(await send(`${head}content-length: 0\r\n\r\n`)).toMatch(/^HTTP\/1\.1 400 [\s\S]*the body is empty/);
    const untyped = "POST /v1/check HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    expect(await send(untyped)).toMatch(/^HTTP\/1\.1 400 [\s\S]*must be an object/);
    expect(await send(untyped.replace("\r\n\r\n", "\r\ncontent-length: 2\r\n\r\n{}"))).toMatch(
      /^HTTP\/1\.1 415 [\s\S]*has no content-type/,
    );
  });

  it("that comes byte by byte takes no more memory than its bytes, because no piece is kept", () => {
    const request = Object.assign(new EventEmitter(), {
      headers: { "content-type": "application/json", "transfer-encoding": "chunked" },
    });
    let read: ReadBody | undefined;
    // It uses only the headers and the pieces of a request.
    readBody(request as unknown as IncomingMessage, 1_000, (told) => {
      read = told;
    });
    request.emit("data", Buffer.from("0"));
    const piece = Buffer.alloc(1);
    for (let i = 1; i < 1_000; i++) {
      piece.write(String(i % 10));
      request.emit("data", piece);
    }
    request.emit("end");
    expect(read).toMatchObject({ kind: "read", body: Buffer.from("0123456789".repeat(100)) });
  });

  it("that is compressed is refused by a sentence that says so", async () => {
    for (const [encoding, status] of [
      ["gzip", 415],
      ["identity", 200],
    ] as const) {
      const headers = { "content-type": "application/json", "content-encoding": encoding };
      const response = await fetch(`${server.url}/v1/check`, { method: "POST", headers, body: text });
      expect(response.status).toBe(status);
      if (status === 415) expect(await response.json()).toMatchObject({ detail: expect.stringContaining("gzip") });
    }
  });
});
