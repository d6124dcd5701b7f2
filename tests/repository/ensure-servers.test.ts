import { describe, expect, it } from "vitest";
import { adviceFor, deriveBackports, findCodename, findLacking, programs } from "../../scripts/ensure-servers.mjs";

const fit: Readonly<Record<string, string>> = {
  "valkey-server": "Valkey server v=8.0.1 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=39f7\n",
  "redis-server": "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64 build=e08d\n",
  openssl: "OpenSSL 3.0.19 27 Jan 2026 (Library: OpenSSL 3.0.19 27 Jan 2026)\n",
  "redis-cli": "redis-cli 7.0.15\n",
  nginx: "nginx version: nginx/1.22.1\n",
  caddy: "2.6.2\n",
  curl: "curl 7.88.1 (x86_64-pc-linux-gnu) libcurl/7.88.1 OpenSSL/3.0.19\nRelease-Date: 2023-02-20\n",
  h2load: "h2load nghttp2/1.52.0\n",
  "systemd-notify": "systemd 252 (252.38-1~deb12u1)\n+PAM +AUDIT\n",
  promtool: "promtool, version 2.42.0+ds (branch: debian/sid, revision: 2.42.0+ds-5+b5)\n",
  python3: "grpcio 1.51.1\n",
  postgres: "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n",
  kcat: "kcat - Apache Kafka producer and consumer tool\nVersion 1.7.1 (JSON, Transactions, librdkafka 2.0.2)\n",
  faketime: "\n/usr/bin/faketime: Version 0.9.10\nFor usage information please use '/usr/bin/faketime --help'.\n",
  buildah: "buildah version 1.28.2 (image-spec 1.1.0-rc2, runtime-spec 1.0.2-dev)\n",
  podman: "podman version 4.3.1\n",
  runc: "runc version 1.1.5+ds1\ncommit: 1.1.5+ds1-1+deb12u1\n",
  catatonit: "tini version 0.1.7_catatonit\n",
  chromium: "Chromium 156.0.8078.73 built on Debian GNU/Linux 12 (bookworm)\n",
  wrk: "wrk debian/4.1.0-3+b2 [epoll] Copyright (C) 2012 Will Glozer\n",
  "redis-benchmark": "redis-benchmark 7.0.15\n",
};

function reasonsFor(printed: Readonly<Record<string, string | undefined>>): readonly string[] {
  return findLacking(programs, ({ name }) => printed[name]).map(({ reason }) => reason);
}

describe("the servers that tests need", () => {
  it("are complete if all are installed", () => {
    expect(reasonsFor(fit)).toEqual([]);
  });

  it("may be newer", () => {
    const newer = {
      ...fit,
      "valkey-server": "Valkey server v=10.0.0 sha=0",
      "redis-server": "Redis server v=8.2.1 sha=0",
    };
    expect(reasonsFor(newer)).toEqual([]);
  });

  it("are named if they are missing", () => {
    expect(reasonsFor({ ...fit, "valkey-server": undefined })).toEqual(["valkey-server is missing"]);
    expect(reasonsFor({})).toEqual(Object.keys(fit).map((name) => `${name} is missing`));
  });

  it("are refused if they are old", () => {
    const old = {
      ...fit,
      "valkey-server": "Valkey server v=7.2.5 sha=0",
      "redis-server": "Redis server v=6.2.14 sha=0",
    };
    expect(reasonsFor(old)).toEqual(["valkey-server is version 7.2", "redis-server is version 6.2"]);
  });

  it("are refused if another product has their name, or does not start", () => {
    expect(reasonsFor({ ...fit, "redis-server": fit["valkey-server"] })).toEqual([
      expect.stringContaining('redis-server is another product, which prints "Valkey server v=8.0.1'),
    ]);
    expect(reasonsFor({ ...fit, "redis-server": "" })).toHaveLength(1);
  });

  it("come with advice that names each missing one, and no other", () => {
    const advice = adviceFor(findLacking(programs, ({ name }) => ({ ...fit, "valkey-server": undefined })[name]));
    expect(advice).toContain("valkey-server is missing");
    expect(advice).toContain("install valkey-server 8.0 or later");
    expect(advice).not.toContain("redis-server");
  });
});

