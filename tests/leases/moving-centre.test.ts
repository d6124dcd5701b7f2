import { RedisCounters } from "@sluice/redis";
import { startCluster, startSentinel, startServer, type TestCluster, type TestServer } from "@sluice/test-servers";
import type { CompiledLimit } from "sluice/store";
import { resolvedLimit, testWindow } from "sluice/testing";
import { afterEach, describe, expect, test } from "vitest";
import { renderOvershoot } from "./judge-overshoot.ts";
import { type LeasedLimit, leasedLimit } from "./leased-limit.ts";
import { LeasingFleet, type LeasingNode, type Line, readCharged, readUnspent } from "./leasing-fleet.ts";

/** Leases are out while their centre moves, or loses its data. docs/leases.md has the cost. */

const monthMs = 30 * 24 * 60 * 60 * 1000;
const quota = 2000;
const allowance = 200;
const patience = { timeout: 30_000 };

const byTenant = (limit: Omit<LeasedLimit, "by">): CompiledLimit => leasedLimit({ ...limit, by: ["tenant"] });

/** These do not refill during a test: the count is all charges ever made. */
const quotas = (["fixed_window", "token_bucket"] as const).map((algorithm) =>
  byTenant({ name: algorithm, algorithm, windows: [testWindow(quota, monthMs)], maxOvershoot: allowance / quota }),
);
/** These refill quickly, and every interval is judged. */
const paces = [
  byTenant({ name: "pace", algorithm: "gcra", windows: [testWindow(500, 1000, 100)], maxOvershoot: 0.3 }),
  byTenant({ name: "sliding", algorithm: "sliding_window", windows: [testWindow(400, 1000)], maxOvershoot: 0.3 }),
];

const createLines = (subject: string, limits: readonly CompiledLimit[]): readonly Line[] =>
  limits.map((limit) => ({ limit, subject }));
const ofQuota = (lines: readonly Line[]): readonly Line[] => lines.filter(({ limit }) => quotas.includes(limit));
const ofPace = (lines: readonly Line[]): readonly Line[] => lines.filter(({ limit }) => paces.includes(limit));

const open: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const one of open.splice(0).reverse()) await one.close();
});

function closedLater<T extends { close(): Promise<void> }>(one: T): T {
  open.push(one);
  return one;
}

const startOne = async (): Promise<TestServer> => closedLater(await startServer({ flavor: "valkey" }));
const openCentre = (servers: string): RedisCounters => closedLater(new RedisCounters({ servers, deadlineMs: 5000 }));

async function openFleet(servers: string, limits = [...quotas, ...paces]): Promise<LeasingFleet> {
  return closedLater(await LeasingFleet.open(3, createLines("ada", limits), { servers }));
}

/** No interval admits more than the exact algorithm, the allowance, and the cost of the losses. */
async function expectBounds(fleet: LeasingFleet, lines: readonly Line[] = fleet.lines): Promise<void> {
  let passed = 0;
  await fleet.drive("the load is high", 6, () => ++passed > 40, ofPace(lines));
  for (const line of ofPace(lines)) {
    const worst = fleet.judge(line);
    expect(worst.beyond, `${line.limit.scope} of ${line.subject}: ${renderOvershoot(worst)}`).toBeLessThanOrEqual(0);
  }
}

/** Charges equal admissions plus units that ended unspent, and nothing is out. */
async function expectAccounts(fleet: LeasingFleet, centre: RedisCounters): Promise<void> {
  const lost = await fleet.drain();
  let unspent = 0;
  for (const line of ofQuota(fleet.lines)) {
    expect(await readUnspent(centre, line), line.limit.scope).toBe(0);
    expect(fleet.admitted(line)).toBeGreaterThan(0);
    unspent += (await readCharged(centre, line)) - fleet.admitted(line);
  }
  expect(unspent).toBe(lost);
}

