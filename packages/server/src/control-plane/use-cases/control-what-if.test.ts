import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { applyStored, createRoleActor, type StartedAdmin, startAdmin } from "../admin-api/testing/start-admin.ts";
import { SimulationJobs } from "../what-if/simulation-jobs.ts";

const onLog = {
  source: { log: '203.0.113.7 - - [31/Jan/2026:12:00:00 +0000] "GET /orders HTTP/1.1" 200 17 "-" "-"' },
  candidate: { file: "policies: [{ id: api, limits: [{ by: [ip], windows: [5/m] }] }]" },
};
const [viewer, editor, operator] = [createRoleActor("viewer"), createRoleActor("editor"), createRoleActor("operator")];
const colleague = { ...editor, caller: { ...editor.caller, name: "colleague", tokenId: "another" } };

let admin: StartedAdmin;

beforeAll(async () => {
  admin = await startAdmin();
});

afterAll(() => admin.close());

describe("simulations", () => {
  it("are created by editors and operators, and not by viewers", async () => {
    const { simulations } = admin.control;
    await expect(simulations.create(viewer, onLog)).rejects.toMatchObject({ code: "permission_denied" });
    const { id } = await simulations.create(operator, onLog);
    await simulations.delete(operator, id);
  });

  it("are deleted by those who created them and by operators, and audited", async () => {
    const { simulations, audit } = admin.control;
    const [own, others] = [await simulations.create(editor, onLog), await simulations.create(editor, onLog)];
    for (const actor of [viewer, colleague])
      await expect(simulations.delete(actor, own.id)).rejects.toMatchObject({ code: "permission_denied" });
    await simulations.delete(editor, own.id);
    await simulations.delete(operator, others.id);
    const { items } = await audit.list(operator, { kind: "simulation" });
    const done = items
      .filter(({ outcome }) => outcome === "done")
      .map(({ action, actor, target }) => [action, actor, target]);
    for (const entry of [
      ["simulation.create", "editor", own.id],
      ["simulation.delete", "editor", own.id],
      ["simulation.delete", "operator", others.id],
    ])
      expect(done).toContainEqual(entry);
  });

  it("show editors nothing of recordings, which have the subjects of every team", async () => {
    const { recordings, simulations } = admin.control;
    const { id: recording } = await recordings.start(operator, {});
    await recordings.stop(operator, recording);
    const request = { ...onLog, source: { recording } };
    await expect(simulations.create(editor, request)).rejects.toMatchObject({ code: "permission_denied" });
    const { id } = await simulations.create(operator, request);
    await expect(simulations.get(editor, id)).rejects.toMatchObject({ code: "permission_denied" });
    expect(await simulations.get(viewer, id)).toMatchObject({ id, recording });
  });

  it("are refused before policies are rendered if too many of a caller wait", async () => {
    const { control } = admin;
    const endless = { ...onLog, source: { log: `${onLog.source.log}\n`.repeat(20_000) } };
    const started: string[] = [];
    const create = async () => started.push((await control.simulations.create(operator, endless)).id);
    // One may run already.
    for (let i = 0; i < 3; i++) await create().catch(() => undefined);
    const wrong = { source: {}, candidate: {} };
    // Neither its source nor its candidate is looked at.
    await expect(control.simulations.create(operator, wrong)).rejects.toMatchObject({ code: "overloaded" });
    for (const id of started) await control.simulations.delete(operator, id);
  });

  it("compare with the version before, while another one is rolled out", async () => {
    const { policies, simulations } = admin.control;
    const author = createRoleActor("admin");
    const document = (windows: string) => ({
      id: "rolled",
      match: { endpoint: "/orders" },
      limits: [{ by: ["ip"], windows: [windows] }],
    });
    await policies.put(author, "rolled", document("9/m"), { expected: 0 });
    const steps = [10, 100].map((percent) => ({ percent, holdMs: 3_600_000 }));
    await policies.put(author, "rolled", document("1/m"), {
      expected: 1,
      rollout: { by: "ip", steps, observeForMs: 0 },
    });
    await applyStored(admin);
    const inForce = admin.limiter.snapshot.policySet.policies.filter(({ id }) => id === "rolled");
    expect(inForce).toHaveLength(2);
    const { id } = await simulations.create(operator, {
      ...onLog,
      candidate: { policies: ["{ id: other, limits: [{ by: [ip], windows: [5/m] }] }"] },
    });
    await expect
      .poll(() => simulations.get(operator, id))
      .toMatchObject({ state: expect.stringMatching(/done|failed/) });
    expect(await simulations.get(operator, id)).toMatchObject({ state: "done" });
  });

  it("count as writes", async () => {
    const headers = (await admin.ask("operator", "POST", "/api/v1/simulations", { body: onLog })).headers;
    expect(headers.get("ratelimit-limit") ?? headers.get("x-ratelimit-limit")).toContain("100");
  });

  it("are refused while the server has little memory left", () => {
    const jobs = new SimulationJobs({ node: "n", nowMs: Date.now, findRoomBytes: () => 200 * 1024 ** 2 });
    expect(() => jobs.demandRoom("ann", "ann")).toThrow(/256 MiB of memory left/);
  });
});
