import type {
  AuditEntryBody,
  ChangeBody,
  HotKeysBody,
  ImportChangeBody,
  JsonObject,
  KeptSubjectBody,
  KillSwitchBody,
  KillSwitchChangeBody,
  NewTokenBody,
  NodesBody,
  PageBody,
  PolicyBody,
  PolicyChangeBody,
  PolicyDiffBody,
  RolloutBody,
  RolloutChangeBody,
  RolloutRequestBody,
  SubjectBody,
  SubjectChangeBody,
  SubjectLimitBody,
  SubjectResetBody,
  TokenBody,
  TokenChangeBody,
  TokenListBody,
  VersionBody,
} from "@sluice/protocol/admin";
import type { AdminClient } from "./admin-client.ts";
import type { Subject } from "./parse-subject.ts";

export interface ChangeWish {
  readonly dryRun?: boolean | undefined;
  readonly why?: string | undefined;
}

export interface ExpectingWish extends ChangeWish {
  readonly expected?: number | undefined;
}

export interface AuditFilter {
  readonly kind?: string | undefined;
  readonly target?: string | undefined;
  readonly actor?: string | undefined;
  readonly action?: string | undefined;
  readonly outcome?: string | undefined;
  readonly sinceMs?: number | undefined;
  readonly untilMs?: number | undefined;
}

const root = "api/v1";
const pageSize = 500;

/** The control plane's REST API, as commands use it. */
export class AdminApi {
  readonly #client: AdminClient;

  constructor(client: AdminClient) {
    this.#client = client;
  }

  get where(): string {
    return this.#client.where;
  }

  policies(owner?: string): Promise<readonly PolicyBody[]> {
    return this.#all(`${root}/policies`, { owner });
  }

  policy(id: string): Promise<PolicyBody> {
    return this.#client.ask("GET", `${root}/policies/${part(id)}`);
  }

