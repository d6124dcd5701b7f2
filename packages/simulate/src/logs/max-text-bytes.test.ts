import { gzipSync } from "node:zlib";
import { expect, it } from "vitest";
import { streamSource } from "./open-log.ts";
import { readLogs } from "./read-logs.ts";

const line = '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET / HTTP/1.1" 200 17 "-" "-"\n';

async function* compressed(): AsyncIterable<Buffer> {
  yield gzipSync(line.repeat(10_000));
}

it("stops reading a log that is larger than it may be when it is decompressed", async () => {
  const read = (maxTextBytes: number) => readLogs([streamSource("log", compressed())], () => {}, { maxTextBytes });
  await expect(read(500_000)).rejects.toThrow("log cannot be read: it has more than 500000 bytes");
  expect(await read(10_000 * line.length)).toMatchObject({ lines: 10_000 });
});
