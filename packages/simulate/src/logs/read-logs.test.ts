import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync, zstdCompressSync } from "node:zlib";
import fc from "fast-check";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { SimulatedRequest } from "../replay/simulated-request.ts";
import { maxLineBytes } from "./line-splitter.ts";
import { fileSource, type LogSource, streamSource } from "./open-log.ts";
import { type ReadLogs, type ReadLogsOptions, readLogs } from "./read-logs.ts";

let folder: string;

beforeAll(() => {
  folder = mkdtempSync(path.join(tmpdir(), "sluice-logs-"));
});

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** A combined line at a second of a minute, for a path. */
const line = (second: number, where: string): string =>
  `203.0.113.7 - - [31/Jan/2026:12:${String(Math.floor(second / 60)).padStart(2, "0")}:${String(second % 60).padStart(2, "0")} +0000] "GET ${where} HTTP/1.1" 200 17\n`;

/** A line of JSON at a millisecond. */
const timed = (ms: number, where: string): string => `${JSON.stringify({ ts: 1_769_860_800_000 + ms, path: where })}\n`;

function textSource(text: string, chunkBytes = 1_000): LogSource {
  const bytes = Buffer.from(text);
  return streamSource(
    "text",
    (async function* () {
      for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
    })(),
  );
}

async function read(
  sources: readonly LogSource[],
  options: ReadLogsOptions = {},
): Promise<{ readonly paths: readonly string[]; readonly totals: ReadLogs }> {
  const requests: SimulatedRequest[] = [];
  const totals = await readLogs(sources, (request) => requests.push(request), options);
  return { paths: requests.map(({ dimensions }) => dimensions.endpoint ?? ""), totals };
}

async function file(name: string, bytes: Buffer | string): Promise<LogSource> {
  writeFileSync(path.join(folder, name), bytes);
  return fileSource(path.join(folder, name));
}

