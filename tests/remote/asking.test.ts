import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { type ConnectOptions, connect, type RemoteLimiter } from "@sluice/client";
import { type CheckRequest, createLimiter, type Decision } from "sluice";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { repositoryRoot } from "../repository/source-tree.ts";
import { createTestFiles, policySet, type TestFiles } from "./remote-policies.ts";
import { type SluiceProcess, startSluice } from "./sluice-process.ts";

let files: TestFiles;
let server: SluiceProcess;
let guarded: SluiceProcess;
const open: RemoteLimiter[] = [];
let subjects = 0;

beforeAll(async () => {
  files = await createTestFiles();
  [server, guarded] = await Promise.all([
    startSluice("--config", files.policies),
    startSluice("--config", files.policies, "--tokens", files.tokens),
  ]);
}, 60_000);

afterEach(async () => {
  for (const limiter of open.splice(0)) await limiter.close();
});

afterAll(async () => {
  await Promise.all([server?.close(), guarded?.close()]);
  await files?.close();
});

/** A user with unused counters. */
function newUser(): string {
  subjects += 1;
  return `u${subjects}`;
}

/** Even on a busy machine a check is answered within this time. */
const patientMs = 15_000;

describe.each(["grpc", "http"] as const)("a remote limiter over %s", (protocol) => {
  function client(options: ConnectOptions = {}, of: SluiceProcess = server): RemoteLimiter {
    const limiter = connect(of[protocol], { deadlineMs: patientMs, whenUnavailable: "closed", ...options });
    open.push(limiter);
    return limiter;
  }

  it.each(["small", "day", "once", "leaky", "twice", "no"])(
    "decides exactly as a limiter in this process does, by policy %s",
    async (kind) => {
      const remote = client();
      const local = createLimiter({ policies: policySet });
      const user = kind === "no" ? "mallory" : newUser();
      const conversation: CheckRequest[] = [{}, { cost: 2 }, { preview: true, cost: 0 }, { cost: 3 }, { cost: 4 }];
      for (const more of conversation) {
        const request = { ...more, dimensions: { user, kind }, details: true };
        const [theirs, ours] = [await remote.check(request), await local.check(request)];
        expect(withoutTimes(theirs)).toEqual(withoutTimes(ours));
        // Both count time from the first take, and the calls are moments apart.
        expect(Math.abs((theirs.resetAfterMs ?? 0) - (ours.resetAfterMs ?? 0))).toBeLessThan(patientMs);
      }
    },
  );

  it("answers checks of one turn together, in one batch, each with its own", async () => {
    const remote = client();
    const [first, second] = [newUser(), newUser()];
    await remote.check({ dimensions: { user: first, kind: "api" } });
    const before = remote.stats;
    const asked = [first, second, first, second, second].map((user) =>
      remote.check({ dimensions: { user, kind: "small" } }),
    );
    const bad = remote.check({ dimensions: { ip: "nowhere" } }).catch((error: unknown) => error);
    expect((await Promise.all(asked)).map(({ remaining }) => remaining)).toEqual([4, 4, 3, 3, 2]);
    expect(await bad).toMatchObject({ code: "invalid_request", problems: [{ path: ["dimensions", "ip"] }] });
    expect([remote.stats.sent - before.sent, remote.stats.batches - before.batches]).toEqual([6, 1]);
  });

  it("admits exactly the limit, however many ask at once", async () => {
    const remote = client();
    const user = newUser();
    const asked = Array.from({ length: 2_000 }, () => remote.check({ dimensions: { user, kind: "small" } }));
    const decisions = await Promise.all(asked);
    expect(decisions.filter(({ allowed }) => allowed)).toHaveLength(5);
    expect(decisions.filter(({ degraded }) => degraded !== undefined)).toEqual([]);
  });

  it("charges an id once", async () => {
    const remote = client();
    const request = { dimensions: { user: newUser(), kind: "small" }, cost: 2, id: newUser() };
    expect(await remote.check(request)).toMatchObject({ remaining: 3, replayed: false });
    expect(await remote.check(request)).toMatchObject({ remaining: 3, replayed: true });
    await expect(remote.check({ ...request, cost: 1 })).rejects.toMatchObject({ code: "idempotency_conflict" });
  });

  it("previews, charges and gives back", async () => {
    const remote = client();
    const request = { dimensions: { user: newUser(), kind: "small" } };
    const { receipt } = await remote.check({ ...request, cost: 2, receipt: true });
    expect(await remote.give(receipt!)).toBe(true);
    expect(await remote.give(receipt!)).toBe(false);
    await remote.charge({ ...request, cost: 4 });
    expect(await remote.peek(request)).toMatchObject({ allowed: true, remaining: 1, preview: true });
    await expect(remote.charge({ ...request, cost: -3 })).rejects.toMatchObject({ code: "permission_denied" });
    expect(await remote.peek(request), "credits need a token").toMatchObject({ remaining: 1 });
    await expect(remote.charge({ ...request, cost: 0 })).rejects.toMatchObject({ code: "invalid_request" });
  });

  it("reports a mistake of the caller, with its code", async () => {
    const remote = client();
    await expect(remote.check({ policies: ["nowhere"] })).rejects.toMatchObject({ code: "policy_not_found" });
    await expect(remote.reset({ dimensions: {} })).rejects.toMatchObject({ code: "permission_denied" });
    const operator = client({ token: "operator-token" }, guarded);
    await expect(operator.reset({ policies: ["nowhere"] })).rejects.toMatchObject({
      code: "policy_not_found",
      problems: [{ path: expect.toSatisfy(([field]) => field === "policies") }],
    });
  });

  it("sends its token, and resets if that is permitted", async () => {
    const request = { dimensions: { user: newUser(), kind: "small" } };
    const operator = client({ token: "operator-token" }, guarded);
    const asker = client({ token: "check-token" }, guarded);
    await asker.charge({ ...request, cost: 5 });
    expect(await asker.check(request)).toMatchObject({ allowed: false });
    await expect(asker.reset(request)).rejects.toMatchObject({ code: "permission_denied" });
    expect(await operator.reset(request)).toBe(1);
    expect(await asker.check(request)).toMatchObject({ allowed: true, remaining: 4 });
    await asker.charge({ ...request, cost: -1 });
    expect(await asker.check(request)).toMatchObject({ allowed: true, remaining: 4 });
  });

  it("asks, charges and resets in any domain", async () => {
    const operator = client({ token: "operator-token" }, guarded);
    const request = { domain: "billing", dimensions: { user: newUser() } };
    await operator.charge({ ...request, cost: 3 });
    expect(await operator.check(request)).toMatchObject({ policy: "bill", remaining: 1 });
    await operator.reset({ dimensions: request.dimensions });
    expect(await operator.peek(request)).toMatchObject({ remaining: 1 });
    expect(await operator.reset(request)).toBe(1);
    expect(await operator.peek(request)).toMatchObject({ remaining: 5 });
  });

  it("has an id remembered for as long as requested", async () => {
    const remote = client();
    const request = { dimensions: { user: newUser(), kind: "small" }, id: newUser(), idTtlMs: 1.5 };
    expect(await remote.check(request)).toMatchObject({ remaining: 4, replayed: false });
    const isNew = async (): Promise<boolean> => !(await remote.check(request)).replayed;
    await expect.poll(isNew, { timeout: patientMs, interval: 5 }).toBe(true);
  });

  it.each([undefined, "secret-token"])(
    "is refused, and not answered by whenUnavailable, with the token %s",
    async (token) => {
      const remote = client({ token }, guarded);
      const asked = [remote.check({}), remote.check({}), remote.charge({ cost: 1 }), remote.give("r1")];
      for (const result of await Promise.allSettled(asked)) {
        const { reason } = result as PromiseRejectedResult;
        expect(reason).toMatchObject({ code: "unauthenticated" });
        expect(`${reason.stack} ${JSON.stringify(reason)}`).not.toContain("secret-token");
      }
    },
  );

  it("lets a process end that closes it, and one that does not", async () => {
    const program = (end: string): string => `
      import { connect } from "@sluice/client";
      const limiter = connect("${server[protocol]}", { deadlineMs: ${patientMs}, whenUnavailable: "closed" });
      const decision = await limiter.check({ dimensions: { user: "${newUser()}", kind: "small" } });
      console.log(decision.remaining, decision.degraded);
      ${end}`;
    for (const end of ["await limiter.close();", ""]) {
      const args = ["-C", "source", "--input-type=module", "-e", program(end)];
      // A process that starts from source takes many times as long on a busy machine.
      const { stdout } = await promisify(execFile)(process.execPath, args, { cwd: repositoryRoot, timeout: 60_000 });
      expect(stdout).toBe("4 undefined\n");
    }
  }, 150_000);
});

