import { describe, expect, it } from "vitest";
import { namesOfCertificate } from "./tls-client-names.ts";

const named = (text: string): string[] => namesOfCertificate(text).map(({ kind, value }) => `${kind} ${value}`);

describe("names of a certificate", () => {
  it("are read by their kind", () => {
    expect(named("DNS:A.example, URI:spiffe://acme/B, email:ops@Acme.example, IP Address:10.0.0.7")).toEqual([
      "dns a.example",
      "uri spiffe://acme/B",
      "email ops@Acme.example",
      "ip 10.0.0.7",
    ]);
    expect(named("IP Address:0:0:0:0:0:0:0:1")).toEqual(["ip ::1"]);
    expect(named("IP Address:FE80:0:0:0:0:0:0:A")).toEqual(["ip fe80::a"]);
  });

  it("of irrelevant kinds are skipped", () => {
    expect(named('othername: UPN:"a, DNS:evil", DNS:good, DirName:"CN = a\\\\, b", Registered ID:1.2.3.4')).toEqual([
      "dns good",
    ]);
    expect(named("othername:<unsupported>, DNS:good")).toEqual(["dns good"]);
  });

  it("are never made of the inside of another", () => {
    expect(named('URI:"http://x/, DNS:gateway.internal"')).toEqual(["uri http://x/, DNS:gateway.internal"]);
    expect(named('DNS:"a\\u0000.internal"')).toEqual(["dns a\u0000.internal"]);
    expect(named('DNS:"a\\", DNS:b"')).toEqual(['dns a", dns:b']);
  });

  it.each([
    'DNS:"unfinished, DNS:gateway.internal',
    'DNS:gateway.internal, DNS:"unfinished',
    "DNS:gateway.internal, nothing",
    'DNS:good, DNS:"\\x", DNS:gateway.internal',
    'DNS:a"b", DNS:gateway.internal',
    "DNS:a,DNS:gateway.internal",
    "gateway.internal",
    ", DNS:gateway.internal",
  ])("are none at all in a text that cannot be parsed to its end: %s", (text) => {
    expect(named(text)).toEqual([]);
  });

  it("are none if there are none", () => {
    expect(namesOfCertificate(undefined)).toEqual([]);
    expect(namesOfCertificate("")).toEqual([]);
  });
});
