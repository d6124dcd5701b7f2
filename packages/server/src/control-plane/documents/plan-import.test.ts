import { SluiceError } from "sluice";
import { describe, expect, it } from "vitest";
import { type PlanRequest, planImport, type StoredConfiguration } from "./plan-import.ts";
import type { StoredSubject } from "./plan-subject.ts";

const stored: StoredConfiguration = {
  policies: [
    {
      id: "login",
      version: 3,
      document: JSON.stringify({ id: "login", owner: "identity", limits: [{ by: ["ip"], windows: ["5/m"] }] }),
    },
    { id: "old", version: 1, document: JSON.stringify({ id: "old", unlimited: true }) },
    { id: "same", version: 2, document: JSON.stringify({ id: "same", unlimited: true, mode: "shadow" }) },
  ],
  rollouts: [{ id: "r1", policy: "old", toVersion: 2, percent: 10 }],
  subjects: new Map<string, StoredSubject>([
    ["user:u1", { dimension: "user", value: "u1", limits: [], own: { tier: "gold", limits: [] } }],
    ["user:gone", { dimension: "user", value: "gone", limits: [], own: { tier: undefined, limits: [] } }],
  ]),
};

const wanted = {
  policies: [
    { id: "same", mode: "shadow", unlimited: true },
    { id: "login", limits: [{ by: ["ip"], windows: ["3/m"] }] },
    { id: "fresh", unlimited: true },
  ],
};

function plan(document: unknown, request: Partial<PlanRequest> = {}) {
  const body = typeof document === "string" ? document : JSON.stringify(document);
  return planImport({ body, mode: "merge", stored, nowMs: 0, ipv6PrefixBits: undefined, ...request });
}

function findProblems(document: unknown): readonly string[] {
  try {
    plan(document);
  } catch (error) {
    if (error instanceof SluiceError)
      return error.problems.map(({ place, path, message }) => {
        return `${place?.file ?? "-"}:${place?.line} ${path.join(".")} ${message}`;
      });
  }
  throw new Error("it did not fail as it should");
}

describe("the plan of an import", () => {
  it("creates, changes and keeps, and deletes only where it is to replace", () => {
    const actions = (mode: "merge" | "replace") =>
      plan(wanted, { mode }).policies.map(({ policy, action, version }) => [policy, action, version]);
    expect(actions("merge")).toEqual([
      ["fresh", "create", 0],
      ["login", "change", 3],
      ["same", "unchanged", 2],
    ]);
    expect(actions("replace")).toEqual([...actions("merge"), ["old", "delete", 1]]);
  });

  it("leaves a policy to its owner where the file names none", () => {
    const login = plan(wanted).policies.find(({ policy }) => policy === "login");
    expect(login?.document).toMatchObject({ owner: "identity" });
    expect(login?.diff?.split("\n").filter((line) => /^[-+]/.test(line))).toEqual(["-      - 5/m", "+      - 3/m"]);
  });

  it("names a rollout that is underway", () => {
    const [old] = plan({ policies: [{ id: "old", unlimited: false, limits: [{ windows: ["1/s"] }] }] }).policies;
    expect(old).toMatchObject({ action: "change", rollout: { id: "r1", toVersion: 2, percent: 10 } });
  });

  it("counts subjects, and those that are deleted only where it is to replace", () => {
    const subjects = [
      { user: "u1", tier: "gold" },
      { user: "u2", tier: "free" },
    ];
    const none = { count: 0, first: [] };
    expect(plan({ policies: [], subjects })).toMatchObject({
      subjectsInFiles: 2,
      subjects: { created: { count: 1, first: [{ dimension: "user", value: "u2" }] }, changed: none, deleted: none },
    });
    expect(plan({ policies: [], subjects: [{ user: "u1", tier: "free" }] }).subjects.changed.count).toBe(1);
    expect(plan({ policies: [] }, { mode: "replace" }).subjects.deleted).toEqual({
      count: 1,
      first: [{ dimension: "user", value: "u1" }],
    });
  });

  it("reads several files together, next to the policies that stay, and places problems in the files", () => {
    const files = [
      { file: "a.yaml", text: "policies:\n  - { id: a, unlimited: true, replaces: [same] }\n" },
      { file: "b.yaml", text: "subjects:\n  - user: u1\n    limits: [{ policy: lgoin, windows: [1/s] }]\n" },
    ];
    expect(findProblems({ files })).toEqual([
      expect.stringMatching(/^b\.yaml:3 subjects\.0\.limits\.0\.policy .*login\?/),
    ]);
    expect(plan({ files: files.slice(0, 1) }).policies).toMatchObject([{ policy: "a", action: "create" }]);
    expect(findProblems({ files: [...files.slice(0, 1), { ...files[0]!, file: "c.yaml" }] })).toEqual([
      expect.stringMatching(/^c\.yaml:2 policies\.0\.id is a, as is .*a\.yaml/),
    ]);
    expect(findProblems({ files: [{ file: "a.yaml" }] })).toEqual([expect.stringContaining("files.0 should have")]);
    expect(findProblems("policies: [{ id: default, unlimited: true }]")).toEqual([
      expect.stringContaining("under default"),
    ]);
  });

  it("translates other formats, and refuses Envoy's", () => {
    const domains = [{ domain: "shop", prefix: "user", rate: { capacity: 100, leak_rate_per_second: 10 } }];
    expect(plan({ domains }).policies).toMatchObject([
      { policy: "shop/user", action: "create", document: { limits: [{ algorithm: "leaky_bucket" }] } },
    ]);
    expect(() =>
      plan("domain: d\ndescriptors: [{ key: k, rate_limit: { unit: second, requests_per_unit: 1 } }]"),
    ).toThrow(/Envoy's format.*--config/);
  });
});