const countGranted = ({ nodes }: LeasingFleet): number[] => nodes.map(({ counters }) => counters.stats.granted);

async function expectLeasing(fleet: LeasingFleet, lines: readonly Line[] = fleet.lines): Promise<void> {
  const before = countGranted(fleet);
  const isGranted = (): boolean => countGranted(fleet).every((granted, i) => granted > before[i]!);
  await fleet.drive("every node is granted leases", 1, isGranted, lines);
}

/** After its counters were lost, a quota was used up again, plus at most one allowance. */
async function expectOneMoreAllowance(fleet: LeasingFleet): Promise<void> {
  await expectLeasing(fleet);
  await fleet.useUp(ofQuota(fleet.lines));
  for (const line of ofQuota(fleet.lines)) {
    const admitted = fleet.admittedAfter(line, fleet.losses[0]!);
    expect(admitted).toBeLessThanOrEqual(quota + allowance);
    expect(admitted).toBeGreaterThanOrEqual(quota - allowance);
  }
}

describe("a centre that loses", () => {
  test("everything, while it runs, costs one more allowance", async () => {
    const server = await startOne();
    const fleet = await openFleet(server.url);
    await fleet.hold();
    await fleet.during(() => fleet.losing(() => server.command("FLUSHALL")));
    await expectOneMoreAllowance(fleet);
    await expectBounds(fleet);
  });

  test("everything, by a restart without its data, costs one more allowance, and leases are spent meanwhile", async () => {
    const server = await startOne();
    const fleet = await openFleet(server.url);
    const [first, ...others] = fleet.lines;
    await fleet.hold();
    // Calls for more are in flight, and never answered.
    server.pause();
    for (const node of fleet.nodes) for (let i = 0; i < allowance; i++) fleet.ask(node, first!);
    await expect.poll(() => fleet.nodes.every(({ centre }) => centre.stats.inFlight > 0), patience).toBe(true);
    await fleet.losing(() => server.kill());
    expectDecidingHere(fleet, others);
    await fleet.during(() => server.restart());
    await expectLeasing(fleet, [first!]);
    await expectOneMoreAllowance(fleet);
    await expectBounds(fleet);
  });

  test("its scripts costs nothing", async () => {
    const server = await startOne();
    const fleet = await openFleet(server.url);
    await fleet.hold();
    await fleet.during(async () => {
      const enough = countLoads(fleet) + 15;
      while (countLoads(fleet) < enough) {
        await server.command("SCRIPT", "FLUSH");
        const { asked } = fleet;
        await expect.poll(() => fleet.asked, patience).toBeGreaterThan(asked);
      }
    }, ofPace(fleet.lines));
    await expectLeasing(fleet, ofPace(fleet.lines));
    await expectBounds(fleet);
    await expectAccounts(fleet, openCentre(server.url));
  });
}, 120_000);

function countLoads({ nodes }: LeasingFleet): number {
  return nodes.reduce((sum, { centre }) => sum + centre.stats.loads, 0);
}

/** Every node has units in hand, and spends them locally. */
function expectDecidingHere(fleet: LeasingFleet, lines: readonly Line[]): void {
  for (const node of fleet.nodes) expect(lines.filter((line) => fleet.ask(node, line))).not.toEqual([]);
}

