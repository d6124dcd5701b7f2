import { createServer } from "node:http";
import { Duplex } from "node:stream";
import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { HttpResponse } from "./exchange.ts";
import { renderAnswer } from "./render-answer.ts";
import { ResponseWriter } from "./response-writer.ts";

/** The bytes that Node writes for an answer, or its error. */
async function writeByNode(response: HttpResponse, close: boolean): Promise<string> {
  let written = "";
  const server = createServer({ keepAliveTimeout: 72_000 }, (_request, raw) => {
    try {
      new ResponseWriter(raw).write(response, close);
    } catch (error) {
      written = (error as Error).message;
    }
  });
  server.maxRequestsPerSocket = 1_000_000;
  const socket = new Duplex({
    read() {},
    write: (chunk: Buffer, _encoding, done) => {
      written += chunk.toString("latin1");
      done();
    },
  });
  server.emit("connection", socket);
  socket.push("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await new Promise((resolve) => setImmediate(resolve));
  socket.destroy();
  return written;
}

function writeByUs(response: HttpResponse, close: boolean): string {
  try {
    const text = renderAnswer(response, close ? undefined : "timeout=72, max=1000000", Date.now());
    return Buffer.from(text, "utf8").toString("latin1");
  } catch (error) {
    return (error as Error).message;
  }
}

const withoutDate = (text: string): string => text.replace(/Date: [^\r]+/, "Date:");

const responses: fc.Arbitrary<HttpResponse> = fc
  .record({
    status: fc.constantFrom(200, 400, 401, 403, 413, 415, 422, 429, 500, 503),
    headers: fc.option(
      fc.dictionary(
        fc.constantFrom("X-RateLimit-Limit", "RateLimit", "Retry-After", "content-type", "www-authenticate"),
        fc.oneof(
          fc.constantFrom(
            "1",
            '"orders/user";r=1;t=1',
            "application/problem+json",
            "",
            "é",
            "ÿ\t",
            "a\r\nb: c",
            "☃",
            "\0",
          ),
          fc.string({ maxLength: 20, unit: "binary" }),
        ),
        { noNullPrototype: true },
      ),
      { nil: undefined },
    ),
    body: fc.oneof(
      fc.constantFrom('{"allowed":true}', "", "é☃", { a: "é" }, { detail: "no" }),
      fc.string({ maxLength: 50, unit: "grapheme" }),
    ),
  })
  .map(({ status, headers, body }) => (headers === undefined ? { status, body } : { status, headers, body }));

describe("an answer that is written without Node's response", () => {
  it("has the bytes that Node would write, and the same header values are refused", async () => {
    await fc.assert(
      fc.asyncProperty(responses, fc.boolean(), async (response, close) => {
        // Node writes headers in Latin-1 if nothing follows them, and otherwise in UTF-8. Ours are ASCII.
        fc.pre(
          response.body !== "" || Object.values(response.headers ?? {}).every((value) => !/[\x80-\xff]/.test(value)),
        );
        expect(withoutDate(writeByUs(response, close))).toBe(withoutDate(await writeByNode(response, close)));
      }),
      { numRuns: 2_000 },
    );
  });

  it("may have no body if it is a 204", async () => {
    const response = { status: 204, headers: { RateLimit: "r=1" }, body: undefined };
    for (const close of [false, true])
      expect(withoutDate(writeByUs(response, close))).toBe(withoutDate(await writeByNode(response, close)));
  });

  it("has the date of its second", () => {
    const at = (nowMs: number): string =>
      /Date: ([^\r]+)/.exec(renderAnswer({ status: 200, body: "" }, "", nowMs))![1]!;
    expect(at(1_790_000_000_999)).toBe("Mon, 21 Sep 2026 14:13:20 GMT");
    expect(at(1_790_000_001_000)).toBe("Mon, 21 Sep 2026 14:13:21 GMT");
    expect(at(1_790_000_000_000)).toBe("Mon, 21 Sep 2026 14:13:20 GMT");
  });
});
