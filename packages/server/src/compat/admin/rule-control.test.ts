import { readShape } from "sluice";
import { afterEach, beforeEach, expect, it } from "vitest";
import { actorOfRole, type StartedAdmin, startAdmin } from "../../control-plane/admin-api/testing/start-admin.ts";
import type { PolicyControl } from "../../control-plane/control-plane.ts";
import { createRule, deleteRule, replaceRule } from "./rule-control.ts";
import type { WrittenRule } from "./rule-words.ts";
import { scopeWords } from "./scope-words.ts";

const actor = actorOfRole("admin");
let admin: StartedAdmin;

beforeEach(async () => {
  admin = await startAdmin();
});

afterEach(async () => {
  await admin.close();
});

function written(more: object = {}): WrittenRule {
  const read = readShape(scopeWords.created, {
    rule_id: "r",
    scope: "user",
    max_requests: 1,
    window_seconds: 1,
    ...more,
  });
  if (!read.ok) throw new Error(JSON.stringify(read.problems));
  return read.value;
}

/** Policies that somebody else changes right after they were read. */
function changedMeanwhile(policies: PolicyControl): PolicyControl {
  return {
    ...policies,
    async get(who, id) {
      const stored = await policies.get(who, id);
      const limits = [{ ...(stored.document.limits as object[])[0], tiers: { gold: { windows: ["9/s"] } } }];
      await policies.put(who, id, { ...stored.document, limits }, { expected: stored.version });
      return stored;
    },
  };
}

it("loses nothing that was changed between reading and writing, even if the caller guesses its version", async () => {
  const { policies } = admin.control;
  await createRule(policies, actor, written(), scopeWords, {});
  const racing = changedMeanwhile(policies);
  const conflict = { code: "version_conflict" };
  const wanted = written({ max_requests: 5 });
  await expect(replaceRule(racing, actor, "r", wanted, scopeWords, { expected: 2 })).rejects.toMatchObject(conflict);
  const { document, version } = await policies.get(actor, "r");
  expect(version).toBe(2);
  expect(document).toMatchObject({ limits: [{ tiers: { gold: { windows: ["9/s"] } } }] });
});

it("makes one of two rules that are made at once for the same", async () => {
  const { policies } = admin.control;
  const make = (id: string): Promise<unknown> =>
    createRule(policies, actor, written({ rule_id: id, api: "/x" }), scopeWords, {});
  const made = await Promise.allSettled([make("one"), make("two")]);
  expect(made.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  const refused = made.find((one) => one.status === "rejected");
  expect(refused?.reason).toMatchObject({ code: "already_exists", message: expect.stringMatching(/one|two/) });
});

it("deletes the policy with its last rule, and may make it again", async () => {
  const { policies } = admin.control;
  await createRule(policies, actor, written(), scopeWords, {});
  await deleteRule(policies, actor, "r", { expected: 1 });
  await expect(policies.get(actor, "r")).rejects.toMatchObject({ code: "resource_not_found" });
  await expect(createRule(policies, actor, written(), scopeWords, {})).resolves.toMatchObject({ dryRun: false });
});
