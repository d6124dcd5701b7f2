import { describe, expect, it } from "vitest";
import { type BrowserRequest, createBrowserGuard } from "./browser-guard.ts";

const socket = { remoteAddress: "10.0.0.9", localAddress: "10.0.0.7" };
const guard = createBrowserGuard({ host: "sluice.internal", hosts: ["sluice.example"] });

function request(headers: Readonly<Record<string, string>>, rest: Partial<BrowserRequest> = {}): BrowserRequest {
  return { method: "GET", headers: { host: "127.0.0.1:8090", ...headers }, socket, ...rest };
}

describe("names in Host", () => {
  it.each([
    ...[
      "localhost:8090",
      "127.0.0.1:8090",
      "127.8.9.1",
      "[::1]:8090",
      "LOCALHOST",
      "sluice.localhost:1",
      "localhost.:80",
    ],
    ...["10.0.0.7:8090", "10.0.0.7", "sluice.example", "Sluice.Example:443", "sluice.internal:8090"],
  ])("admit %s", (host) => {
    expect(() => guard.admitHost(request({ host }))).not.toThrow();
  });

  it.each([
    ...[
      "rebound.example:8090",
      "localhost.evil.example",
      "127.0.0.1.evil.example",
      "10.0.0.8:8090",
      "evil.example@127.0.0.1",
    ],
    ...["127.0.0.1/evil", "", "[::2]:8090", "sluice.example.evil.example", "xlocalhost"],
  ])("refuse %s", (host) => {
    expect(() => guard.admitHost(request({ host }))).toThrow(/--console-hosts/);
  });

  it("know the address that an IPv6 socket reports for IPv4", () => {
    const mapped = { ...socket, localAddress: "::ffff:10.0.0.7" };
    expect(() => guard.admitHost(request({ host: "10.0.0.7:8090" }, { socket: mapped }))).not.toThrow();
  });
});

describe("a request with a cookie", () => {
  const change = { method: "POST" } as const;
  const marked = { "x-sluice-console": "1" };
  const origin = "http://127.0.0.1:8090";

  it("may read, from our page, from the address bar and from something that is no browser", () => {
    for (const headers of [{}, { "sec-fetch-site": "same-origin" }, { "sec-fetch-site": "none" }, { origin }])
      expect(() => guard.admitCookie(request(headers))).not.toThrow();
  });

  it("may change something only from our page, with its header", () => {
    expect(() => guard.admitCookie(request({ ...marked, origin }, change))).not.toThrow();
    expect(() => guard.admitCookie(request({ ...marked, "sec-fetch-site": "same-origin" }, change))).not.toThrow();
    expect(() => guard.admitCookie(request({ origin, "sec-fetch-site": "same-origin" }, change))).toThrow(
      /x-sluice-console/,
    );
    expect(() => guard.admitCookie(request(marked, change))).toThrow(/Origin or Sec-Fetch-Site/);
  });

  it.each([
    { origin: "http://127.0.0.1:3000" },
    { origin: "http://localhost:8090" },
    { origin: "http://evil.example" },
    { origin: "null" },
    { origin: "https://127.0.0.1:8091", "sec-fetch-site": "same-origin" },
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "same-site" },
  ])("is refused from a page of another origin: %o", (headers) => {
    for (const method of ["GET", "PUT"])
      expect(() => guard.admitCookie(request({ ...marked, ...headers }, { method }))).toThrow(/another/);
  });

  it("over TLS must come from a page that came over TLS", () => {
    const secure = { method: "PUT", socket: { ...socket, encrypted: true } };
    expect(() => guard.admitCookie(request({ ...marked, origin }, secure))).toThrow(/another origin/);
    const https = "https://127.0.0.1:8090";
    expect(() => guard.admitCookie(request({ ...marked, origin: https }, secure))).not.toThrow();
  });
});
