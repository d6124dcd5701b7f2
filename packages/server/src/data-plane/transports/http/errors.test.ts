import { readFile } from "node:fs/promises";
import { SluiceError } from "sluice";
import { errorCodes } from "sluice/internal";
import { describe, expect, it } from "vitest";
import { renderError } from "./errors.ts";

const page = await readFile(new URL("../../../../../../docs/errors.md", import.meta.url), "utf8");
const rows = [...page.matchAll(/^\| \[`(\w+)`\]\(#\1\) \| (\d{3}|none) \|/gm)];
const told = new Map(rows.map(([, code, status]) => [code, status]));

describe("an error as a problem body", () => {
  it.each(errorCodes)("has the status that docs/errors.md gives it: %s", (code) => {
    const { status, title, code: rendered } = renderError(new SluiceError(code, "why"));
    // Codes that occur only in process are, over HTTP, a mistake of ours.
    const expected = told.get(code) === "none" ? [500, "internal"] : [Number(told.get(code)), code];
    expect([status, rendered]).toEqual(expected);
    expect(title).not.toBe("Error");
  });
});
