import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createCertificates } from "@sluice/test-servers";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { parseSettings } from "../../settings/parse-settings.ts";
import type { Settings } from "../../settings/settings.ts";
import { readCells, withTlsFiles } from "./read-redis-files.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "sluice-redis-files-"));
});

afterEach(() => rm(folder, { recursive: true, force: true }));

function readSettings(env: Record<string, string>): Settings {
  const reading = parseSettings(env);
  if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
  return reading.settings;
}

async function readTestCells(text: string, env: Record<string, string> = {}): ReturnType<typeof readCells> {
  const file = join(folder, "cells");
  await writeFile(file, text);
  return readCells(readSettings({ SLUICE_REDIS_CELLS: file, ...env }));
}

describe("cells", () => {
  it("are read from YAML and from JSON, with our credentials if the address has none", async () => {
    const yaml = `
cells:
  - name: acme
    redis: redis://10.0.0.5:6380
    values: { tenant: [acme, acme-eu] }
  - { name: large, redis: "redis://x:y@10.0.0.6", tiers: enterprise }
`;
    const env = { REDIS_CLUSTER_USERNAME: "u", REDIS_CLUSTER_PASSWORD: "p" };
    const cells = await readTestCells(yaml, env);
    expect(cells).toMatchObject([
      { name: "acme", values: { tenant: ["acme", "acme-eu"] }, servers: { username: "u", password: "p" } },
      { name: "large", tiers: ["enterprise"], servers: { username: "x", password: "y" } },
    ]);
    const json = { cells: [{ name: "acme", redis: "redis://10.0.0.5:6380", values: { tenant: ["acme", "acme-eu"] } }] };
    expect(await readTestCells(JSON.stringify(json), env)).toEqual(cells.slice(0, 1));
  });

  it("are none if no file is named", async () => {
    expect(await readCells(readSettings({}))).toEqual([]);
  });

  it.each([
    ["cells: [{ name: a, redis: redis://u:secret@ }]", "cells[0].redis: is not an address"],
    ["cells: [{ name: a, redis: redis://a }]", "cells[0]: has neither values nor tiers"],
    ["cells: [{ name: a, url: redis://a, tiers: x }]", "cells[0].url: is not a known key"],
    [
      "cells: [{ name: a, redis: redis://a, tiers: x }, { name: a, redis: redis://b, tiers: y }]",
      "cells[1].name: is a",
    ],
    ["cells: [", "neither YAML nor JSON"],
  ])("that make no sense are refused under the name of the setting: %s", async (text, message) => {
    const failure = readTestCells(text);
    await expect(failure).rejects.toThrow(/^SLUICE_REDIS_CELLS \(--redis-cells\): /);
    await expect(failure).rejects.toThrow(message);
    await expect(failure).rejects.not.toThrow(/secret/);
  });
});

describe("files for TLS", () => {
  const servers = { kind: "standalone", addresses: [{ kind: "tcp", host: "a", port: 1 }], tls: {} } as const;

  it("are read, and refused if they are not in PEM", async () => {
    const certificates = await createCertificates();
    try {
      const good = {
        SLUICE_REDIS_CA: certificates.ca,
        SLUICE_REDIS_CERT: certificates.clientCert,
        SLUICE_REDIS_KEY: certificates.clientKey,
        SLUICE_REDIS_SERVER_NAME: "redis.example",
      };
      const { tls } = await withTlsFiles(servers, readSettings(good));
      expect(tls).toMatchObject({ serverName: "redis.example", ca: expect.stringContaining("BEGIN CERTIFICATE") });
      const noPem = join(folder, "no.pem");
      await writeFile(noPem, "hello");
      await expect(withTlsFiles(servers, readSettings({ ...good, SLUICE_REDIS_KEY: noPem }))).rejects.toThrow(
        /^SLUICE_REDIS_CERT \(--redis-cert\), SLUICE_REDIS_KEY \(--redis-key\): .*PEM/,
      );
      await expect(withTlsFiles(servers, readSettings({ ...good, SLUICE_REDIS_CA: folder }))).rejects.toThrow(
        /^SLUICE_REDIS_CA .*is a folder/,
      );
    } finally {
      await certificates.close();
    }
  });

  it("mean nothing to a socket on this machine", async () => {
    const socket = { kind: "standalone", addresses: [{ kind: "unix", path: "/run/a" }] } as const;
    expect(await withTlsFiles(socket, readSettings({ SLUICE_REDIS_CA: "/nowhere" }))).toBe(socket);
  });
});
