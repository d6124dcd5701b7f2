import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { parseSettings } from "@sluice/server";
import { afterAll, expect, it } from "vitest";
import { repositoryRoot } from "../repository/source-tree.ts";

const folder = mkdtempSync(path.join(tmpdir(), "sluice-systemd-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const read = (name: string): string => readFileSync(path.join(repositoryRoot, "deploy/systemd", name), "utf8");

/** The unit, with a program that exists on this machine. */
function placeUnit(unit: string): string {
  const file = path.join(folder, "sluice.service");
  writeFileSync(file, unit.replace(/^ExecStart=\/usr\/bin\/sluice /m, "ExecStart=/bin/true "));
  return file;
}

function analyze(...args: readonly string[]): { readonly code: number | null; readonly output: string } {
  const { status, stdout, stderr } = spawnSync("systemd-analyze", args, { encoding: "utf8" });
  return { code: status, output: stdout + stderr };
}

it("is a unit that systemd understands, and that a mistake would fail", () => {
  expect(analyze("verify", "--man=no", placeUnit(read("sluice.service")))).toEqual({ code: 0, output: "" });
  const { output } = analyze("verify", "--man=no", placeUnit(`${read("sluice.service")}\n[Service]\nProtectHom=yes\n`));
  expect(output).toContain("ProtectHom");
});

it("gives the service hardly anything that it does not need", () => {
  const args = ["security", "--offline=yes", "--threshold=15"];
  expect(analyze(...args, placeUnit(read("sluice.service")))).toMatchObject({ code: 0 });
  const soft = read("sluice.service").replace(/^(SystemCallFilter|CapabilityBoundingSet|PrivateUsers)=.*\n/gm, "");
  expect(analyze(...args, placeUnit(soft)).code).not.toBe(0);
});

it("serves with settings that a server accepts", () => {
  const env = Object.fromEntries(
    read("sluice.env")
      .split("\n")
      .map((line) => /^#?([A-Z_]+)=(.*)$/.exec(line))
      .flatMap((found) => (found === null ? [] : [[found[1]!, found[2]!] as const])),
  );
  expect(Object.keys(env)).toContain("SLUICE_POLICY_SNAPSHOT");
  const [, command = ""] = /^ExecStart=\/usr\/bin\/sluice serve (.*)$/m.exec(read("sluice.service")) ?? [];
  expect(command).toBe("--notify --log-format json");
  const reading = parseSettings(env, { notify: "true", logFormat: "json" });
  expect(reading).toMatchObject({ kind: "settings", warnings: [], settings: { notify: true, drainMs: 5_000 } });
});

it("stops after everything that a server finishes has had its time", () => {
  const [, seconds] = /^TimeoutStopSec=(\d+)$/m.exec(read("sluice.service"))!;
  // --drain, requests in flight, usage events, leases and the store.
  expect(Number(seconds)).toBeGreaterThan(5 + 10 + 5 + 2 + 5);
});
