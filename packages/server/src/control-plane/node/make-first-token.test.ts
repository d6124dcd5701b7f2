import { mkdtemp, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { tokenDigest } from "@sluice/protocol/tokens";
import { openPolicyStore, type PolicyStore } from "@sluice/sql";
import { afterEach, beforeEach, expect, it } from "vitest";
import { parseSettings } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { makeFirstToken } from "./make-first-token.ts";

const secret = "kHq7Zb1x0mYv4cJt9dQw2eRf5gUs8aNp";
let folder: string;
let file: string;
let settings: Settings;
let store: PolicyStore;
let logged: LoggedLine[];
const log = createRecordingLog((line) => logged.push(line));

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-first-token-"));
  file = join(folder, "secret");
  const reading = parseSettings({}, { store: "sqlite::memory:", adminTokenFrom: file });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  settings = reading.settings;
  store = await openPolicyStore({ url: "sqlite::memory:" });
  logged = [];
});

afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

it("takes the token of the file once, with whatever line break, and shows it nowhere", async () => {
  await writeFile(file, `${secret}\r\n`);
  expect(await Promise.all([1, 2, 3].map(() => makeFirstToken(store, settings, log)))).toEqual([
    ...[undefined, undefined, undefined],
  ]);
  const tokens = await store.read((view) => view.tokens());
  expect(tokens).toEqual([expect.objectContaining({ name: "admin", role: "admin", sha256: tokenDigest(secret) })]);
  expect(logged).toEqual([
    expect.objectContaining({ event: "store.first_token_taken", fields: { name: "admin", file } }),
  ]);
  expect(JSON.stringify(logged)).not.toContain(secret);
  expect(await readdir(folder)).toEqual(["secret"]);
});

it("does not read the file of a store that has an admin", async () => {
  await writeFile(file, secret);
  await makeFirstToken(store, settings, log);
  await rm(file);
  expect(await makeFirstToken(store, settings, log)).toBeUndefined();
  await writeFile(file, "another-token-that-nobody-approved-of");
  await makeFirstToken(store, settings, log);
  expect(await store.read((view) => view.tokens())).toHaveLength(1);
});

it("never brings back a token that was revoked, and takes a new one", async () => {
  await writeFile(file, secret);
  await makeFirstToken(store, settings, log);
  const [first] = await store.read((view) => view.tokens());
  await store.change((change) => change.putToken({ ...first!, revokedMs: Date.now() }));
  await makeFirstToken(store, settings, log);
  expect(logged.at(-1)).toMatchObject({ event: "store.first_token_refused", fields: { file } });
  expect(await store.read((view) => view.tokens())).toHaveLength(1);
  await writeFile(file, `${secret}-2`);
  await makeFirstToken(store, settings, log);
  const tokens = await store.read((view) => view.tokens());
  expect(tokens.filter(({ revokedMs }) => revokedMs === undefined)).toEqual([
    expect.objectContaining({ sha256: tokenDigest(`${secret}-2`) }),
  ]);
});

it.each([
  ["short", "tooshort"],
  ["two lines", `${secret}\n${secret}`],
  ["nothing", "\n"],
  ["longer than any transport takes", "x".repeat(513)],
  ["letters that no header carries", "ä".repeat(40)],
])("refuses %s without repeating it", async (_what, content) => {
  await writeFile(file, content);
  const error = await makeFirstToken(store, settings, log).catch((caught: Error) => caught);
  expect(String(error)).toContain("SLUICE_ADMIN_TOKEN_FROM (--admin-token-from)");
  expect(String(error)).toContain("32 to 512");
  if (content.trim() !== "") expect(String(error)).not.toContain(content);
});

it("fails if the file is missing, and if there is also a file to write to", async () => {
  await expect(makeFirstToken(store, settings, log)).rejects.toThrow("does not exist");
  const reading = parseSettings({}, { store: "sqlite::memory:", adminTokenFrom: file, adminTokenFile: file });
  expect(reading).toMatchObject({ kind: "problems", problems: [{ path: ["--admin-token-from"] }] });
});
