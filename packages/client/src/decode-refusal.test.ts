import { renderPath } from "sluice/internal";
import { describe, expect, it } from "vitest";
import { parsePath, replyFromError } from "./decode-refusal.ts";

describe("the path of a field", () => {
  it.each([
    [["dimensions", "ip"]],
    [["policies", 3]],
    [["dimensions", "a b"]],
    [["dimensions", 'a"]b']],
    [[]],
    [["cost"]],
  ])("is read back as it was written: %j", (path) => {
    expect(parsePath(renderPath(path))).toEqual(path);
  });

  it.each(["", "(more)", "a..b", "dimensions.", "[", "a[b]"])("is one step if it is not a path: %j", (field) => {
    expect(parsePath(field)).toEqual([field]);
  });
});

describe("an error of a server", () => {
  const told = { message: "told", problems: [{ field: "dimensions.ip", message: "is none" }] };

  it("that is the caller's is a SluiceError with its fields", () => {
    expect(replyFromError({ ...told, code: "invalid_request" })).toMatchObject({
      kind: "refused",
      error: {
        code: "invalid_request",
        message: "told",
        problems: [{ path: ["dimensions", "ip"], message: "is none" }],
      },
    });
  });

  it.each([
    ["overloaded", "elsewhere", "storage_overloaded"],
    ["not_ready", "elsewhere", "storage_unavailable"],
    ["internal", "failed", "storage_unavailable"],
    ["store_unavailable", "failed", "storage_unavailable"],
    ["of_a_later_version", "failed", "storage_unavailable"],
  ])("that is not, %s, is %s", (code, kind, reason) => {
    expect(replyFromError({ ...told, code })).toEqual({ kind, reason });
  });
});