describe("logs", () => {
  it.each([1, 7, 64, 1_000_000])("are read whatever chunks they come in: %d bytes", async (chunkBytes) => {
    const text = `${line(0, "/a")}\n${line(1, "/b").replace("\n", "\r\n")}${line(2, "/ü").trimEnd()}`;
    const { paths, totals } = await read([textSource(text, chunkBytes)]);
    expect(paths).toEqual(["/a", "/b", "/ü"]);
    expect(totals).toMatchObject({ lines: 3, unreadable: 0, late: 0, formats: ["combined"] });
  });

  it("are decompressed by their first bytes, from gzip and zstd, in several parts too", async () => {
    const [first, second] = [line(0, "/a"), line(1, "/b")];
    const gz = await file("x.log", Buffer.concat([gzipSync(first), gzipSync(second)]));
    const zst = await file("y.log", Buffer.concat([zstdCompressSync(first), zstdCompressSync(second)]));
    expect((await read([gz])).paths).toEqual(["/a", "/b"]);
    expect((await read([zst])).paths).toEqual(["/a", "/b"]);
    const cut = await file("cut.zst", zstdCompressSync(first).subarray(0, -9));
    await expect(read([cut])).rejects.toThrow(/cut\.zst cannot be read: unexpected end of file/);
    const broken = Buffer.from(zstdCompressSync(first.repeat(100)));
    broken.fill(0xff, 20, 60);
    await expect(read([await file("broken.zst", broken)])).rejects.toThrow(/broken\.zst cannot be read/);
  });

  it("of many frames of zstd are read whole, wherever chunks end", async () => {
    const frames = Array.from({ length: 40 }, (_, i) => zstdCompressSync(line(i, `/${i}`)));
    const expected = Array.from({ length: 40 }, (_, i) => `/${i}`);
    for (const chunkBytes of [1, 13, frames[0]!.length, 100_000]) {
      const bytes = Buffer.concat(frames);
      const chunks = async function* () {
        for (let at = 0; at < bytes.length; at += chunkBytes) yield bytes.subarray(at, at + chunkBytes);
      };
      expect((await read([streamSource("frames", chunks())])).paths).toEqual(expected);
    }
  });

  it("that end early in their compressed bytes are an error that names the file", async () => {
    const whole = gzipSync(Array.from({ length: 500 }, (_, i) => line(i % 60, `/${i * 7919}`)).join(""));
    await expect(read([await file("cut.gz", whole.subarray(0, whole.length - 20))])).rejects.toThrow(
      /cut\.gz cannot be read: unexpected end of file/,
    );
    await expect(fileSource(folder)).rejects.toThrow("is a folder");
  });

  it("of several files are merged by time", async () => {
    const one = await file("one.log", [0, 2, 4, 6].map((second) => line(second, `/${second}`)).join(""));
    const other = await file(
      "other.log.gz",
      gzipSync([1, 3, 5, 70].map((second) => line(second, `/${second}`)).join("")),
    );
    const { paths, totals } = await read([other, one]);
    expect(paths).toEqual(["/0", "/1", "/2", "/3", "/4", "/5", "/6", "/70"]);
    expect(totals.formats).toEqual(["combined", "combined"]);
  });

  it("are put in order within a window, and what is later is counted and left out", async () => {
    const times = [0, 20_000, 12_000, 11_500, 30_000, 60_000, 19_000, 61_000];
    const text = times.map((ms) => timed(ms, `/${ms}`)).join("");
    const { paths, totals } = await read([textSource(text, 30)], { windowSeconds: 10 });
    expect(paths).toEqual(["/0", "/11500", "/12000", "/20000", "/30000", "/60000", "/61000"]);
    expect(totals.late).toBe(1);
  });

  it("wait in bounded memory: the oldest second goes early if there are too many", async () => {
    const text = Array.from({ length: 100 }, (_, i) => timed(i * 100, `/${i}`)).join("");
    const { paths } = await read([textSource(text, 100)], { windowSeconds: 1_000, maxWaiting: 20 });
    expect(paths).toEqual(Array.from({ length: 100 }, (_, i) => `/${i}`));
  });

  it("count lines that cannot be read, and show the first ones", async () => {
    const text = `${line(0, "/a")}nonsense\n${"x".repeat(maxLineBytes + 1)}\n${line(1, "/b")}`;
    const { paths, totals } = await read([textSource(text, 100_000)]);
    expect(paths).toEqual(["/a", "/b"]);
    expect(totals).toMatchObject({
      lines: 3,
      unreadable: 2,
      examples: [
        { file: "text", line: 2, text: "nonsense" },
        { file: "text", text: "(longer than 1 MiB)" },
      ],
    });
  });

  it("carry what all of them carry", async () => {
    const carried: string[] = [];
    const onCarried = (names: readonly string[]): unknown => carried.push(...names);
    await read([textSource(line(0, "/a")), textSource("")], { onCarried });
    expect(carried).toEqual(["ip", "endpoint", "method"]);
  });

  it("that are too many are refused", async () => {
    await expect(read(Array.from({ length: 257 }, () => textSource("")))).rejects.toThrow("name at most 256");
  });

  it("arrive complete and in order, however they are split", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(fc.nat(3), fc.nat(9_000)), { maxLength: 80 }),
        fc.integer({ min: 1, max: 500 }),
        async (entries, chunkBytes) => {
          const logs = [0, 1, 2, 3].map((which) => entries.filter(([log]) => log === which));
          const sources = logs.map((log) => textSource(log.map(([, ms]) => timed(ms, `/${ms}`)).join(""), chunkBytes));
          const { paths } = await read(sources, { windowSeconds: 10 });
          expect(paths.map((where) => Number(where.slice(1)))).toEqual(
            entries.map(([, ms]) => ms).sort((one, other) => one - other),
          );
        },
      ),
      { numRuns: 50 },
    );
  });
});
