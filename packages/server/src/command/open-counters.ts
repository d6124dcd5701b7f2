import { type RedisCounters, renderServers } from "@sluice/redis";
import type { PolicySet } from "sluice";
import { createRedisCounters } from "../data-plane/counters/open-redis-counters.ts";
import { planCounters } from "../data-plane/counters/plan-counters.ts";
import { loadPolicies } from "../data-plane/policy-files/policy-files.ts";
import { parseSettings, renderSettingProblems, SettingError } from "../settings/parse-settings.ts";
import { CommandFailure } from "./command-failure.ts";
import { demandSettings, type Environment, settingEntries } from "./serve-command.ts";

/** Counters on servers, for a command that decides in its own process. */
export interface OpenedCounters {
  /** Undefined: no servers are named. */
  readonly counters: RedisCounters | undefined;
  /** The servers, without passwords. */
  readonly where: string;
  /** What is legal, and hardly meant. Empty: nothing. */
  readonly warnings: string;
}

const reachWithinMs = 5_000;
/** Someone who asks by hand waits longer than a request does. */
const patienceMs = 1_000;

/** Connects to the servers that the environment names, or `redis` does. Throws a `CommandFailure` if they cannot be reached. */
export async function openCounters(env: Environment, redis: string | undefined): Promise<OpenedCounters> {
  const { settings, warnings } = demandSettings(parseSettings(counterVariables(env), { redis }));
  const opened = { warnings: renderSettingProblems(warnings) };
  const plan = planCounters(settings);
  if (plan.kind === "memory") return { ...opened, counters: undefined, where: "" };
  let last = "";
  const remember = (_event: string, { reason }: Readonly<Record<string, unknown>> = {}): void => {
    last = reason === undefined ? last : ` (${reason})`;
  };
  const log = { debug() {}, info() {}, warn: remember, error: remember };
  const patient = { ...plan, deadlineMs: Math.max(plan.deadlineMs, patienceMs) };
  const counters = await createRedisCounters(patient, settings, log).catch((error: unknown) => {
    throw error instanceof SettingError ? new CommandFailure(error.message) : error;
  });
  const where = renderServers(plan.servers);
  try {
    await counters.connected(reachWithinMs);
  } catch {
    await counters.close();
    throw new CommandFailure(`the counters at ${where} cannot be reached within ${reachWithinMs / 1000} s${last}`);
  }
  return { ...opened, counters, where };
}

/** What a policy file or folder says, as a server with these counters reads it. */
export async function loadPolicySet(path: string): Promise<PolicySet> {
  return (await loadPolicies(path)).policySet;
}

/** Settings about servers that hold counters. Other settings are for `serve`, and not read. */
function counterVariables(env: Environment): Environment {
  const names = settingEntries().filter(([name]) => name.startsWith("redis") || name === "deadlineMs");
  return Object.fromEntries(names.map(([, entry]) => [entry.env, env[entry.env]]));
}