describe("other servers, which know nothing", () => {
  const moveTo = (fleet: LeasingFleet, { url }: TestServer): Promise<unknown> =>
    Promise.all(fleet.nodes.map(({ centre }) => centre.useServers(url, 30_000)));

  test("cost one more allowance", async () => {
    const [old, next] = [await startOne(), await startOne()];
    const fleet = await openFleet(old.url, quotas);
    await fleet.hold();
    await fleet.during(() => fleet.losing(() => moveTo(fleet, next)));
    await expectOneMoreAllowance(fleet);
  });

  test.each([
    ["before any node leases there", () => []],
    ["while others lease there", ([, bob]: readonly LeasingNode[]) => [bob!]],
    ["after it was kept there", ([ada]: readonly LeasingNode[]) => [ada!]],
  ])("receive units that others granted, %s, and admit no more than if they had been spent", async (_, whoLeases) => {
    const [old, next] = [await startOne(), await startOne()];
    const fleet = await openFleet(old.url, quotas);
    const [before, after] = [openCentre(old.url), openCentre(next.url)];
    await fleet.hold();
    const out = await sumLines(fleet.lines, (line) => readUnspent(before, line));
    const loss = await fleet.losing(() => moveTo(fleet, next));
    const [ada] = fleet.nodes;
    const leasing = whoLeases(fleet.nodes);
    for (const node of leasing) {
      const { granted } = node.counters.stats;
      await fleet.drive("leases there", 1, () => node.counters.stats.granted > granted, fleet.lines, [node]);
    }
    // Another subject has taken some, which a credit would reveal.
    for (const { limit, subject } of fleet.lines) await after.charge([resolvedLimit(limit, subject, quota / 2)]);
    const charged = await sumLines(fleet.lines, (line) => readCharged(after, line));
    expect(ada!.counters.stats.tokens).toBeGreaterThan(0);
    await ada!.counters.drain(30_000);
    if (leasing.length === 0) expect(await sumLines(fleet.lines, (line) => readCharged(after, line))).toBe(charged);
    await fleet.useUp(fleet.lines);
    // Units that come back now are requested once more.
    await fleet.drain();
    await fleet.useUp(fleet.lines);
    const admitted = await sumLines(fleet.lines, async (line) => fleet.admittedAfter(line, loss) + quota / 2);
    expect(admitted).toBeLessThanOrEqual(fleet.lines.length * quota + out);
    for (const line of fleet.lines) expect(await readCharged(after, line)).toBe(quota);
  });
}, 120_000);

async function sumLines(lines: readonly Line[], figureOf: (line: Line) => Promise<number>): Promise<number> {
  const figures = await Promise.all(lines.map(figureOf));
  return figures.reduce((sum, figure) => sum + figure, 0);
}

describe("a failover", () => {
  test("costs what the replica had not received, and leases are spent meanwhile", async () => {
    const sentinel = closedLater(await startSentinel({ flavor: "redis" }));
    const addresses = sentinel.sentinels.map(({ host, port }) => `${host}:${port}`);
    const fleet = await openFleet(`redis+sentinel://${addresses.join(",")}/${sentinel.masterName}`);
    await fleet.hold();
    const primary = await sentinel.primary();
    await cutOff(primary);
    await fleet.hold(1);
    const unheard = (await readCount(primary)) - (await readCount(sentinel.servers.find((one) => one !== primary)!));
    expect(unheard).toBeGreaterThan(0);
    const loss = await fleet.losing(() => primary.kill());
    expectDecidingHere(fleet, fleet.lines);
    await fleet.during(() => sentinel.waitForNewPrimary(primary));
    await expectLeasing(fleet);
    await fleet.useUp(ofQuota(fleet.lines));
    const counted = fleet.lines.find(({ limit }) => limit === quotas[0])!;
    expect(fleet.admitted(counted)).toBeLessThanOrEqual(quota + unheard);
    for (const line of ofQuota(fleet.lines)) {
      expect(fleet.admittedAfter(line, loss)).toBeLessThanOrEqual(quota + allowance);
    }
    await expectBounds(fleet);
  });
}, 120_000);

/** From here the replica receives nothing, and cannot reconnect. Other connections to the primary stay. */
async function cutOff(primary: TestServer): Promise<void> {
  await primary.command("CONFIG", "SET", "requirepass", "secret");
  await primary.command("CLIENT", "KILL", "TYPE", "replica");
  await expect
    .poll(async () => String(await primary.command("INFO", "replication")), patience)
    .toContain("connected_slaves:0");
}

