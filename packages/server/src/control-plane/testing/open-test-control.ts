import { openPolicyStore, type PolicyStore } from "@sluice/sql";
import { createLimiter, type Limiter, ManualClock, type PolicySet } from "sluice";
import type { Caller } from "../../data-plane/access/access.ts";
import type { Actor } from "../../data-plane/access/actor.ts";
import { type Role, rolePermissions } from "../../data-plane/access/roles.ts";
import { createRecordingLog, type LoggedLine } from "../../testing/recording-log.ts";
import {
  type ControlPlaneOptions,
  createControlPlane,
  type RunningControlPlane,
} from "../use-cases/create-control-plane.ts";
import { type AssembledPolicies, assembleStored } from "./assemble-stored.ts";

/** A control plane with its own store, and a limiter that decides by the stored policies. */
export interface TestControl extends RunningControlPlane {
  readonly store: PolicyStore;
  readonly limiter: Limiter;
  readonly clock: ManualClock;
  /** Generations that were announced. */
  readonly announced: readonly number[];
  readonly logged: readonly LoggedLine[];
  /** Makes the limiter decide by the stored policies, as a node does. */
  applyStored(): Promise<AssembledPolicies>;
  /** Resolves when refusals are stored. */
  settled(): Promise<void>;
  /** Everything stored, as text, so that tests can see whether anything changed. */
  dump(): Promise<string>;
}

export async function openTestControl(
  options: Partial<ControlPlaneOptions> & { readonly url?: string; readonly filePolicies?: PolicySet } = {},
): Promise<TestControl> {
  const { url = "sqlite::memory:", filePolicies, ...others } = options;
  const store = others.store ?? (await openPolicyStore({ url }));
  const clock = new ManualClock(Date.parse("2026-06-01T00:00:00Z"));
  const limiter = createLimiter({ clock, ...(filePolicies === undefined ? undefined : { policies: filePolicies }) });
  const announced: number[] = [];
  const logged: LoggedLine[] = [];
  const nowMs = (): number => clock.epochMs();
  const control = createControlPlane({
    limiter,
    log: createRecordingLog((line) => logged.push(line)),
    nowMs,
    announce: (generation) => announced.push(generation),
    files: () => filePolicies,
    ...others,
    store,
  });
  return {
    ...control,
    store,
    limiter,
    clock,
    announced,
    logged,
    async applyStored(): Promise<AssembledPolicies> {
      const assembled = await store.read((view) => assembleStored(view, nowMs(), { files: filePolicies }));
      limiter.usePolicies(assembled.policySet);
      return assembled;
    },
    settled: () => control.close(),
    dump: () => dumpStore(store),
    async close(): Promise<void> {
      await control.close();
      await limiter.close();
      if (others.store === undefined) await store.close();
    },
  };
}

/** Everything stored, except for audited refusals. */
export async function dumpStore(store: PolicyStore): Promise<string> {
  return store.read(async (view) => {
    const policies = await view.policies();
    const rollouts = await view.rollouts();
    const audit = (await view.audit()).filter(({ outcome }) => outcome === "done");
    const versions = [];
    for (const id of new Set([...policies.map(({ id }) => id), ...audit.map(({ target }) => target)]))
      versions.push(await view.policy(id), await view.versions(id));
    return JSON.stringify(
      [
        await view.pulse(),
        policies,
        versions,
        rollouts,
        await view.subjects(),
        await view.subjectLimits(),
        await view.disabled(),
        await view.blocks(),
        await view.tokens(),
        audit,
      ],
      undefined,
      1,
    );
  });
}

/** An actor with a role, and as an editor with a team. */
export function createActor(role: Role, team?: string): Actor {
  const caller: Caller = {
    name: team === undefined ? role : `${role}-${team}`,
    may: new Set(rolePermissions[role]),
    role,
    team,
  };
  return { caller, from: "192.0.2.7" };
}

export const admin: Actor = createActor("admin");

/** The error with which a call is refused; fails if it is not. */
export async function catchRefusal(work: Promise<unknown>): Promise<Record<string, unknown> & Error> {
  try {
    await work;
  } catch (error) {
    return error as Record<string, unknown> & Error;
  }
  throw new Error("it was not refused");
}

/** A policy's document, by default with one limit by user. */
export function document(
  windows: string,
  more: Readonly<Record<string, unknown>> = {},
): Readonly<Record<string, unknown>> {
  return { on_failure: "open", limits: [{ by: ["user"], windows: [windows] }], ...more };
}
