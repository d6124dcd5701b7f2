import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPolicyStore } from "@sluice/sql";
import { createPostgresProxy, type PostgresReply, startPostgres } from "@sluice/test-servers";
import { afterEach, expect, it, vi } from "vitest";
import { startDaemon } from "../../boot/daemon.ts";
import { parseSettings } from "../../settings/parse-settings.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import { putPolicy } from "./testing/store-changes.ts";

const patience = { timeout: 30_000, interval: 20 };
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/**
 * CockroachDB's answer to a LISTEN: a syntax error, or in a version that parses it, success with a notice that it does
 * nothing.
 */
const refusals: readonly (readonly [string, PostgresReply])[] = [
  ["by an error", { as: "error", severity: "ERROR", code: "42601", message: 'at or near "listen": syntax error' }],
  [
    "along with success",
    { as: "notice", severity: "ERROR", code: "0A000", message: "unimplemented: CRDB does not support LISTEN" },
  ],
];

it.each(refusals)(
  "a server starts on a store that refuses LISTEN %s, says so once, and polls for changes",
  async (_how, reply) => {
    const postgres = await startPostgres();
    open.push(() => postgres.close());
    const proxy = await createPostgresProxy({ host: "127.0.0.1", port: postgres.port }, (statement) =>
      statement.startsWith("listen") ? reply : undefined,
    );
    open.push(() => proxy.close());
    const folder = await mkdtemp(join(tmpdir(), "sluice-without-listen-"));
    open.push(() => rm(folder, { recursive: true, force: true }));
    const elsewhere = await openPolicyStore({ url: postgres.url });
    open.push(() => elsewhere.close());
    await putPolicy(elsewhere, "p", 1);

    const lines: LoggedLine[] = [];
    const store = postgres.url.replace(`:${postgres.port}/`, `:${proxy.port}/`);
    const ports = { httpPort: "0", grpcPort: "off", adminPort: "off" };
    const reading = parseSettings({}, { ...ports, store, policySnapshot: join(folder, "policies.snapshot") });
    if (reading.kind === "problems") throw new Error(JSON.stringify(reading.problems));
    const log = createRecordingLog((line) => lines.push(line));
    const daemon = await startDaemon({ settings: reading.settings, log });
    open.push(() => daemon.close());

    const versionInForce = (): unknown =>
      daemon.limiter.snapshot.policySet.policies.find(({ id }) => id === "p")?.version;
    expect(versionInForce()).toBe(1);
    await vi.waitFor(() => expect(proxy.answered).toHaveLength(1), patience);
    await putPolicy(elsewhere, "p", 2);
    await vi.waitFor(() => expect(versionInForce()).toBe(2), patience);
    await putPolicy(elsewhere, "p", 3);
    await vi.waitFor(() => expect(versionInForce()).toBe(3), patience);

    const status = (await (await fetch(`${daemon.url}/v1/status`)).json()) as { readonly store: object };
    expect(status.store).toMatchObject({ generation: 3, push: { kind: "postgres", connected: false } });
    const told = lines.filter(({ message }) => message.includes("LISTEN"));
    expect(told).toMatchObject([{ level: "warn", fields: { reason: reply.message } }]);
    expect(told[0]?.message).toMatch(/polls every second.*SLUICE_PUSH=redis/);
    expect(proxy.answered).toHaveLength(1);
  },
  60_000,
);
