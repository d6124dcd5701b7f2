import { type AuditRecord, type NodeRecord, PolicyStoreUnavailable, type TokenRecord } from "@sluice/sql";
import { type HotKeys, type Limiter, SluiceError } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import type { RunningAccess } from "../../data-plane/access/create-access.ts";
import { type Role, roles } from "../../data-plane/access/roles.ts";
import { countPolicies } from "../../data-plane/policy-files/count-policies.ts";
import type { StoreReport } from "../../data-plane/status/store-report.ts";
import { encodeReport, reportHotKeys } from "../../observe/hot-keys/hot-key-report.ts";
import type { OwnHotKeys } from "../../observe/hot-keys/own-hot-keys.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { renderPolicyProblem } from "../../observe/telemetry/render-policy-problem.ts";
import { StoreFigures } from "../../observe/telemetry/store-families.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import { readSettingFile } from "../../settings/read-setting-file.ts";
import type { Settings } from "../../settings/settings.ts";
import { version } from "../../version.ts";
import { sluiceItself } from "../audit/audit-entry.ts";
import type { ControlPlane } from "../control-plane.ts";
import { renderOverridden } from "../documents/merge-policies.ts";
import { defaultPolicyId } from "../documents/read-documents.ts";
import { createJobs, type Jobs } from "../jobs/run-jobs.ts";
import type { RolloutTime } from "../rollouts/rollout-time.ts";
import { hotKeysDetail } from "../use-cases/control-nodes.ts";
import { ensureFirstToken, isUsableAdmin } from "../use-cases/control-tokens.ts";
import { createControlPlane } from "../use-cases/create-control-plane.ts";
import { readAuditedReset, resetCounters } from "../use-cases/reset-counters.ts";
import { finishWithin } from "./finish-within.ts";
import { prepareTokenFile } from "./first-token-file.ts";
import { createFollower } from "./follower.ts";
import { createNodeReports } from "./node-reports.ts";
import { openPush } from "./open-push.ts";
import type { OpenedStore } from "./open-store.ts";
import type { PoliciesInForce } from "./policies-in-force.ts";
import type { PolicyKeeper } from "./policy-keeper.ts";
import { createTokenUses } from "./token-uses.ts";

/** A server as a node of its policy store. */
export interface StoreNode {
  /** Undefined where the admin port is off. */
  readonly control: ControlPlane | undefined;
  /** The first admin token, where this start made it: it is shown once. */
  readonly firstToken: FirstToken | undefined;
  readonly figures: StoreFigures;
  report(): StoreReport;
  /** The same access, with tokens of the store, whose uses are written down. */
  watch<A extends RunningAccess>(access: A): A;
  /** Takes up what the store has, before anybody is listened to, and follows it from then on. */
  start(access: RunningAccess): Promise<void>;
  /** Looks at the store now. */
  look(): Promise<void>;
  /** The store itself stays open. */
  close(): Promise<void>;
}

export interface FirstToken {
  readonly token: string;
  /** Where it was written to. */
  readonly file: string;
}

export interface JoinStoreOptions {
  readonly opened: OpenedStore;
  readonly settings: Settings;
  readonly runtime: RateLimitsRuntime | undefined;
  readonly limiter: Limiter;
  readonly policies: PoliciesInForce;
  readonly keeper: Pick<PolicyKeeper, "keepStored">;
  /** What this process tells of hot keys every few seconds, and what it and its fellow workers tell when asked. */
  readonly hotKeys: Pick<HotKeys, "top" | "totals">;
  readonly ownHotKeys: OwnHotKeys;
  readonly log: Logger;
  readonly startedMs: number;
  /** Which of several processes behind the same ports this is. */
  readonly worker: number | undefined;
  readonly lookEveryMs?: number | undefined;
  readonly rolloutTime?: RolloutTime | undefined;
}

