import { makeToken } from "@sluice/protocol/tokens";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { maxTextLength, redactText } from "./redact-text.ts";

describe("a text that is logged", () => {
  it("has no token of ours in it, wherever that stands", () => {
    for (let i = 0; i < 50; i++) {
      const token = makeToken();
      expect(redactText(`who sent ${token}?`)).toBe("who sent [redacted]?");
      expect(redactText(`/x/${token}`)).toBe("/x/[redacted]");
      expect(redactText(`x${token}`)).toBe("x[redacted]");
    }
  });

  it("keeps names that only begin alike", () => {
    for (const text of ["sluice_checks_total", "sluice_admin", "http://127.0.0.1:8080/v1/check", "tokens left: 3"])
      expect(redactText(text)).toBe(text);
    expect(redactText("ERR AUTH <password> called without any password configured")).toContain("called without");
  });

  const secret = "hunter2hunter2";

  it.each([
    `AUTH ${secret}`,
    `AUTH default ${secret}`,
    `HELLO 3 AUTH default ${secret} SETNAME x`,
    `CONFIG SET REQUIREPASS ${secret}`,
    `ERR unknown command 'AUHT', with args beginning with: '${secret}'`,
    `host=db password=${secret} user=x`,
    `redis_password="${secret}"`,
    `https://h/x?api_key=${secret}&y=1`,
    `{"password":"${secret}"}`,
    `{"client_secret" : "\\"${secret}"}`,
    JSON.stringify({ body: JSON.stringify({ token: secret }) }),
    `Cookie: sid=${secret}; other=1`,
    `Authorization: ${secret}`,
    `redis://u:${secret}@h`,
    `a,redis://u:x@h,rediss://:${secret}@h/0`,
    `redis://u:a://${secret}@h`,
    `redis://u:p/${secret}?@h`,
    `-----BEGIN PRIVATE KEY-----\n${secret}`,
  ])("hides the secret of %s", (text) => {
    expect(redactText(text)).not.toContain(secret);
    expect(redactText(`before ${text}`)).toMatch(/^before /);
  });

  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
  /** No three letters of it stand in any other text here. */
  const cutSecret = [...letters].map((letter, i) => letter + letters[(i * 7 + 3) % letters.length]).join("");

  it.each<[string, (secret: string) => string]>([
    ["a password in an address", (value) => `redis://user:${value}@host`],
    ["one with signs in it", (value) => `redis://user:!,;(${value}@host`],
    ["a bearer token", (value) => `Bearer ${value}`],
    ["a password by its name", (value) => `password=${value}`],
    ["one in quotes", (value) => `password="${value}"`],
    ["a field in JSON", (value) => `{"secret":"${value}"}`],
    ["a command", (value) => `AUTH user ${value}`],
    ["a private key", (value) => `-----BEGIN PRIVATE KEY-----\n${value}\n-----END PRIVATE KEY-----`],
    ["a token of ours", () => `sluice_${cutSecret.slice(0, 43)}`],
  ])("shows nothing of %s that the cut goes through", (_what, write) => {
    const written = write(cutSecret);
    for (let at = 0; at <= written.length; at++) {
      const shown = redactText(`${"x ".repeat(500).slice(at)}${written} and more`, 1_000);
      expect(shown.length).toBeLessThan(1_050);
      for (let i = 0; i + 4 <= cutSecret.length; i += 2) expect(shown).not.toContain(cutSecret.slice(i, i + 4));
    }
  });

  /** What made earlier patterns take the square of its length, or would make others. */
  const adversarial = [
    ..."a-_ :@/\\\"='",
    ...["a://", "a://b:", "://", "://@", "a@", "-----BEGIN ", "-----END ", "-----BEGIN PRIVATE KEY-----"],
    ...[
      "bearer ",
      "bearer:",
      "basic",
      '"token":[',
      "token=",
      'token":"\\\\',
      "xpassword",
      'secret="',
      "sluice_",
      "AUTH ",
    ],
    ...["cookie:", "with args beginning with:", "redis://u:p"],
  ];

  it("is read once, however long it is and whatever it is made of", () => {
    // Were any of these quadratic, 5 MB of it would take hours.
    for (const part of adversarial) {
      const text = `redis://u:${part.repeat(Math.ceil(5_000_000 / part.length))}`;
      expect(redactText(text).length).toBeLessThan(maxTextLength + 50);
    }
    // Even if nothing is cut.
    for (const part of adversarial) redactText(`a://:${part.repeat(200_000 / part.length)}!`, Number.POSITIVE_INFINITY);
  }, 60_000);

  it("never becomes much longer than it may be", () => {
    const parts = fc.array(fc.oneof(fc.constantFrom(...adversarial, "@", "h", " x ", ","), fc.string()), {
      maxLength: 30,
    });
    fc.assert(
      fc.property(parts, fc.integer({ min: 1, max: 200 }), (written, most) => {
        const text = written.join("");
        expect(redactText(text, most).length).toBeLessThanOrEqual(Math.max(most, 4 * Math.min(text.length, most)) + 50);
      }),
    );
  });
});
