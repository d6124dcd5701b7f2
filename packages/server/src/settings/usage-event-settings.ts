import type { SettingEntry } from "./setting-entry.ts";
import { right, type SettingReading } from "./setting-readers.ts";

/** Commas separate sinks, and stand inside addresses of several servers too: a new sink begins with its scheme. */
const betweenSinks = /\s*,\s*(?=[a-z][a-z+]*:\/\/|file:|redis:(?:$|[,?\s]))/;

/** Usage events: where they go, and what is kept of them meanwhile. */
export class UsageEventSettings {
  /** Empty: none are sent. */
  readonly usageEvents: SettingEntry<readonly string[]> = {
    flag: "--usage-events",
    env: "SLUICE_USAGE_EVENTS",
    value: "<urls>",
    help:
      "where to send usage events: http(s)://…, redis(s)://…, redis: (the counters' servers) or file:PATH; " +
      "several are separated by commas",
    fallback: [],
    fallbackText: "none",
    read: readSinks,
  };
}

/** Addresses may contain passwords, and are not repeated. */
function readSinks(given: string): SettingReading<readonly string[]> {
  const sinks = given.split(betweenSinks).map((sink) => sink.trim());
  if (sinks.every((sink) => /^[a-z][a-z+]*:/.test(sink))) return right(sinks);
  return {
    kind: "wrong",
    message: "should be URLs separated by commas, such as https://collector.example/events,redis:,file:usage.jsonl",
  };
}
