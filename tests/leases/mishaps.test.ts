import type { CompiledLimit, ResolvedLimit } from "sluice/store";
import { resolvedLimit, testWindow } from "sluice/testing";
import { describe, expect, test } from "vitest";
import { judgeOvershoot } from "./judge-overshoot.ts";
import { type Fate, LeaseWorld, type WorldNode } from "./lease-world.ts";
import { leasedLimit } from "./leased-limit.ts";

/** Everything that can happen to a lease, one event at a time. */

const prompt: Fate = { requestMs: 0.5, replyMs: 0.5 };
const lostReply: Fate = { requestMs: 0.5, replyMs: undefined };
const monthMs = 30 * 24 * 60 * 60 * 1000;
const leaseMs = 1000;
const staleMs = 4000;
/** Longer than any ledger of these leases remembers. */
const forgottenMs = leaseMs + staleMs + 5000 + 10_000;

/** Does not refill during a test, so that its count shows all charges ever made. An allowance of 100. */
const quota: CompiledLimit = leasedLimit({
  name: "quota",
  algorithm: "fixed_window",
  windows: [testWindow(1000, monthMs)],
  maxOvershoot: 0.1,
});

/** The same for arrivals, which have a separate code path. */
const bucket: CompiledLimit = leasedLimit({
  name: "bucket",
  algorithm: "token_bucket",
  windows: [testWindow(1000, monthMs)],
  maxOvershoot: 0.1,
});

class Mishap extends LeaseWorld {
  /** Applies to every call from now on. */
  fate: Fate = prompt;

  constructor(nodes: number) {
    super({ leases: { leaseMs, staleMs, refreshMs: 500 }, fateOf: () => this.fate });
    for (let i = 0; i < nodes; i++) this.addNode();
  }

  /** Sends requests on one node until it holds units. */
  async lease(node: WorldNode, limit: CompiledLimit = quota): Promise<void> {
    for (let i = 0; i < 20; i++) {
      void node.take([resolvedLimit(limit, "ada")]);
      await this.pass(2);
    }
    expect(node.counters.stats.tokens).toBeGreaterThan(2);
  }

  /** Leaves nothing to be granted. */
  useUp(): void {
    this.centre.charge([resolvedLimit(quota, "ada", 1000)]);
  }

  readLedger(limit: CompiledLimit = quota): number {
    return this.centre.lease([resolvedLimit(limit, "ada")], { want: 0, holdMs: 1 }).unspent;
  }

  readCount(limit: CompiledLimit = quota): number {
    return this.centre.read(resolvedLimit(limit, "ada"))[0]!.state.count!;
  }

  get inHand(): number {
    return this.nodes.reduce((sum, { counters }) => sum + counters.stats.tokens, 0);
  }

  admitted(): number {
    const [first] = this.windows();
    return first!.admissions.reduce((sum, { cost }) => sum + cost, 0);
  }
}

function createNodes(world: LeaseWorld): [WorldNode, WorldNode] {
  return [world.nodes[0]!, world.nodes[1]!];
}

/** How many of these requests are admitted locally at once. */
function spendAtOnce(node: WorldNode, times: number, request: readonly ResolvedLimit[]): number {
  let spent = 0;
  for (let i = 0; i < times; i++) if (node.take(request) === true) spent += 1;
  return spent;
}

const one = [resolvedLimit(quota, "ada")];

/** Five requests, always decided by the centre. */
const exactly: CompiledLimit = leasedLimit({
  name: "exactly",
  algorithm: "fixed_window",
  windows: [testWindow(5, monthMs)],
  counters: "exact",
});

test("what was reported in a call without an answer is not reported again", async () => {
  const world = new Mishap(2);
  const [ada, bob] = createNodes(world);
  await world.lease(ada);
  await world.lease(bob);
  world.fate = lostReply;
  // Spent, and reported in the call for more, which is carried out.
  spendAtOnce(ada, ada.counters.stats.tokens, one);
  await world.pass(2000);
  world.fate = prompt;
  for (let i = 0; i < 30; i++) {
    void ada.take(one);
    await world.pass(100);
    expect(world.readLedger()).toBeGreaterThanOrEqual(world.inHand);
    expect(world.readLedger()).toBeLessThanOrEqual(100);
    expect(world.readCount()).toBeGreaterThanOrEqual(world.admitted() + world.inHand);
  }
});

