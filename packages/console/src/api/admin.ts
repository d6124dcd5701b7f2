import type {
  AuditEntryBody,
  ChangeBody,
  DenialPageBody,
  HotKeysBody,
  JsonObject,
  KeptSubjectBody,
  KillSwitchBody,
  KillSwitchChangeBody,
  NodesBody,
  PageBody,
  PolicyBody,
  PolicyChangeBody,
  PolicyDiffBody,
  PolicyValidationBody,
  RolloutBody,
  RolloutRequestBody,
  UsagePeriodBody,
  VersionBody,
} from "@sluice/protocol/admin";
import { ask, part, type Question } from "./ask.ts";

/** What every change takes. */
export type ChangeOptions = Pick<Question, "expected" | "why" | "dryRun" | "signal">;

/** The most items that an answer has. */
export const pageSize = 1_000;

export interface UsageQuestion {
  readonly step: "minute" | "hour" | "day";
  readonly fromMs: number;
  readonly toMs: number;
  readonly policy?: string | undefined;
  readonly limitName?: string | undefined;
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  readonly groupBy?: readonly ("policy" | "limit" | "subject")[] | undefined;
}

export interface AuditQuestion {
  readonly kind?: string | undefined;
  readonly target?: string | undefined;
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
}

const policyPath = (id: string) => `policies/${part(id)}`;

/** The admin API, as the views use it. A view with a noun of its own adds a file like this one. */
export const admin = {
  policies: (signal?: AbortSignal) => askAll<PolicyBody>("policies", {}, { most: 20_000, signal }),
  policy: (id: string, signal?: AbortSignal) => ask<PolicyBody>("GET", policyPath(id), { signal }),
  createPolicy: (document: JsonObject, rollout: RolloutRequestBody | undefined, options: ChangeOptions) =>
    ask<PolicyChangeBody>("POST", "policies", { body: { document, rollout }, ...options }),
  putPolicy: (id: string, document: JsonObject, rollout: RolloutRequestBody | undefined, options: ChangeOptions) =>
    ask<PolicyChangeBody>("PUT", policyPath(id), { body: { document, rollout }, ...options }),
  deletePolicy: (id: string, options: ChangeOptions) => ask<ChangeBody>("DELETE", policyPath(id), options),
  validatePolicy: (yaml: string, signal?: AbortSignal) =>
    ask<PolicyValidationBody>("POST", "policies/validate", {
      text: { type: "application/yaml", content: yaml },
      signal,
    }),
  versions: (id: string, signal?: AbortSignal) =>
    askAll<VersionBody>(`${policyPath(id)}/versions`, {}, { most: 1_000, signal }),
  diff: (id: string, from: number, to: number, signal?: AbortSignal) =>
    ask<PolicyDiffBody>("GET", `${policyPath(id)}/diff`, { query: { from, to }, signal }),
  revertPolicy: (id: string, version: number, rollout: RolloutRequestBody | undefined, options: ChangeOptions) =>
    ask<PolicyChangeBody>("POST", `${policyPath(id)}/revert`, { body: { version, rollout }, ...options }),
  rollouts: (query: { readonly policy?: string; readonly state?: string }, signal?: AbortSignal) =>
    ask<PageBody<RolloutBody>>("GET", "rollouts", { query: { ...query, limit: pageSize }, signal }),
  usage: (question: UsageQuestion, signal?: AbortSignal) => {
    const { fromMs, toMs, limitName, groupBy, ...rest } = question;
    const query = { ...rest, from_ms: fromMs, to_ms: toMs, limit_name: limitName, group_by: groupBy?.join(",") };
    return askAll<UsagePeriodBody>("usage", query, { most: 200_000, signal });
  },
  denials: (query: Readonly<Record<string, string | number | undefined>>, signal?: AbortSignal) =>
    ask<DenialPageBody>("GET", "denials", { query, signal }),
  hotKeys: (by: "rate" | "denials", count: number, signal?: AbortSignal) =>
    ask<HotKeysBody>("GET", "hot-keys", { query: { by, count }, signal }),
  nodes: (signal?: AbortSignal) => ask<NodesBody>("GET", "nodes", { signal }),
  killSwitch: (signal?: AbortSignal) => ask<KillSwitchBody>("GET", "kill-switch", { signal }),
  endKillSwitch: (options: ChangeOptions) => ask<KillSwitchChangeBody>("DELETE", "kill-switch", options),
  audit: ({ limit = 100, ...query }: AuditQuestion, signal?: AbortSignal) =>
    ask<PageBody<AuditEntryBody>>("GET", "audit", { query: { ...query, limit }, signal }),
  subjects: (
    dimension: string,
    query: { readonly tier?: string; readonly limit?: number; readonly after?: string },
    signal?: AbortSignal,
  ) => ask<PageBody<KeptSubjectBody>>("GET", `subjects/${part(dimension)}`, { query, signal }),
} as const;

interface AllOptions {
  readonly most: number;
  readonly signal?: AbortSignal | undefined;
}

/** All pages of a list, up to `most` items. */
export async function askAll<Item>(
  path: string,
  query: Readonly<Record<string, string | number | undefined>>,
  { most, signal }: AllOptions,
): Promise<readonly Item[]> {
  const items: Item[] = [];
  let after: string | undefined;
  do {
    const page: PageBody<Item> = await ask("GET", path, { query: { ...query, limit: pageSize, after }, signal });
    items.push(...page.items);
    after = page.next;
  } while (after !== undefined && items.length < most);
  return items;
}
