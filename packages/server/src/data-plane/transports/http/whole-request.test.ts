import { createServer } from "node:http";
import { Duplex } from "node:stream";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { measureRequest, readWholeRequest } from "./whole-request.ts";

interface ReadRequest {
  readonly line: string;
  readonly headers: unknown;
  readonly rawHeaders: readonly string[];
  readonly body: string;
}

/** What Node makes of these bytes: every request that is complete, and whether the parser refuses them. */
async function readByNode(bytes: Buffer): Promise<{ requests: readonly ReadRequest[]; refused: boolean }> {
  const requests: ReadRequest[] = [];
  let refused = false;
  const server = createServer({ requireHostHeader: false }, (request) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.on("end", () => {
      const { method, url, httpVersion, headers, rawHeaders } = request;
      const line = `${method} ${url} HTTP/${httpVersion}`;
      requests.push({ line, headers: { ...headers }, rawHeaders, body: Buffer.concat(pieces).toString("latin1") });
    });
  });
  server.on("clientError", () => {
    refused = true;
  });
  const socket = new Duplex({ read() {}, write: (_chunk, _encoding, done) => done() });
  server.emit("connection", socket);
  socket.push(bytes);
  await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
  return { requests, refused };
}

const line = "POST /v1/check HTTP/1.1";
const table = new Map([[line, "found"]]);

const names = fc.constantFrom(
  ...["Host", "host", "content-type", "Content-Length", "content-length", "Connection", "Transfer-Encoding", "Expect"],
  ...["Upgrade", "TE", "Trailer", "Set-Cookie", "Cookie", "X-Own", "x-own", "constructor", "__proto__", "to:string"],
  ...["Keep-Alive", "Proxy-Connection", "traceparent", "a b", "", "Authorization", "x_y", "Proxy-Authorization"],
);
const values = fc.oneof(
  fc.constantFrom("a", "keep-alive", "Keep-Alive", "close", "upgrade", "chunked", "100-continue", "application/json"),
  fc.constantFrom(
    "",
    " ",
    "a ",
    " a",
    "a\tb",
    "\ta",
    "é",
    "a\u0000b",
    "a\rb",
    "a\nb",
    "\x7f",
    "0",
    "5",
    "05",
    "+5",
    "5, 5",
  ),
  fc.string({ maxLength: 12, unit: "binary-ascii" }),
);
const bodies = fc.constantFrom("", "{}", '{"a":"é"}', "hello", "GET / HTTP/1.1\r\nhost: b\r\n\r\n");
const separators = fc.constantFrom(": ", ":", ":  ", " : ", ":\t");
const lineEnds = fc.oneof(
  { weight: 20, arbitrary: fc.constant("\r\n") },
  fc.constantFrom("\n", "\r", "\r\n\r\n", "\r\n "),
);

/** Requests of which many are nearly right. */
const requests = fc
  .record({
    first: fc.oneof(
      { weight: 9, arbitrary: fc.constant(line) },
      fc.constantFrom("post /v1/check HTTP/1.1", `${line} `),
    ),
    headers: fc.array(fc.tuple(names, separators, values, lineEnds), { maxLength: 4 }),
    plain: fc.array(fc.constantFrom("X-One: 1\r\n", "Accept:*/*\r\n", "Connection: keep-alive\r\n"), { maxLength: 2 }),
    hasHost: fc.boolean(),
    hasLength: fc.boolean(),
    body: bodies,
    more: fc.oneof({ weight: 9, arbitrary: fc.constant("") }, fc.constantFrom("\r\n", "P", "{}")),
  })
  .map(({ first, headers, plain, hasHost, hasLength, body, more }) => {
    const written = headers.map((parts) => parts.join("")).join("");
    const length = hasLength ? `Content-Length: ${Buffer.byteLength(body, "latin1")}\r\n` : "";
    const head = `${first}\r\n${hasHost ? "Host: a\r\n" : ""}${plain.join("")}${written}${length}\r\n`;
    return Buffer.from(head + body + more, "latin1");
  });

describe("a request that is read without Node's parser", () => {
  it("is one that Node reads in the same way, and all of it", async () => {
    let read = 0;
    await fc.assert(
      fc.asyncProperty(requests, async (bytes) => {
        const ours = readWholeRequest(bytes, table);
        if (ours === undefined) return;
        read += 1;
        const { headers, rawHeaders, body } = ours;
        const found = { line, headers, rawHeaders, body: body.toString("latin1") };
        expect(await readByNode(bytes)).toEqual({ requests: [found], refused: false });
      }),
      { numRuns: 4_000 },
    );
    expect(read).toBeGreaterThan(100);
  });

  it("has as many bytes as Node takes for it, whatever comes behind", async () => {
    let measured = 0;
    await fc.assert(
      fc.asyncProperty(requests, async (bytes) => {
        const length = measureRequest(bytes);
        if (length === undefined || length > bytes.length) return;
        measured += 1;
        const whole = await readByNode(bytes.subarray(0, length));
        expect([whole.requests.length, whole.refused]).toEqual([1, false]);
        expect((await readByNode(bytes.subarray(0, length - 1))).requests).toHaveLength(0);
      }),
      { numRuns: 2_000 },
    );
    expect(measured).toBeGreaterThan(50);
  });

  const post = (headers: string, body = "{}"): Buffer => Buffer.from(`${line}\r\n${headers}\r\n${body}`, "latin1");

  it("is the usual one", () => {
    const bytes = post("Host: a\r\nUser-Agent: wrk 4.1\r\nX-Empty:\r\ncontent-length: 2\r\nAuthorization:Bearer t\r\n");
    expect(readWholeRequest(bytes, table)).toEqual({
      found: "found",
      headers: { host: "a", "user-agent": "wrk 4.1", "x-empty": "", "content-length": "2", authorization: "Bearer t" },
      rawHeaders: [
        ...["Host", "a", "User-Agent", "wrk 4.1", "X-Empty", "", "content-length", "2"],
        ...["Authorization", "Bearer t"],
      ],
      body: Buffer.from("{}"),
    });
    expect(measureRequest(bytes)).toBe(bytes.length);
  });

  it.each([
    ["without Host", post("content-length: 2\r\n")],
    ["of which a part is missing", post("host: a\r\ncontent-length: 3\r\n")],
    ["with something behind it", post("host: a\r\ncontent-length: 1\r\n")],
    ["with two lengths", post("host: a\r\ncontent-length: 2\r\ncontent-length: 2\r\n")],
    ["in chunks", post("host: a\r\ntransfer-encoding: chunked\r\n", "0\r\n\r\n")],
    ["that expects an answer before its body", post("host: a\r\nexpect: 100-continue\r\ncontent-length: 2\r\n")],
    ["that ends the connection", post("host: a\r\nconnection: close\r\ncontent-length: 2\r\n")],
    ["that changes the protocol", post("host: a\r\nconnection: upgrade\r\nupgrade: h2c\r\ncontent-length: 2\r\n")],
    ["with a folded header", post("host: a\r\nx: 1\r\n 2\r\ncontent-length: 2\r\n")],
    ["with many headers", post(`host: a\r\n${"x".repeat(33).replaceAll("x", "-x: 1\r\n")}content-length: 2\r\n`)],
    ["for another path", Buffer.from("POST /v1/reset HTTP/1.1\r\nhost: a\r\ncontent-length: 0\r\n\r\n")],
    ["of an older version", Buffer.from("POST /v1/check HTTP/1.0\r\nhost: a\r\ncontent-length: 0\r\n\r\n")],
  ])("is none %s", (_, bytes) => {
    expect(readWholeRequest(bytes, table)).toBeUndefined();
  });
});
