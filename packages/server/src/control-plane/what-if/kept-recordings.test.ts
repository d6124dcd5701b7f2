import { mkdir, mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createLimiter, type Limiter, MemoryCounters } from "sluice";
import { createLimiterWatch } from "sluice/internal";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { policySetBody } from "../../data-plane/transports/http/policy-body.ts";
import { Recorder } from "../../observe/recording/recorder.ts";
import { silentLog } from "../../testing/test-service.ts";
import { KeptRecordings } from "./kept-recordings.ts";

let folder: string;
let limiter: Limiter;
let recorder: Recorder;
let kept: KeptRecordings;
let logged: [string, unknown][];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-kept-"));
  logged = [];
  const watch = createLimiterWatch();
  limiter = createLimiter({ policies: { policies: [], default: "none" }, counters: new MemoryCounters() });
  recorder = new Recorder({
    ...{ limiter, watch, store: limiter.counters, renderPolicies: policySetBody, log: silentLog },
    ...{ version: "0", node: "node", worker: undefined, workers: undefined, ipv6PrefixBits: 64 },
  });
  kept = keep(1024 ** 2);
});

afterEach(async () => {
  await recorder.close();
  await rm(folder, { recursive: true, force: true });
});

function keep(maxFolderBytes: number): KeptRecordings {
  return new KeptRecordings({
    ...{ recorder, folder, maxFolderBytes, keptMs: 3_600_000, node: "node", generation: () => 1, nowMs: Date.now },
    log: { ...silentLog, info: log, warn: log, error: log },
  });
}

function log(event: string, fields?: unknown): void {
  logged.push([event, fields]);
}

async function record(): Promise<string> {
  const { id } = await kept.start(kept.plan({}, "ann"));
  await kept.stop(id);
  return id;
}

const ids = async (): Promise<readonly string[]> => (await kept.list()).map(({ id }) => id);

describe("recordings that a server keeps", () => {
  it("keeps the others when a start is refused, and when one is started that could fill the folder", async () => {
    const old = await record();
    const { id } = await kept.start(kept.plan({ maxBytes: 1024 ** 3 }, "ann"));
    await expect(kept.start(kept.plan({}, "bob"))).rejects.toMatchObject({ code: "already_exists" });
    expect(await ids()).toEqual([id, old]);
  });

  it("keeps all when a recording runs that was started with the server", async () => {
    const old = await record();
    const other = join(folder, "requests");
    await recorder.start({ path: other, forMs: 60_000, maxBytes: 1e6, share: 1, shareBy: undefined, hashed: [] });
    await expect(kept.start(kept.plan({}, "ann"))).rejects.toMatchObject({ code: "already_exists" });
    expect(await ids()).toEqual([old]);
  });

  it("deletes the oldest that no longer fit by their actual sizes, and logs each", async () => {
    const first = await record();
    const { bytes } = await kept.find(first);
    const second = await record();
    kept = keep(bytes + 10);
    expect(await ids()).toEqual([second]);
    expect(logged).toContainEqual(["recording.deleted", { id: first, bytes: expect.any(Number), reason: "size" }]);
  });

  it("are counted for metrics, while they run and after", async () => {
    const request = { dimensions: { tenant: "acme" } };
    const decision = await limiter.check(request);
    const { id } = await kept.start(kept.plan({}, "ann"));
    recorder.active?.count(request, decision);
    recorder.active?.count(request, { ...decision, preview: true });
    expect(recorder.figures).toMatchObject({ active: true, leftOut: 1 });
    await kept.stop(id);
    const figures = { active: false, requests: 1, leftOut: 1, dropped: 0, failed: 0 };
    expect(recorder.figures).toEqual(figures);
    await record();
    expect(recorder.figures).toEqual(figures);
  });

  it("records nothing if the recording cannot be described", async () => {
    const view = kept.plan({}, "ann");
    // A folder in the place of the description.
    await mkdir(join(folder, `${view.id}.json.new`));
    await expect(kept.start(view)).rejects.toThrow("EISDIR");
    expect(recorder.active).toBeUndefined();
    expect((await readdir(folder)).filter((name) => name.endsWith(".rec"))).toEqual([]);
  });

  it("stops a recording whose description is gone, and logs that its end could not be described", async () => {
    const { id } = await kept.start(kept.plan({}, "ann"));
    await rm(join(folder, `${id}.json`));
    await mkdir(join(folder, `${id}.json.new`));
    expect(await kept.find(id)).toMatchObject({ id, state: "recording" });
    await expect(kept.stop(id)).rejects.toMatchObject({ code: "resource_not_found" });
    expect(recorder.active).toBeUndefined();
    expect(logged.map(([event]) => event)).toContain("recording.undescribed");
  });

  it("deletes recordings without a description, which no list shows, and nothing else", async () => {
    await writeFile(join(folder, "0123456789abc.rec"), "left");
    await writeFile(join(folder, "notes.txt"), "mine");
    const id = await record();
    await kept.list();
    expect((await readdir(folder)).sort()).toEqual([`${id}.json`, `${id}.rec`, "notes.txt"].sort());
  });
});