test("what was reported without an answer is not reported again if the ledger has nothing else to grant", async () => {
  const world = new Mishap(2);
  const [ada, bob] = createNodes(world);
  await world.lease(ada);
  await world.lease(bob);
  world.useUp();
  world.fate = lostReply;
  spendAtOnce(ada, ada.counters.stats.tokens, one);
  await world.pass(900);
  world.fate = prompt;
  // More than is in hand: Bob stays warm, and keeps its units. If it asked for more, it would report that as well.
  void bob.take([resolvedLimit(quota, "ada", 200)]);
  await world.pass(150);
  for (let i = 0; i < 5; i++) {
    void ada.take(one);
    await world.pass(50);
    expect(world.inHand).toBeGreaterThan(10);
    expect(world.readLedger()).toBeGreaterThanOrEqual(world.inHand);
  }
});

test("what was held when an answer was lost is not given back while it may be spent", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  await world.lease(ada!);
  await world.pass(leaseMs);
  world.fate = lostReply;
  void ada!.take(one);
  await world.pass(1050);
  world.fate = prompt;
  for (let i = 0; i < 60; i++) {
    void ada!.take(one);
    await world.pass(50);
    expect(world.readCount()).toBeGreaterThanOrEqual(world.admitted() + world.inHand);
    expect(world.readLedger()).toBeGreaterThanOrEqual(world.inHand);
  }
});

test("what was set aside when an answer was lost does not return to units that the ledger does not know", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  await world.lease(ada!);
  world.useUp();
  await world.pass(leaseMs);
  world.fate = lostReply;
  // The renewal fails after a second; just before that a unit is set aside for a request that fails just after it.
  void ada!.take(one);
  await world.pass(980);
  void ada!.take([...one, resolvedLimit(exactly, "ada")]);
  await world.pass(60);
  world.fate = prompt;
  for (let i = 0; i < forgottenMs / 500; i++) {
    // More than is in hand: it is requested, and not spent.
    void ada!.take([resolvedLimit(quota, "ada", 200)]);
    await world.pass(500);
    expect(world.readLedger()).toBeGreaterThanOrEqual(world.inHand);
  }
});

test("what is held when an answer is lost is spent until its hold ends, and not after", async () => {
  for (const [waitMs, isSpent] of [
    [100, true],
    [leaseMs + staleMs, false],
  ] as const) {
    const world = new Mishap(1);
    const [ada] = world.nodes;
    await world.lease(ada!);
    const held = ada!.counters.stats.tokens;
    world.fate = lostReply;
    // The lease is over: it is renewed, and the answer is lost.
    await world.pass(leaseMs);
    void ada!.take(one);
    await world.pass(1100);
    ada!.pause();
    await world.pass(waitMs);
    ada!.resume(() => expect(spendAtOnce(ada!, held - 1, one)).toBe(isSpent ? held - 1 : 0));
    expect(world.breaches).toEqual([]);
  }
});

test.each([quota, bucket])(
  "a node that was paused for longer than its hold spends nothing of it: $scope",
  async (limit) => {
    const world = new Mishap(1);
    const [ada] = world.nodes;
    await world.lease(ada!, limit);
    ada!.pause();
    await world.pass(leaseMs + staleMs);
    ada!.resume(() => expect(spendAtOnce(ada!, 10, [resolvedLimit(limit, "ada")])).toBe(0));
    expect(ada!.counters.stats.tokens).toBe(0);
  },
);

