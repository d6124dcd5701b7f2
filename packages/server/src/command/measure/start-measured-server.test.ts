import { readdirSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { startMeasuredServer } from "./start-measured-server.ts";

/** The command lines of this machine's processes; every user may read them. */
function listCommandLines(): readonly string[] {
  return readdirSync("/proc").flatMap((name) => {
    if (!/^\d+$/.test(name)) return [];
    try {
      return [readFileSync(`/proc/${name}/cmdline`, "utf8")];
    } catch {
      return [];
    }
  });
}

it.runIf(process.platform === "linux")(
  "shows the password of the store to no other user of the machine",
  async () => {
    const ports = { SLUICE_HTTP_PORT: "0", SLUICE_GRPC_PORT: "0", SLUICE_RESP_PORT: "0" };
    const password = `secret-${process.hrtime.bigint()}`;
    const url = `redis://:${password}@127.0.0.1:1`;
    const server = await startMeasuredServer({ ...ports, SLUICE_REDIS_URL: url }, "policies: []");
    try {
      const lines = listCommandLines();
      expect(lines.filter((line) => line.includes("measured-server"))).not.toEqual([]);
      expect(lines.filter((line) => line.includes(password))).toEqual([]);
    } finally {
      server.stop();
    }
  },
  30_000,
);