  putPolicy(
    id: string,
    document: JsonObject,
    { dryRun, why, expected, rollout }: ExpectingWish & { readonly rollout?: RolloutRequestBody | undefined },
  ): Promise<PolicyChangeBody> {
    return this.#client.ask("PUT", `${root}/policies/${part(id)}`, {
      query: { dry_run: dryRun, why },
      body: { document, rollout },
      expected,
    });
  }

  deletePolicy(id: string, { dryRun, why, expected }: ExpectingWish): Promise<ChangeBody> {
    return this.#client.ask("DELETE", `${root}/policies/${part(id)}`, { query: { dry_run: dryRun, why }, expected });
  }

  versions(id: string, most: number): Promise<readonly VersionBody[]> {
    return this.#all(`${root}/policies/${part(id)}/versions`, {}, most);
  }

  version(id: string, version: number): Promise<VersionBody> {
    return this.#client.ask("GET", `${root}/policies/${part(id)}/versions/${version}`);
  }

  diff(id: string, from: number | undefined, to: number | undefined): Promise<PolicyDiffBody> {
    return this.#client.ask("GET", `${root}/policies/${part(id)}/diff`, { query: { from, to } });
  }

  revert(
    id: string,
    version: number,
    { dryRun, why, expected, rollout }: ExpectingWish & { readonly rollout?: RolloutRequestBody | undefined },
  ): Promise<PolicyChangeBody> {
    return this.#client.ask("POST", `${root}/policies/${part(id)}/revert`, {
      query: { dry_run: dryRun, why },
      body: { version, rollout },
      expected,
    });
  }

  rollouts(
    filter: { readonly policy?: string | undefined; readonly state?: string | undefined },
    most: number,
  ): Promise<readonly RolloutBody[]> {
    return this.#all(`${root}/rollouts`, filter, most);
  }

  rollout(id: string): Promise<RolloutBody> {
    return this.#client.ask("GET", `${root}/rollouts/${part(id)}`);
  }

  steerRollout(
    id: string,
    verb: string,
    { dryRun, why, expectedStep }: ChangeWish & { readonly expectedStep?: number | undefined },
  ): Promise<RolloutChangeBody> {
    return this.#client.ask("POST", `${root}/rollouts/${part(id)}/${verb}`, {
      query: { dry_run: dryRun, why },
      body: { expected_step: expectedStep },
    });
  }

  subject(subject: Subject): Promise<SubjectBody> {
    return this.#client.ask("GET", pathOf(subject));
  }

  subjects(dimension: string): Promise<readonly KeptSubjectBody[]> {
    return this.#all(`${root}/subjects/${part(dimension)}`, {});
  }

  setTier(subject: Subject, tier: string, { dryRun, why, expected }: ExpectingWish): Promise<SubjectChangeBody> {
    return this.#client.ask("PUT", `${pathOf(subject)}/tier`, {
      query: { dry_run: dryRun, why },
      body: { tier },
      expected,
    });
  }

  clearTier(subject: Subject, { dryRun, why, expected }: ExpectingWish): Promise<SubjectChangeBody> {
    return this.#client.ask("DELETE", `${pathOf(subject)}/tier`, { query: { dry_run: dryRun, why }, expected });
  }

  /** With `until_ms` an override, which ends; without, a limit of its own for good. */
  setLimit(
    subject: Subject,
    limit: {
      readonly policy: string;
      readonly limit?: string | undefined;
      readonly windows: readonly string[];
      readonly until_ms?: number | undefined;
    },
    { dryRun, why, expected }: ExpectingWish,
  ): Promise<SubjectChangeBody> {
    const kind = limit.until_ms === undefined ? "limits" : "override";
    return this.#client.ask("PUT", `${pathOf(subject)}/${kind}`, {
      query: { dry_run: dryRun, why },
      body: limit,
      expected,
    });
  }

  deleteLimit(
    subject: Subject,
    { policy, limit, until_ms: untilMs }: Pick<SubjectLimitBody, "policy" | "limit" | "until_ms">,
    { dryRun, why, expected }: ExpectingWish,
  ): Promise<SubjectChangeBody> {
    const kind = untilMs === undefined ? "limits" : "override";
    return this.#client.ask("DELETE", `${pathOf(subject)}/${kind}`, {
      query: { policy, limit, dry_run: dryRun, why },
      expected,
    });
  }

  resetSubject(
    subject: Subject,
    reset: { readonly policy?: string | undefined; readonly also_by?: Readonly<Record<string, string>> | undefined },
    { dryRun, why }: ChangeWish,
  ): Promise<SubjectResetBody> {
    return this.#client.ask("POST", `${pathOf(subject)}/reset`, { query: { dry_run: dryRun, why }, body: reset });
  }

  killSwitch(): Promise<KillSwitchBody> {
    return this.#client.ask("GET", `${root}/kill-switch`);
  }

  killSwitchOn(mode: "open" | "closed", forMs: number, { dryRun, why }: ChangeWish): Promise<KillSwitchChangeBody> {
    return this.#client.ask("PUT", `${root}/kill-switch`, {
      query: { dry_run: dryRun, why },
      body: { mode, for_ms: forMs },
    });
  }

  killSwitchOff({ dryRun, why }: ChangeWish): Promise<KillSwitchChangeBody> {
    return this.#client.ask("DELETE", `${root}/kill-switch`, { query: { dry_run: dryRun, why } });
  }

  audit({ sinceMs, untilMs, ...filter }: AuditFilter, most: number): Promise<readonly AuditEntryBody[]> {
    return this.#all(`${root}/audit`, { ...filter, since_ms: sinceMs, until_ms: untilMs }, most);
  }

  async tokens(): Promise<readonly TokenBody[]> {
    const { items } = await this.#client.ask<TokenListBody>("GET", `${root}/tokens`);
    return items;
  }

  makeToken(
    wish: {
      readonly name: string;
      readonly role: string;
      readonly team?: string | undefined;
      readonly expires_ms?: number | undefined;
    },
    { dryRun, why }: ChangeWish,
  ): Promise<NewTokenBody> {
    return this.#client.ask("POST", `${root}/tokens`, { query: { dry_run: dryRun, why }, body: wish });
  }

  revokeToken(id: string, { dryRun, why }: ChangeWish): Promise<TokenChangeBody> {
    return this.#client.ask("DELETE", `${root}/tokens/${part(id)}`, { query: { dry_run: dryRun, why } });
  }

  nodes(): Promise<NodesBody> {
    return this.#client.ask("GET", `${root}/nodes`);
  }

  hotKeys(query: {
    readonly by: string;
    readonly count: number;
    readonly node?: string | undefined;
  }): Promise<HotKeysBody> {
    return this.#client.ask("GET", `${root}/hot-keys`, { query });
  }

  export(): Promise<string> {
    return this.#client.askText(`${root}/export`, "application/yaml");
  }

  /** `expected` is the generation that was seen. */
  import(
    text: string,
    { dryRun, why, expected, replace }: ExpectingWish & { readonly replace: boolean },
  ): Promise<ImportChangeBody> {
    return this.#client.ask("POST", `${root}/import`, {
      query: { dry_run: dryRun, why, mode: replace ? "replace" : "merge" },
      text: { type: "application/yaml", content: text },
      expected,
    });
  }

  /** Part by part, until there are `most`. */
  async #all<T>(
    path: string,
    query: Readonly<Record<string, string | number | undefined>>,
    most: number = Number.POSITIVE_INFINITY,
  ): Promise<readonly T[]> {
    const all: T[] = [];
    let after: string | undefined;
    do {
      const limit = Math.min(pageSize, most - all.length);
      const { items, next }: PageBody<T> = await this.#client.ask("GET", path, { query: { ...query, after, limit } });
      all.push(...items);
      after = next;
    } while (after !== undefined && all.length < most);
    return all;
  }
}

function part(text: string): string {
  return encodeURIComponent(text);
}

function pathOf({ dimension, value }: Subject): string {
  return `${root}/subjects/${part(dimension)}/${part(value)}`;
}
