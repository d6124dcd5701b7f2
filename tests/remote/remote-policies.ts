import { createHash } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";

/** Files for servers under test, in a folder that is removed on close. */
export interface TestFiles {
  /** Policies: `api` counts users, `window` one of each kind, `twice` two limits, `shadow` in shadow mode. */
  readonly policies: string;
  /** Tokens: `check-token` may check, `operator-token` may also reset. */
  readonly tokens: string;
  readonly folder: string;
  close(): Promise<void>;
}

export const apiLimit = 1_000_000;

export const policySet = {
  policies: [
    { id: "api", match: { kind: "api" }, limits: [{ by: ["user"], windows: [`${apiLimit}/h`] }], on_failure: "open" },
    // Does not refill, so its usage is all charges.
    {
      id: "total",
      match: { kind: "api" },
      limits: [{ by: ["user"], windows: [`${apiLimit} once`] }],
      on_failure: "open",
    },
    { id: "small", match: { kind: "small" }, limits: [{ by: ["user"], windows: ["5/h"] }], on_failure: "open" },
    {
      id: "day",
      match: { kind: "day" },
      limits: [{ by: ["user"], algorithm: "fixed_window", windows: ["9/day in Europe/Berlin"] }],
      on_failure: "open",
    },
    { id: "once", match: { kind: "once" }, limits: [{ by: ["user"], windows: ["3 once"] }], on_failure: "open" },
    {
      id: "leaky",
      match: { kind: "leaky" },
      limits: [{ by: ["user"], algorithm: "leaky_bucket", windows: ["1/h burst 5"] }],
      on_failure: "open",
    },
    {
      id: "twice",
      match: { kind: "twice" },
      limits: [
        { name: "slow", by: ["user"], windows: [{ limit: 4, per: "1h", name: "hourly" }] },
        { by: ["user", "kind"], windows: ["100/h"] },
      ],
      on_failure: "open",
    },
    {
      id: "trial",
      match: { kind: "twice" },
      mode: "shadow",
      limits: [{ by: ["user"], windows: ["1/h"] }],
      on_failure: "open",
    },
    { id: "bill", domain: "billing", limits: [{ by: ["user"], windows: ["5/h"] }], on_failure: "open" },
    { id: "no", match: { kind: "no" }, deny: { user: ["mallory"] }, limits: [], on_failure: "open" },
  ],
};

export async function createTestFiles(): Promise<TestFiles> {
  const folder = await mkdtemp(path.join(tmpdir(), "sluice-remote-"));
  const policies = path.join(folder, "policies.json");
  const tokens = path.join(folder, "tokens.json");
  const entry = (token: string, role: string): object => ({
    name: role,
    role,
    sha256: createHash("sha256").update(token).digest("hex"),
  });
  await writeFile(policies, JSON.stringify(policySet));
  const list = [entry("check-token", "check"), entry("operator-token", "operator")];
  await writeFile(tokens, JSON.stringify({ tokens: list }), { mode: 0o600 });
  return { policies, tokens, folder, close: () => rm(folder, { recursive: true, force: true }) };
}
