import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { Limiter } from "sluice";
import type { RateLimitsRuntime } from "sluice/policy-text";
import { placeServers } from "../data-plane/counters/place-servers.ts";
import { planCounters } from "../data-plane/counters/plan-counters.ts";
import { readKafkaCluster } from "../kafka/kafka-cluster.ts";
import { loadKafka } from "../kafka/load-kafka.ts";
import type { Logger } from "../observe/telemetry/logger.ts";
import { openSink, workerPath } from "../observe/usage-events/open-sink.ts";
import { UsageEvents } from "../observe/usage-events/usage-events.ts";
import { UsageStream } from "../observe/usage-events/usage-stream.ts";
import { UsageTail } from "../observe/usage-events/usage-tail.ts";
import { watchEvents } from "../observe/usage-events/watch-events.ts";
import { SettingError } from "../settings/parse-settings.ts";
import { readSettingFile } from "../settings/read-setting-file.ts";
import type { Settings } from "../settings/settings.ts";
import { isToken } from "../settings/usage-event-settings.ts";

export interface OpenUsageEventsOptions {
  readonly settings: Settings;
  readonly runtime: RateLimitsRuntime | undefined;
  readonly limiter: Limiter;
  readonly log: Logger;
  readonly worker: number | undefined;
}

/** The events of a server's decisions, and where they go. */
export interface RunningUsageEvents {
  readonly events: UsageEvents;
  readonly stream: UsageStream;
  /** For watchers. The caller closes it, before connections are closed. */
  readonly tail: UsageTail;
  /** Sends what was counted, for this long at most. */
  close(withinMs: number): Promise<void>;
}

/** Opens the sinks that settings name, without connecting to them. Throws a `SettingError` if one cannot be used. */
export async function openUsageEvents(options: OpenUsageEventsOptions): Promise<RunningUsageEvents> {
  const { settings, runtime, limiter, log, worker } = options;
  const readToken = tokenReader(settings);
  // A file that cannot be read is found now, not with the first batch.
  await readToken?.();
  const counterServers = async () => {
    const plan = planCounters(settings, runtime);
    return plan.kind === "redis" ? (await placeServers(plan, settings)).servers : undefined;
  };
  const kafka = async () => ({ cluster: await readKafkaCluster(settings), kafka: await loadKafka("usageEvents") });
  const sinks = await Promise.all(
    settings.usageEvents.map((url) => openSink(url, { worker, readToken, counterServers, kafka })),
  );
  const { usageEventsSpill: spill, usageEventsSpillBytes: maxBytes } = settings;
  const stream = await UsageStream.open({
    ...{ sinks, log, maxEvents: settings.usageEventsQueue },
    spill: spill === undefined ? undefined : { path: workerPath(spill, worker), maxBytes },
  }).catch((error: NodeJS.ErrnoException) => {
    throw new SettingError(["usageEventsSpill"], `cannot be written: ${error.message}`);
  });
  const events = new UsageEvents({
    ...{ limiter, ipv6PrefixBits: settings.ipv6PrefixBits, source: settings.usageEventsSource },
    node: settings.nodeName ?? hostname(),
    boot: randomBytes(6).toString("hex"),
    subjectDimension: settings.usageEventsSubject,
    publish: (event) => stream.publish(event),
  });
  events.active = stream.isHeard;
  return {
    events,
    stream,
    tail: new UsageTail({ watch: (onEvent) => watchEvents(events, stream, onEvent) }),
    async close(withinMs): Promise<void> {
      await events.flush();
      events.active = false;
      await stream.close(withinMs);
    },
  };
}

/** Undefined if there is no token. */
function tokenReader(settings: Settings): (() => Promise<string | undefined>) | undefined {
  const { usageEventsToken: token, usageEventsTokenFile: file } = settings;
  if (file === undefined) return token === undefined ? undefined : () => Promise.resolve(token);
  return async () => {
    const text = (await readSettingFile("usageEventsTokenFile", settings))?.trim() ?? "";
    if (isToken(text)) return text;
    throw new SettingError(["usageEventsTokenFile"], `${file} should hold one token, without spaces`);
  };
}
