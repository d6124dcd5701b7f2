import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { parseSettings } from "./parse-settings.ts";
import { findPasswordFile } from "./password-files.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "sluice-passwords-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

function readFrom(file: string): Promise<string> {
  const reading = parseSettings({ SLUICE_STORE_URL: "postgres://u@h/d", SLUICE_STORE_PASSWORD_FILE: file });
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return findPasswordFile("storePasswordFile", reading.settings)!.read();
}

describe("the password in a file", () => {
  it.each([
    ["a line end", " pass wörd\n"],
    ["a line end of Windows", " pass wörd\r\n"],
    ["a byte order mark", "\uFEFF pass wörd"],
  ])("does not include %s", async (_what, text) => {
    const file = join(folder, "password");
    writeFileSync(file, text);
    expect(await readFrom(file)).toBe(" pass wörd");
  });

  it("is never waited for, nor read from a folder or a huge file", async () => {
    const [pipe, inner, huge, empty] = ["pipe", "folder", "huge", "empty"].map((name) => join(folder, name));
    execFileSync("mkfifo", [pipe!]);
    mkdirSync(inner!);
    writeFileSync(huge!, Buffer.alloc(5 * 1024 * 1024));
    writeFileSync(empty!, "\uFEFF\n");
    await expect(readFrom(pipe!)).rejects.toThrow("is not a file");
    await expect(readFrom(inner!)).rejects.toThrow("is a folder");
    await expect(readFrom(huge!)).rejects.toThrow("bytes long");
    await expect(readFrom(empty!)).rejects.toThrow("is empty");
  });
});
