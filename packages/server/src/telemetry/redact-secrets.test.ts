import { describe, expect, it } from "vitest";
import { makeToken } from "../access/make-token.ts";
import { redactSecrets } from "./redact-secrets.ts";

describe("a log line", () => {
  it("has no token of ours in it, wherever that stands", () => {
    for (let i = 0; i < 50; i++) {
      const token = makeToken();
      const line = JSON.stringify({ reason: `who sent ${token}?`, list: [token], path: `/x/${token}` });
      expect(JSON.parse(redactSecrets(line))).toEqual({
        reason: "who sent [redacted]?",
        list: ["[redacted]"],
        path: "/x/[redacted]",
      });
    }
  });

  it("keeps names that only begin alike", () => {
    const line = '{"metric":"sluice_checks_total","file":"sluice_admin"}';
    expect(redactSecrets(line)).toBe(line);
  });
});
