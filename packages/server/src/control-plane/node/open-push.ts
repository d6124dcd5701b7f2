import type { PolicyStore } from "@sluice/sql";
import type { RateLimitsRuntime } from "sluice/policy-text";
import { planCounters } from "../../data-plane/counters/plan-counters.ts";
import { withTlsFiles } from "../../data-plane/counters/read-redis-files.ts";
import type { Logger } from "../../observe/telemetry/logger.ts";
import { SettingError } from "../../settings/parse-settings.ts";
import { findPasswordFile } from "../../settings/password-files.ts";
import type { Settings } from "../../settings/settings.ts";
import type { PolicyTopic } from "../policy-topic/policy-topic.ts";
import { createKafkaPush } from "./kafka-push.ts";
import { createProcessPush } from "./process-push.ts";
import type { Push, PushKind } from "./push.ts";
import { createRedisPush } from "./redis-push.ts";

export interface OpenPushOptions {
  readonly settings: Settings;
  /** Policy files may name the counters' servers. */
  readonly runtime: RateLimitsRuntime | undefined;
  readonly store: Pick<PolicyStore, "kind" | "where">;
  /** Open if settings ask for Kafka. */
  readonly topic: PolicyTopic | undefined;
  readonly log: Logger;
}

/**
 * Opens the channel that settings name, or the one available anyway. Throws a `SettingError` if it cannot be opened.
 */
export async function openPush({ settings, runtime, store, topic, log }: OpenPushOptions): Promise<Push> {
  const plan = planCounters(settings, runtime);
  const kind = choosePush(settings.push, store.kind, plan.kind);
  switch (kind) {
    case "postgres": {
      const { createPostgresPush } = await import("./postgres-push.ts");
      return createPostgresPush(
        { url: settings.store!, readPassword: findPasswordFile("storePasswordFile", settings)?.read },
        { where: store.where, log },
      );
    }
    case "kafka":
      if (topic === undefined) throw new SettingError(["push"], "is kafka, and no topic is open");
      return createKafkaPush(topic, log);
    case "redis":
      if (plan.kind !== "redis") throw needsRedis();
      return createRedisPush(await withTlsFiles(plan.servers, settings), settings.redisPrefix, log);
    default:
      return createProcessPush(store.where, kind);
  }
}

/** A store that several nodes can share has its own channel; nodes on one file share the counters' servers. */
export function choosePush(
  wanted: Settings["push"],
  store: PolicyStore["kind"],
  counters: "memory" | "redis",
): PushKind {
  if (wanted === "auto") return store === "postgres" ? "postgres" : counters === "redis" ? "redis" : "process";
  if (wanted === "postgres" && store !== "postgres")
    throw new SettingError(["push"], "is postgres, and the policy store is not in PostgreSQL; use auto, redis or none");
  if (wanted === "redis" && counters !== "redis") throw needsRedis();
  return wanted;
}

function needsRedis(): SettingError {
  return new SettingError(
    ["push"],
    "is redis, and counters are in this process's memory; name servers with SLUICE_REDIS_URL (--redis), or use auto or none",
  );
}
