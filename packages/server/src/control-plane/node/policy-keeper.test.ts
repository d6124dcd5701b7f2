import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { digestFiles } from "../../data-plane/policy-files/policy-files.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { PolicyKeeper } from "./policy-keeper.ts";
import type { SnapshotGeneration } from "./policy-snapshot.ts";

let folder: string;
let file: string;
let lines: LoggedLine[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-keeper-"));
  file = join(folder, "snapshot.json");
  lines = [];
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const log = createRecordingLog((line) => {
  if (line.level !== "debug") lines.push(line);
});
const createKeeper = (): PolicyKeeper => new PolicyKeeper({ file, log });

const store = "postgres://db:5432/sluice";
const kept: SnapshotGeneration = {
  store,
  generation: 7,
  killSwitch: { mode: "open", sinceMs: 1, untilMs: 2, reason: "why", author: "ann" },
  rows: {
    policies: [
      { id: "p", version: 2, document: "{}", owner: "team", ruleKey: undefined, deleted: false, changedMs: 1 },
    ],
    underway: [],
    subjects: [],
    subjectLimits: [],
  },
  tokens: [],
};
/** As it is read back: undefined fields are absent. */
const asJson = JSON.parse(JSON.stringify(kept)) as SnapshotGeneration;
const text = "policies: []\n";

describe("the kept state of a policy store", () => {
  it("comes back as it was, for the same store, and is readable by its owner alone", async () => {
    await createKeeper().keepStored(kept);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await createKeeper().recallStored(store)).toEqual(asJson);
    expect(await createKeeper().recallStored("postgres://other:5432/sluice")).toBeUndefined();
    expect(lines.map(({ level, fields }) => [level, fields.reason])).toEqual([
      ["error", `holds the policies of ${store}, and not those of postgres://other:5432/sluice`],
    ]);
  });

  it("is undefined if nothing was kept, or no file is named", async () => {
    expect(await createKeeper().recallStored(store)).toBeUndefined();
    expect(await new PolicyKeeper({ file: undefined, log }).recallStored(store)).toBeUndefined();
    expect(lines).toEqual([]);
  });

  it("is kept along with the policy files, whichever of them changes", async () => {
    const path = join(folder, "policies.yaml");
    await writeFile(path, text);
    const files = [{ file: path, text }];
    const first = createKeeper();
    await first.keepStored(kept);
    await first.keep(path, { files, digest: digestFiles(files) }, 3);
    const second = createKeeper();
    expect(await second.recallStored(store)).toEqual(asJson);
    await rm(path);
    expect((await second.load(path)).refused?.problems).toHaveLength(1);
    await second.keepStored({ ...kept, generation: 8 });
    const third = createKeeper();
    expect((await third.recallStored(store))?.generation).toBe(8);
    expect((await third.load(path)).loaded.digest).toBe(digestFiles(files));
  });

  it("stays while files change before the store answers", async () => {
    await createKeeper().keepStored(kept);
    const keeper = createKeeper();
    await keeper.recallStored(store);
    const files = [{ file: "/p.yaml", text }];
    await keeper.keep("/p.yaml", { files, digest: digestFiles(files) }, 1);
    expect(await createKeeper().recallStored(store)).toEqual(asJson);
  });

  it("is refused if it was edited", async () => {
    await createKeeper().keepStored(kept);
    await writeFile(file, (await readFile(file, "utf8")).replace('"owner":"team"', '"owner":"mine"'));
    expect(await createKeeper().recallStored(store)).toBeUndefined();
    expect(lines.map(({ fields }) => fields.reason)).toEqual(["was changed since it was written"]);
  });
});
