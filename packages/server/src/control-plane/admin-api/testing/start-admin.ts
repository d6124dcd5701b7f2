import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openPolicyStore, type PolicyStore } from "@sluice/sql";
import { type Clock, createLimiter, HotKeys, type Limiter, MemoryCounters, SluiceError } from "sluice";
import { createLimiterWatch } from "sluice/internal";
import { adminRoutes } from "../../../boot/api-tables.ts";
import type { Access, Caller } from "../../../data-plane/access/access.ts";
import type { Actor } from "../../../data-plane/access/actor.ts";
import { limitOwnApi } from "../../../data-plane/access/limit-own-api.ts";
import { type Role, rolePermissions, roles } from "../../../data-plane/access/roles.ts";
import { createDecide } from "../../../data-plane/service/create-decide.ts";
import type { Service } from "../../../data-plane/service/service.ts";
import { createOwnHotKeys } from "../../../observe/hot-keys/own-hot-keys.ts";
import { DecisionTail } from "../../../observe/live/decision-tail.ts";
import { Recorder } from "../../../observe/recording/recorder.ts";
import type { Logger } from "../../../observe/telemetry/logger.ts";
import { createMetrics } from "../../../observe/telemetry/metrics.ts";
import { UsageTail } from "../../../observe/usage-events/usage-tail.ts";
import { createTestService, type ListeningTransport, listenForTest, silentLog } from "../../../testing/test-service.ts";
import type { ControlPlane } from "../../control-plane.ts";
import { LiveChanges } from "../../live/live-changes.ts";
import { LiveDecisions } from "../../live/live-decisions.ts";
import { LiveOverview } from "../../live/live-overview.ts";
import { LiveStreams, type LiveStreamsOptions } from "../../live/live-streams.ts";
import { assembleStored } from "../../testing/assemble-stored.ts";
import { createControlPlane } from "../../use-cases/create-control-plane.ts";
import { KeptRecordings } from "../../what-if/kept-recordings.ts";
import type { AdminRoute } from "../route.ts";
import { type ConsoleOptions, createAdminServer } from "../server.ts";

/** A control plane on a store in memory and a free port of loopback, whose limiter decides by the stored policies. */
export interface StartedAdmin extends ListeningTransport {
  readonly url: string;
  readonly store: PolicyStore;
  readonly control: ControlPlane;
  readonly limiter: Limiter;
  readonly live: LiveStreams;
  /** Its parts, for another transport on the same control plane. */
  readonly service: Service;
  /** Sends a request with the token of a role; the body as JSON, or unchanged if a header names its type. */
  ask(role: Role | "nobody", method: string, path: string, asked?: Asked): Promise<Response>;
}

export interface Asked {
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>> | undefined;
}

/** The team of the editor whose token is used. */
export const team = "shop";

/** `token of admin` and so on; `token of yesterday` has expired. */
export const tokenForRole = (role: Role): string => `token-of-${role}`;
export const expiredToken = "token-of-yesterday";

/** A caller with a role, for actions that do not go through the transport. */
export function createRoleActor(role: Role): Actor {
  return { caller: createCaller(role), from: "127.0.0.1" };
}

function createCaller(role: Role): Caller {
  return {
    name: role,
    role,
    may: new Set(rolePermissions[role]),
    tokenId: `id-of-${role}`,
    ...(role === "editor" && { team }),
  };
}

const access: Access = {
  identify(token): Caller {
    if (token === expiredToken) throw new SluiceError("unauthenticated", "this token has expired; ask for a new one");
    const role = roles.find((one) => tokenForRole(one) === token);
    if (role === undefined) throw new SluiceError("unauthenticated", "this token is not known here");
    return createCaller(role);
  },
};

export interface StartAdminOptions {
  readonly log?: Logger | undefined;
  readonly routes?: readonly AdminRoute[] | undefined;
  /** The counters for the API's own limits. */
  readonly clock?: Clock | undefined;
  readonly access?: Access | undefined;
  readonly live?: Pick<LiveStreamsOptions, "maxStreams" | "maxOfToken" | "worker"> | undefined;
  /** Absent: no page. */
  readonly console?: ConsoleOptions | undefined;
}

