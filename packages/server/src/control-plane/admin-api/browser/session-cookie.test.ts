import { describe, expect, it } from "vitest";
import { findSessionCookie, renderNoSession, renderSessionCookie } from "./session-cookie.ts";

const nowMs = 1_000_000;
const day = 86_400_000;

describe("the session cookie", () => {
  it("is out of reach of scripts and of other sites, and ends after twelve hours or with its token", () => {
    expect(renderSessionCookie("sluice_a", { secure: false, expiresMs: nowMs + day, nowMs })).toBe(
      "sluice-session=sluice_a; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict",
    );
    expect(renderSessionCookie("sluice_a", { secure: true, expiresMs: nowMs + 90_500, nowMs })).toBe(
      "__Host-sluice-session=sluice_a; Path=/; Max-Age=90; HttpOnly; SameSite=Strict; Secure",
    );
    expect(renderSessionCookie("t", { secure: false, expiresMs: undefined, nowMs })).toContain("Max-Age=43200");
    expect(renderNoSession(false)).toContain("sluice-session=; Path=/; Max-Age=0;");
  });

  it("cannot be used to add attributes or another cookie", () => {
    const cookie = renderSessionCookie("a; Domain=evil\r\nset-cookie: b", {
      secure: false,
      expiresMs: undefined,
      nowMs,
    });
    expect(cookie).not.toMatch(/Domain=|[\r\n]/);
    const [pair = ""] = cookie.split(";");
    expect(findSessionCookie({ cookie: pair }, {})).toBe("a; Domain=evil\r\nset-cookie: b");
  });

  it("is found among others", () => {
    expect(findSessionCookie({ cookie: "a=1; sluice-session=tok; b=2" }, {})).toBe("tok");
    for (const cookie of [
      undefined,
      "",
      "sluice-session",
      "sluice-session=",
      "xsluice-session=tok",
      "a=sluice-session=t",
    ])
      expect(findSessionCookie({ cookie }, {})).toBeUndefined();
  });

  it("over TLS is only the one that no other host can set", () => {
    const both = "sluice-session=planted; __Host-sluice-session=own";
    expect(findSessionCookie({ cookie: both }, { encrypted: true })).toBe("own");
    expect(findSessionCookie({ cookie: "sluice-session=planted" }, { encrypted: true })).toBeUndefined();
    // Behind a proxy that speaks TLS.
    expect(findSessionCookie({ cookie: both }, { encrypted: false })).toBe("own");
  });
});