test("a hold is counted from before the centre was asked, however late the answer comes", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  world.fate = { requestMs: 0.5, replyMs: 900 };
  void ada!.take(one);
  await world.pass(950);
  expect(ada!.counters.stats.tokens).toBeGreaterThan(0);
  ada!.pause();
  await world.pass(leaseMs + staleMs - 950);
  ada!.resume(() => expect(spendAtOnce(ada!, 1, one)).toBe(0));
});

test("the ledger remembers for longer than any node may spend, and no longer", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  await world.lease(ada!);
  const held = ada!.counters.stats.tokens;
  ada!.crash();
  await world.pass(leaseMs + staleMs + 4999);
  expect(world.readLedger()).toBeGreaterThanOrEqual(held);
  await world.pass(10_001);
  expect(world.readLedger()).toBe(0);
  expect(world.readCount()).toBe(world.admitted() + held);
});

test("what is given back too late is not credited", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  await world.lease(ada!);
  world.fate = { requestMs: forgottenMs, replyMs: 0 };
  void ada!.counters.drain();
  await world.pass(1000);
  const charged = world.readCount();
  await world.pass(forgottenMs);
  expect(world.readCount()).toBe(charged);
});

test("what is given back in time is credited, and available to others at once", async () => {
  const world = new Mishap(2);
  const [ada, bob] = createNodes(world);
  await world.lease(ada);
  await world.lease(bob);
  void ada.restart();
  void bob.restart();
  await world.pass(10);
  expect(world.readLedger()).toBe(0);
  expect(world.readCount()).toBe(world.admitted());
});

test("what a node holds and does not use is given back when its lease is over, after a burst too", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  await world.lease(ada!);
  for (let i = 0; i < 300; i++) void ada!.take([resolvedLimit(quota, "ada", 500)]);
  await world.pass(leaseMs + 2500);
  expect(world.readLedger()).toBe(0);
  expect(world.readCount()).toBe(world.admitted());
});

test("while the centre is unavailable a lease is spent, for as long as it is held and no more than is in hand", async () => {
  const world = new Mishap(1);
  const [ada] = world.nodes;
  await world.lease(ada!);
  world.centreIsUp = false;
  const held = ada!.counters.stats.tokens;
  let spent = 0;
  for (let second = 0; second < 10; second++) {
    spent += spendAtOnce(ada!, 2, one);
    await world.pass(1000);
  }
  // Two in each second of the lease and of the stale budget, as far as available.
  expect(spent).toBe(Math.min(held, 2 * Math.floor((leaseMs + staleMs) / 1000)));
  world.centreIsUp = true;
  await world.pass(forgottenMs);
  const answer = ada!.take(one);
  await world.pass(5);
  expect(await answer).toBe(true);
});

test("a lost ledger costs one more allowance, and nodes drop what it does not know when they renew", async () => {
  const world = new Mishap(2);
  const [ada, bob] = createNodes(world);
  await world.lease(ada);
  world.loseCentre();
  expect(world.readLedger()).toBe(0);
  await world.lease(bob);
  expect(world.inHand).toBeGreaterThan(world.readLedger());
  // Each renews repeatedly, reports what it kept, and learns how much of that is known.
  for (let i = 0; i < 150; i++) {
    for (const node of [ada, bob]) void node.take(one);
    await world.pass(100);
  }
  expect(world.inHand).toBeGreaterThan(0);
  expect(world.readLedger()).toBeGreaterThanOrEqual(world.inHand);
  for (const { course, admissions } of world.windows()) {
    expect(judgeOvershoot(admissions, course).beyond).toBeLessThanOrEqual(0);
  }
});