it("addresses of both protocols can be combined", async () => {
  const limiter = connect([server.grpc, server.http], { deadlineMs: patientMs, whenUnavailable: "closed" });
  open.push(limiter);
  const request = { dimensions: { user: newUser(), kind: "api" } };
  await expect
    .poll(
      async () => {
        expect(await limiter.check(request)).toMatchObject({ allowed: true, degraded: undefined });
        return limiter.stats.addresses.filter(({ sent }) => sent >= 3).length;
      },
      { timeout: patientMs, interval: 1 },
    )
    .toBe(2);
});

/** The fields that do not depend on the time. */
function withoutTimes({ limits, shadow, ...decision }: Decision): object {
  const timeless = (one: object): object => ({ ...one, ...noTimes });
  return {
    ...decision,
    ...noTimes,
    queue: decision.queue?.position,
    waits: decision.retryAfterMs !== undefined,
    ends: [decision.resetAfterMs, decision.resetAtMs, decision.moreAfterMs].map((one) => one !== undefined),
    shadow: shadow.map(timeless),
    limits: limits?.map((one) => ({
      ...timeless(one),
      queue: one.queue?.position,
      waits: one.retryAfterMs !== undefined,
      ends: Number.isFinite(one.resetAfterMs) ? one.resetAfterMs > 0 : one.resetAfterMs,
    })),
  };
}

const noTimes = { retryAfterMs: undefined, resetAfterMs: undefined, resetAtMs: undefined, moreAfterMs: undefined };