/** Puts together what makes a server a node: what it follows, hears of, tells, and steers the others by. Nothing runs yet. */
export async function joinStore(options: JoinStoreOptions): Promise<StoreNode> {
  const { opened, settings, runtime, limiter, policies, keeper, log, startedMs, worker, rolloutTime } = options;
  const { hotKeys, ownHotKeys } = options;
  const { store, kept, reached } = opened;
  const { id, name } = opened.node;
  const { precedence, adminPort } = settings;
  const push = await openPush({ settings, runtime, store, log });
  const uses = createTokenUses();
  const figures = new StoreFigures(() => {
    const { state, newest, generation, problems } = follower.status;
    return {
      ...{ state, newest, generation, problems: problems.length, overridden: policies.overridden.length },
      pushed: push.connected,
      killSwitch: limiter.forced?.mode,
    };
  });
  let access: RunningAccess | undefined;
  let reports: ReturnType<typeof createNodeReports> | undefined;
  let jobs: Jobs | undefined;
  let firstToken: FirstToken | undefined;

  const follower = createFollower({
    store,
    limiter,
    policies,
    figures,
    log,
    graceMs: settings.storeGraceMs,
    lookEveryMs: options.lookEveryMs,
    useTokens: (tokens) => access?.useTokens(knownTokens(tokens)),
    onResets: (resets) => void forgetResets(resets),
    onTaken(stored, source): void {
      reports?.report();
      // Of several processes one is enough to keep what all of them use.
      if (source === "store" && (worker ?? 1) === 1) void keeper.keepStored({ ...stored, store: store.where });
    },
  });

  /** What other nodes have reset: what is on a server is done, what this process holds is left. */
  async function forgetResets(resets: readonly AuditRecord[]): Promise<void> {
    for (const record of resets) {
      const reset = readAuditedReset(record);
      if (reset === undefined || reset.node === id) continue;
      await resetCounters(limiter, reset.wish, { reach: "process" }).catch((error: unknown) =>
        log.warn({ err: error, audit: record.id }, "a reset that another node made cannot be carried out here"),
      );
    }
  }

  function announce(generation: number): void {
    follower.heard(generation);
    push.announce(generation);
  }

  const control = createControlPlane({
    store,
    node: id,
    limiter,
    log,
    announce,
    files: () => policies.files,
    precedence,
    ipv6PrefixBits: settings.ipv6PrefixBits,
    hotKeys: ownHotKeys,
    nowMs: rolloutTime?.nowMs,
  });

  function readNode(seenMs: number): NodeRecord {
    const { generation, takenUpMs, state, source } = follower.status;
    const details = {
      pid: process.pid,
      ...(worker === undefined ? undefined : { worker }),
      ...{ state, source, push: push.kind, push_connected: push.connected, kill_switch: limiter.forced?.mode },
      ...{ policies: countPolicies(limiter.snapshot.policySet), overridden: policies.overridden.length },
      [hotKeysDetail]: encodeReport(reportHotKeys(hotKeys, reportedHotKeys)),
    };
    return {
      ...{ id, name, version, startedMs, seenMs, generation, appliedMs: takenUpMs },
      details: JSON.stringify(details),
    };
  }

  async function makeFirstToken(): Promise<FirstToken | undefined> {
    const nowMs = Date.now();
    if ((await store.read((view) => view.tokens())).some((token) => isUsableAdmin(token, nowMs))) return undefined;
    const file = await prepareTokenFile(settings);
    const made = await ensureFirstToken(store).catch(async (error: unknown) => {
      await file.discard();
      throw error;
    });
    if (made === undefined) {
      await file.discard();
      return undefined;
    }
    await file.keep(made.token);
    log.warn(
      { name: made.name, file: file.path },
      "the first admin token was made; it is in this file, which only its owner can read",
    );
    return { token: made.token, file: file.path };
  }

  /** A store that went away meanwhile is no reason not to start where something was kept of it. */
  async function prepareStore(): Promise<void> {
    try {
      await seedStore(control, settings, store, log);
      if (adminPort !== undefined) firstToken = await makeFirstToken();
    } catch (error) {
      if (kept === undefined || !isAway(error)) throw error;
    }
  }

  return {
    control: adminPort === undefined ? undefined : control,
    figures,
    get firstToken(): FirstToken | undefined {
      return firstToken;
    },
    report(): StoreReport {
      const { killSwitch, takenUpMs, ...status } = follower.status;
      const { forced } = limiter;
      return {
        ...status,
        kind: store.kind,
        at: store.where,
        takenUpAtMs: takenUpMs,
        push: { kind: push.kind, connected: push.connected },
        killSwitch: forced && { ...forced, reason: killSwitch?.reason ?? "", author: killSwitch?.author ?? "" },
        overridden: policies.overridden.map(renderOverridden),
        precedence,
        node: { id, name },
      };
    },
    watch: (given) => uses.watch(given),
    async start(given): Promise<void> {
      access = given;
      try {
        if (reached) await prepareStore();
        await follower.start(kept);
      } catch (error) {
        if (!isAway(error)) throw error;
        throw new SettingError(["store"], `${(error as Error).message}; it was there a moment ago, so start again`);
      }
      push.listen((generation) => follower.heard(generation));
      reports = createNodeReports({ store, id, read: readNode, also: (note) => uses.write(note), log });
      jobs = createJobs({
        ...{ store, node: id, log, announce, auditKeptMs: settings.auditRetentionMs },
        ...{ nowMs: rolloutTime?.nowMs, everyMs: rolloutTime?.everyMs },
      });
    },
    look: () => follower.look(),
    async close(): Promise<void> {
      push.close();
      await follower.close();
      await Promise.all([finishWithin(Promise.all([control.close(), jobs?.close()]), log), reports?.close()]);
    },
  };
}