describe("the release of this machine", () => {
  it.each([
    ["plain", "ID=debian\nVERSION_CODENAME=bookworm\n"],
    ["quoted", 'VERSION_CODENAME="bookworm"\nID=debian'],
  ])("is read if it is %s", (_how, text) => {
    expect(findCodename(text)).toBe("bookworm");
  });
});

describe("the sources of backports", () => {
  function derive(file: string, text: string): { list: string; sources: string } {
    return deriveBackports([{ file, text }], "bookworm");
  }

  it("are those of a stanza, for another suite", () => {
    const text = [
      "Types: deb deb-src",
      "# a comment",
      "URIs: http://mirror.example.org/debian",
      "Suites: bookworm bookworm-updates",
      "Components: main contrib",
      "Signed-By: /usr/share/keyrings/debian.gpg",
      "",
      "Types: deb",
      "URIs: http://mirror.example.org/debian-security",
      "Suites: bookworm-security",
      "Components: main",
      "",
    ].join("\n");
    expect(derive("debian.sources", text)).toEqual({
      list: "",
      sources: [
        "Types: deb",
        "URIs: http://mirror.example.org/debian",
        "Suites: bookworm-backports",
        "Components: main contrib",
        "Signed-By: /usr/share/keyrings/debian.gpg",
        "",
      ].join("\n"),
    });
  });

  it("keep a key that is written out in the stanza, and take names in any case", () => {
    const text = [
      "types: deb",
      "uris: http://mirror.example.org/debian",
      "suites: bookworm",
      " bookworm-updates",
      "components: main",
      "signed-by:",
      " -----BEGIN PGP PUBLIC KEY BLOCK-----",
      " .",
      " bWFkZSB1cA==",
      " -----END PGP PUBLIC KEY BLOCK-----",
    ].join("\n");
    const { sources } = derive("debian.sources", text);
    expect(sources).toContain("Suites: bookworm-backports\ncomponents: main\n");
    expect(sources).toContain("signed-by:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n .\n bWFkZSB1cA==\n -----END");
    expect(sources).not.toContain("bookworm-updates");
  });

  it("are those of a line, for another suite, with its options", () => {
    const text = [
      "# deb http://old.example.org/debian bookworm main",
      "deb-src http://mirror.example.org/debian bookworm main",
      "deb [arch=amd64 signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example.org/debian bookworm main contrib # ours",
      "deb http://mirror.example.org/debian-security bookworm-security main",
    ].join("\n");
    expect(derive("/etc/apt/sources.list", text)).toEqual({
      list: "deb [arch=amd64 signed-by=/usr/share/keyrings/debian.gpg] http://mirror.example.org/debian bookworm-backports main contrib\n",
      sources: "",
    });
  });

  it("are not made of sources that are turned off, of another release, or not the distribution's own", () => {
    const stanza = "Types: deb\nURIs: http://mirror.example.org/debian\nComponents: main\n";
    expect(derive("a.sources", `${stanza}Suites: bookworm\nEnabled: no\n`).sources).toBe("");
    expect(derive("a.sources", `${stanza}Suites: trixie\n`).sources).toBe("");
    expect(derive("a.list", "deb http://packages.example.org/tool bookworm stable\n").list).toBe("");
  });

  it("are empty if the machine has them already", () => {
    const own = {
      file: "a.sources",
      text: "Types: deb\nURIs: http://a.example.org/\nSuites: bookworm\nComponents: main",
    };
    const backports = { file: "b.list", text: "deb http://b.example.org/debian bookworm-backports main" };
    expect(deriveBackports([own], "bookworm").sources).not.toBe("");
    expect(deriveBackports([own, backports], "bookworm")).toEqual({ list: "", sources: "" });
  });
});