/** The count of a server's only fixed window. */
async function readCount(server: TestServer): Promise<number> {
  const script = `
    for _, key in ipairs(redis.call('KEYS', '*')) do
      local value = redis.call('GET', key)
      if #value == 17 and value:byte() == 67 then return (select(3, struct.unpack('<Bdd', value))) end
    end
    return 0`;
  return Number(await server.command("EVAL_RO", script, 0));
}

describe("slots that move", () => {
  test("move with counters and ledgers, and cost nothing", async () => {
    const cluster = closedLater(await startCluster({ flavor: "valkey" }));
    const servers = `redis+cluster://${cluster.nodes.map(({ host, port }) => `${host}:${port}`).join(",")}`;
    const fleet = await openFleet(servers);
    await fleet.hold();
    const slot = await findSlot(cluster, "ada");
    const owner = await cluster.ownerOf(slot);
    const [next, last] = cluster.nodes.filter((node) => node !== owner);
    await fleet.during(async () => {
      await cluster.beginMigration(slot, next!);
      const keys = (await owner.command("CLUSTER", "GETKEYSINSLOT", slot, 100)) as readonly string[];
      await cluster.moveKeys(slot, next!, keys.slice(0, Math.ceil(keys.length / 2)));
      // For a while a call's keys are split between two nodes.
      const before = fleet.asked;
      await expect.poll(() => fleet.asked, patience).toBeGreaterThan(before + 200);
      await cluster.finishMigration(slot, next!);
      await cluster.migrateSlot(slot, last!);
    });
    await expectLeasing(fleet, ofPace(fleet.lines));
    await expectBounds(fleet);
    await expectAccounts(fleet, openCentre(servers));
    for (const line of ofQuota(fleet.lines)) expect(fleet.admitted(line)).toBeLessThanOrEqual(quota);
    expect(await last!.command("CLUSTER", "COUNTKEYSINSLOT", slot)).toBeGreaterThan(0);
  });
}, 120_000);

/** Finds the node with a subject's counters. */
async function findSlot(cluster: TestCluster, subject: string): Promise<number> {
  for (const node of cluster.nodes) {
    const [key] = (await node.command("KEYS", `*:${subject}`)) as readonly string[];
    if (key !== undefined) return Number(await node.command("CLUSTER", "KEYSLOT", key));
  }
  throw new Error(`no node has counters of ${subject}`);
}

describe("cells", () => {
  test("grant leases of their own tenants, and one that dies leaves those of others as they are", async () => {
    const [main, cell] = [await startOne(), await startOne()];
    const [pinned, others] = ["acme", "globex"].map((tenant) => createLines(tenant, [...quotas, ...paces]));
    const cells = [{ name: "acme", servers: cell.url, values: { tenant: ["acme"] } }];
    const fleet = closedLater(await LeasingFleet.open(3, [...pinned!, ...others!], { servers: main.url, cells }));
    await fleet.hold();
    expect(await subjectsOn(main)).toEqual(["globex"]);
    expect(await subjectsOn(cell)).toEqual(["acme"]);

    await fleet.losing(() => cell.kill(), pinned);
    expectDecidingHere(fleet, pinned!);
    const failed = countFailed(fleet);
    await expectLeasing(fleet, ofPace(others!));
    expect(countFailed(fleet)).toBe(failed);

    await cell.restart();
    await expectLeasing(fleet, ofPace(pinned!));
    await expectBounds(fleet);
    expect(await subjectsOn(main)).toEqual(["globex"]);
    expect(await subjectsOn(cell)).toEqual(["acme"]);
  });
}, 120_000);

function countFailed({ nodes }: LeasingFleet): number {
  return nodes.reduce((sum, { counters }) => sum + counters.stats.failed, 0);
}

async function subjectsOn(server: TestServer): Promise<string[]> {
  const keys = (await server.command("KEYS", "*")) as readonly string[];
  return [...new Set(keys.map((key) => key.slice(key.lastIndexOf(":") + 1)))];
}
