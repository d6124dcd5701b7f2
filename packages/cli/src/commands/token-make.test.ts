import { createHash } from "node:crypto";
import { chown, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseTokens } from "@sluice/protocol/tokens";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type TokenMakeOptions, tokenMake } from "./token-make.ts";

let folder: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-token-"));
  file = join(folder, "tokens.yaml");
});

afterEach(() => rm(folder, { recursive: true, force: true }));

const nowMs = Date.parse("2026-01-01T00:00:00Z");
const nowhere = { write: () => true };
const gateway: TokenMakeOptions = { name: "gateway", role: "check" };

async function make(options: TokenMakeOptions): Promise<{ token: string; told: string }> {
  let [out, err] = ["", ""];
  const terminal = {
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (err += text) },
  };
  expect(await tokenMake(options, terminal, nowMs)).toBe(0);
  return { token: out.trim(), told: err };
}

const hashToken = (token: string): string => createHash("sha256").update(token).digest("hex");

describe("sluice token make", () => {
  it("prints a token alone to stdout, and its entry beside it", async () => {
    const { token, told } = await make({ ...gateway, expires: "90d" });
    expect(token).toMatch(/^sluice_[\w-]{43}$/);
    const tokens = parseTokens(told.slice(told.indexOf("\ntokens:")), "told");
    expect(tokens).toEqual([
      { name: "gateway", role: "check", sha256: hashToken(token), expiresMs: nowMs + 90 * 86_400_000 },
    ]);
    expect(told).not.toContain(token);
    expect((await make(gateway)).token).not.toBe(token);
  });

  it("makes a file that its owner alone can read, and adds to it", async () => {
    const first = await make({ ...gateway, file });
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const second = await make({ name: "dashboard", role: "viewer", file });
    const tokens = parseTokens(await readFile(file, "utf8"), file);
    expect(tokens).toMatchObject([
      { name: "gateway", role: "check", sha256: hashToken(first.token) },
      { name: "dashboard", role: "viewer", sha256: hashToken(second.token) },
    ]);
  });

  it("prints token and entry as JSON", async () => {
    const { token: out, told } = await make({ ...gateway, file, json: true });
    const { token, entry } = JSON.parse(out) as { token: string; entry: unknown };
    expect(entry).toEqual({ name: "gateway", role: "check", sha256: hashToken(token) });
    expect(parseTokens(await readFile(file, "utf8"), file)).toMatchObject([{ sha256: hashToken(token) }]);
    expect(told).toBe("");
  });

  it("says whose policies an editor may change", async () => {
    await make({ name: "ed", role: "editor", team: "identity", file });
    expect(parseTokens(await readFile(file, "utf8"), file)).toMatchObject([{ role: "editor", team: "identity" }]);
  });

  it("loses none of those that are made at the same time", async () => {
    const names = Array.from({ length: 8 }, (_, index) => `n${index}`);
    await Promise.all(names.map((name) => make({ name, role: "check", file })));
    const tokens = parseTokens(await readFile(file, "utf8"), file);
    expect(tokens.map(({ name }) => name).sort()).toEqual(names);
    expect(await readdir(folder)).toEqual(["tokens.yaml"]);
  });

  it("says what to do where another one left off in the middle", async () => {
    await writeFile(`${file}.next`, "");
    await expect(tokenMake({ ...gateway, file }, { stdout: nowhere, stderr: nowhere }, nowMs, 10)).rejects.toThrow(
      /tokens\.yaml cannot be written: .*tokens\.yaml\.next is there.*remove it/,
    );
    await expect(stat(file)).rejects.toThrow("ENOENT");
  });

  it("leaves a file to its owner, so that the server can go on reading it", async () => {
    // Only root can give files away, and so take them over.
    const [uid, gid] = process.getuid?.() === 0 ? [1234, 2345] : [process.getuid!(), process.getgid!()];
    await writeFile(file, "tokens: []\n");
    await chown(file, uid, gid);
    await make({ ...gateway, file });
    expect(await stat(file)).toMatchObject({ uid, gid });
  });

  it("leaves comments, mode and links as they are", async () => {
    const real = join(folder, "real.yaml");
    await writeFile(
      real,
      `# ours\ntokens:\n  # the gateway's\n  - { name: old, role: check, sha256: ${hashToken("x")} }\n`,
      {
        mode: 0o640,
      },
    );
    await symlink(real, file);
    await make({ ...gateway, file });
    const content = await readFile(real, "utf8");
    expect(content).toContain("# ours\n");
    expect(content).toContain("# the gateway's\n");
    expect(parseTokens(content, file).map(({ name }) => name)).toEqual(["old", "gateway"]);
    expect((await stat(real)).mode & 0o777).toBe(0o640);
  });

  it.each([
    "tokens: []\n",
    "",
    '{ "tokens": [] }',
    `{ tokens: [{ name: o, role: check, sha256: ${hashToken("x")} }] }`,
  ])("adds to a file that reads %s", async (content) => {
    await writeFile(file, content);
    await make({ ...gateway, file });
    expect(parseTokens(await readFile(file, "utf8"), file).at(-1)?.name).toBe("gateway");
  });

  it("keeps JSON as JSON", async () => {
    await writeFile(file, `{"tokens":[{"name":"o","role":"check","sha256":"${hashToken("x")}"}]}`);
    await make({ ...gateway, file });
    expect(JSON.parse(await readFile(file, "utf8"))).toMatchObject({ tokens: [{ name: "o" }, { name: "gateway" }] });
  });

  it("refuses a name that is taken, and a file that it cannot read, and changes neither", async () => {
    await make({ ...gateway, file });
    const before = await readFile(file, "utf8");
    await expect(make({ ...gateway, file })).rejects.toThrow(/has a token of the name gateway already/);
    expect(await readFile(file, "utf8")).toBe(before);
    await writeFile(file, "tokens: 7");
    await expect(make({ name: "other", role: "check", file })).rejects.toThrow(/cannot be used/);
    expect(await readFile(file, "utf8")).toBe("tokens: 7");
  });

  it.each([
    [{ name: "a b" }, /--name/],
    [{ role: "root" }, /--role: "root" should be one of check, viewer, editor, operator, admin/],
    [{ role: "editor" }, /--role editor needs --team/],
    [{ team: "identity" }, /--team is for editors alone/],
    [{ role: "editor", team: "a b" }, /--team: "a b"/],
    [{ expires: "soon" }, /--expires/],
    [{ expires: "2020-01-01" }, /--expires/],
    [{ expires: "0d" }, /--expires/],
    [{ expires: "999999d" }, /--expires/],
  ])("refuses %j", async (wrong, message) => {
    await expect(make({ ...gateway, ...wrong })).rejects.toThrow(message);
  });

  it.each([
    ["12h", "2026-01-01T12:00:00Z"],
    ["2027-05-06", "2027-05-06T00:00:00Z"],
    ["2027-05-06T07:08:09Z", "2027-05-06T07:08:09Z"],
  ])("takes %s for when it ends", async (expires, until) => {
    expect((await make({ ...gateway, expires })).told).toContain(`expires: ${until}`);
  });
});
