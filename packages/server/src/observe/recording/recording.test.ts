import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { zstdDecompress } from "node:zlib";
import { createLimiter } from "sluice";
import { afterEach, beforeEach, expect, it } from "vitest";
import { HiddenValues } from "./hidden-values.ts";
import { Recording } from "./recording.ts";
import { RecordingFile } from "./recording-file.ts";

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "sluice-recording-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

it("drops requests beyond what may wait, by their size as well as their number, and counts them", async () => {
  const file = await RecordingFile.create(path.join(folder, "requests.rec"));
  const limiter = createLimiter();
  const recording = new Recording({
    ...{ file, limiter, maxBytes: 2 ** 30, endsMs: Infinity, maxWaitingLength: 20_000 },
    head: { node: "n", version: "1", from_ms: 0, share: 1, hashed: [], leases: false, counters: "memory" },
    hidden: new HiddenValues({ share: 1, shareBy: undefined, hashed: [] }),
    renderPolicies: () => ({}),
    findInstant: () => ({ us: 1, steadyMs: undefined, order: 0, originMs: undefined }),
    onEnd() {},
  });
  // Nothing is rendered in this turn of the event loop.
  const count = (user: string): void => {
    const request = { dimensions: { user } };
    recording.count(request, limiter.checkSync(request));
  };
  for (let i = 0; i < 10; i++) count("x".repeat(4_000));
  expect(recording.totals).toMatchObject({ requests: 0, dropped: 6 });
  count("small");
  await recording.stop("stopped");
  expect(recording.totals).toEqual({ requests: 5, dropped: 6, leftOut: 0 });
  const text = String(await promisify(zstdDecompress)(await readFile(file.path)));
  expect(text.split("\n").filter((line) => line.includes('"user"'))).toHaveLength(5);
});