describe("several limits in a request", () => {
  const both = [...one, resolvedLimit(exactly, "ada")];

  test("one that denies does not consume the others' units in hand", async () => {
    for (const maxDenialMs of [0, 1000]) {
      const world = new LeaseWorld({ leases: { leaseMs, staleMs, maxDenialMs } });
      const ada = world.addNode();
      for (let i = 0; i < 60; i++) {
        void ada.take(i < 20 ? one : both);
        await world.pass(3);
      }
      await world.pass(100);
      const [wide] = world.windows();
      expect(wide!.admissions.filter(({ fromMs }) => fromMs >= 60)).toHaveLength(5);
      const [ledger] = world.ledgers();
      expect(ledger!.charged).toBe(ledger!.admitted + ada.counters.stats.tokens);
    }
  });

  test("nor does a lost answer", async () => {
    const world = new Mishap(1);
    const [ada] = world.nodes;
    await world.lease(ada!);
    const held = ada!.counters.stats.tokens;
    world.fate = lostReply;
    void ada!.take(both);
    expect(ada!.counters.stats.tokens).toBe(held - 1);
    await world.pass(60);
    expect(ada!.counters.stats.tokens).toBe(held);
  });

  test.each([
    ["after", 0.5],
    ["before", 60],
  ])("what was set aside is given back with its lease, if it is denied %s that is answered", async (_, replyMs) => {
    const world = new Mishap(1);
    const [ada] = world.nodes;
    await world.lease(ada!);
    world.centre.charge([resolvedLimit(exactly, "ada", 5)]);
    world.fate = { requestMs: 20, replyMs: 5 };
    void ada!.take(both);
    world.fate = { requestMs: 0.5, replyMs };
    void ada!.counters.drain();
    await world.pass(200);
    expect(world.readLedger()).toBe(0);
    expect(world.readCount()).toBe(world.admitted());
  });
});

describe("an edit", () => {
  const edited = (maxOvershoot: number): CompiledLimit =>
    leasedLimit({ name: "quota", algorithm: "fixed_window", windows: [testWindow(1000, monthMs)], maxOvershoot });

  test("to a smaller allowance applies to later grants", async () => {
    const world = new Mishap(2);
    const [ada, bob] = createNodes(world);
    await world.lease(ada);
    const smaller = edited(0.01);
    for (let i = 0; i < 100; i++) {
      void bob.take([resolvedLimit(smaller, "ada")]);
      void ada.take([resolvedLimit(smaller, "ada")]);
      await world.pass(20);
    }
    expect(world.readLedger(smaller)).toBeLessThanOrEqual(10);
  });

  test("to exact counters ends leases, and gives back what was in hand", async () => {
    const world = new Mishap(1);
    const [ada] = world.nodes;
    await world.lease(ada!);
    const exact = leasedLimit({
      name: "quota",
      algorithm: "fixed_window",
      windows: [testWindow(1000, monthMs)],
      maxOvershoot: 0,
      counters: "exact",
    });
    for (let i = 0; i < 5; i++) {
      void ada!.take([resolvedLimit(exact, "ada")]);
      await world.pass(5);
    }
    expect(ada!.counters.stats).toMatchObject({ leases: 0, tokens: 0 });
    expect(world.readLedger(exact)).toBe(0);
    expect(world.readCount(exact)).toBe(world.admitted());
  });
});

test("no node starves while another holds unused units", async () => {
  const paced = leasedLimit({ algorithm: "token_bucket", windows: [testWindow(400, 1000, 200)], maxOvershoot: 0.5 });
  const request = [resolvedLimit(paced, "ada")];
  const world = new Mishap(2);
  const [ada, bob] = createNodes(world);
  await world.lease(ada, paced);
  const startMs = world.nowMs;
  let admitted = 0;
  let leastHeld = Number.POSITIVE_INFINITY;
  for (let tick = 0; tick < 2000; tick++) {
    // At four requests a second, which is enough to stay warm, Ada keeps its units.
    if (tick % 50 === 0) void ada.take(request);
    for (let i = 0; i < 3; i++) {
      const answer = bob.take(request);
      if (answer === true) admitted += 1;
      else if (answer !== false) void answer.then((taken) => (admitted += taken ? 1 : 0));
    }
    await world.pass(5);
    leastHeld = Math.min(leastHeld, ada.counters.stats.tokens);
  }
  expect(leastHeld).toBeGreaterThan(0);
  expect(admitted).toBeGreaterThanOrEqual(0.97 * ((world.nowMs - startMs) / 1000) * 400);
});