export async function startAdmin(options: StartAdminOptions = {}): Promise<StartedAdmin> {
  const { log = silentLog, routes = adminRoutes, clock } = options;
  const store = await openPolicyStore({ url: "sqlite::memory:" });
  const hotKeys = new HotKeys();
  const limiter = createLimiter({
    policies: { policies: [], default: "none" },
    counters: new MemoryCounters({ hotKeys }),
  });
  const folder = await mkdtemp(join(tmpdir(), "sluice-admin-"));
  const recorder = new Recorder({
    ...{ limiter, watch: createLimiterWatch(), store: limiter.counters, renderPolicies: (all: unknown) => all, log },
    ...{ version: "0", node: "node", worker: undefined, workers: undefined, ipv6PrefixBits: 64 },
  });
  const recordings = new KeptRecordings({
    ...{ recorder, folder, maxFolderBytes: 1024 ** 3, keptMs: 3_600_000, node: "node" },
    ...{ generation: () => limiter.snapshot.generation, nowMs: Date.now, log },
  });
  const ownHotKeys = createOwnHotKeys({ hotKeys, node: { id: "node-1", name: "node" }, worker: undefined });
  const control = createControlPlane({
    store,
    limiter,
    log,
    announce: () => {},
    hotKeys: ownHotKeys,
    files: () => undefined,
    precedence: "files",
    usageTail: new UsageTail({ watch: () => () => {} }),
    whatIf: { node: "node", recordings },
  });
  const tail = new DecisionTail();
  const metrics = createMetrics({ version: "0", sources: { generation: () => 1 } });
  const service = createTestService(limiter, {
    metrics,
    decide: createDecide({ limiter, metrics, tail }),
    access: options.access ?? access,
    log,
    audit: control.audit,
    hotKeys: ownHotKeys,
  });
  const node = { id: "node-1", name: "node" };
  const live = new LiveStreams({
    overview: new LiveOverview({ totals: metrics.decided, status: service.status, node }),
    decisions: new LiveDecisions({ tail, limiter, node, ipv6PrefixBits: undefined }),
    changes: new LiveChanges({ control, storeStatus: () => undefined }),
    log,
    everyMs: 20,
    ...options.live,
  });
  const transport = await createAdminServer(
    { ...service, control, live },
    {
      routes,
      ownLimits: limitOwnApi({ clock }),
      console: options.console,
    },
  );
  const listening = await listenForTest("admin", transport);
  const url = `http://${listening.address}`;
  return {
    ...listening,
    url,
    store,
    control,
    limiter,
    live,
    service,
    ask(role, method, path, { body, headers = {} } = {}): Promise<Response> {
      return fetch(url + path, {
        method,
        headers: {
          ...(role !== "nobody" && { authorization: `Bearer ${tokenForRole(role)}` }),
          ...(body !== undefined && { "content-type": "application/json" }),
          ...headers,
        },
        ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) }),
      });
    },
    async close(withinMs?: number): Promise<number> {
      live.close();
      const cut = await listening.close(withinMs);
      await control.close();
      await recorder.close();
      await rm(folder, { recursive: true, force: true });
      await store.close();
      return cut;
    },
  };
}

/** Makes the limiter decide by the stored policies, as a node does. */
export async function applyStored({ store, limiter }: Pick<StartedAdmin, "store" | "limiter">): Promise<void> {
  const { policySet } = await store.read((view) => assembleStored(view, Date.now()));
  limiter.usePolicies(policySet);
}

/** Everything stored except refusals, for comparison. */
export async function dump(store: PolicyStore): Promise<string> {
  const all = await store.read(async (view) => {
    const policies = await view.policies();
    return {
      pulse: await view.pulse(),
      policies,
      versions: await Promise.all(policies.map(({ id }) => view.versions(id))),
      rollouts: await view.rollouts(),
      subjects: await view.subjects(),
      limits: await view.subjectLimits(),
      exceptions: [await view.disabled(), await view.blocks()],
      tokens: await view.tokens(),
      audit: await view.audit({ outcome: "done" }),
    };
  });
  return JSON.stringify(all);
}