/** How many hot keys a node writes down, by rate and by denials each: a few kilobytes every few seconds. */
const reportedHotKeys = 20;

function isAway(error: unknown): boolean {
  if (error instanceof SluiceError) return error.code === "policy_store_unavailable";
  return error instanceof PolicyStoreUnavailable;
}

/** Tokens that may be used; whether they have expired is asked when they are. */
function knownTokens(tokens: readonly TokenRecord[]): Parameters<RunningAccess["useTokens"]>[0] {
  return tokens.flatMap(({ id, name, role, team, sha256, expiresMs, revokedMs }) =>
    revokedMs === undefined && isRole(role) ? [{ id, name, role, team, sha256, expiresMs }] : [],
  );
}

function isRole(word: string): word is Role {
  return (roles as readonly string[]).includes(word);
}

/** Has a store that nothing was ever written to begin with a file. Of several nodes that start at once one does it. */
async function seedStore(
  control: ControlPlane,
  settings: Settings,
  store: Pick<OpenedStore["store"], "readPulse" | "where">,
  log: Logger,
): Promise<void> {
  if (settings.seed === undefined || (await store.readPulse()).generation > 0) return;
  const text = (await readSettingFile("seed", settings)) ?? "";
  try {
    const { value } = await control.configuration.import(sluiceItself, text, {
      mode: "merge",
      expected: 0,
      why: "the first start",
    });
    log.info(
      // Counted as everywhere: without the one for what matches nothing.
      {
        store: store.where,
        path: settings.seed,
        policies: value.created.filter((id) => id !== defaultPolicyId).length,
      },
      "the policy store was seeded",
    );
  } catch (error) {
    if (error instanceof SluiceError && error.code === "version_conflict") return;
    if (isAway(error)) throw error;
    const file = settings.seed;
    const problems = error instanceof SluiceError ? error.problems : [];
    const list = problems.map((problem) => {
      const place = problem.place && { ...problem.place, file };
      return `\n  ${renderPolicyProblem({ ...problem, ...(place && { place }) })}`;
    });
    const why = list.length > 0 ? list.join("") : ` ${error instanceof Error ? error.message : error}`;
    throw new SettingError(["seed"], `${file} cannot be used:${why}`);
  }
}
