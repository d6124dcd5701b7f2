import { path, type SettingEntry, text, textOr, whole } from "./setting-entry.ts";
import { right, type SettingReading } from "./setting-readers.ts";

/** Commas separate sinks, and stand inside addresses of several servers too: a new sink begins with its scheme. */
const betweenSinks = /\s*,\s*(?=[a-z][a-z+]*:\/\/|file:|(?:redis|kafka):(?:$|[,?\s]))/;

/** Usage events: where they go, and what is kept of them meanwhile. */
export class UsageEventSettings {
  /** Empty: none are sent. */
  readonly usageEvents: SettingEntry<readonly string[]> = {
    flag: "--usage-events",
    env: "SLUICE_USAGE_EVENTS",
    value: "<urls>",
    help:
      "where to send usage events: http(s)://…, redis(s)://…, redis: (the counters' servers), kafka: (the brokers of --kafka) or file:PATH; " +
      "several are separated by commas",
    fallback: [],
    fallbackText: "none",
    read: readSinks,
  };
  readonly usageEventsToken: SettingEntry<string | undefined> = {
    ...text(undefined, "SLUICE_USAGE_EVENTS_TOKEN", "bearer token for usage events sent over HTTP", {
      value: "<token>",
    }),
    // A wrong one is not repeated.
    read: (given) =>
      isToken(given) ? right(given) : { kind: "wrong", message: "should be printable characters without spaces" },
  };
  readonly usageEventsTokenFile: SettingEntry<string | undefined> = path(
    "--usage-events-token-file",
    "SLUICE_USAGE_EVENTS_TOKEN_FILE",
    "file that holds the bearer token for usage events sent over HTTP; read again for each batch",
  );
  readonly usageEventsSubject: SettingEntry<string> = textOr(
    "tenant",
    "--usage-events-subject",
    "SLUICE_USAGE_EVENTS_SUBJECT",
    "dimension whose value is the subject of usage events: the customer",
    { value: "<dimension>", pattern: /^[\w.-]{1,128}$/, expected: "the name of a dimension" },
  );
  readonly usageEventsSource: SettingEntry<string> = textOr(
    "/sluice",
    "--usage-events-source",
    "SLUICE_USAGE_EVENTS_SOURCE",
    "source of usage events, the same on every server of a fleet",
    { value: "<uri>", pattern: /^[!-~]{1,256}$/, expected: "a URI reference of up to 256 characters" },
  );
  readonly usageEventsQueue: SettingEntry<number> = whole(
    "--usage-events-queue",
    "SLUICE_USAGE_EVENTS_QUEUE",
    "maximum number of usage events that wait for one sink, about 1 KB each; more are dropped",
    { from: 1_000, to: 10_000_000, fallback: 100_000 },
  );
  readonly usageEventsSpill: SettingEntry<string | undefined> = path(
    "--usage-events-spill",
    "SLUICE_USAGE_EVENTS_SPILL",
    "file that keeps the usage events of policies with events: each until every sink has them, across a crash",
  );
  readonly usageEventsSpillBytes: SettingEntry<number> = whole(
    "--usage-events-spill-bytes",
    "SLUICE_USAGE_EVENTS_SPILL_BYTES",
    "maximum size of that file, in bytes",
    { from: 1024 * 1024, to: 1024 ** 4, fallback: 256 * 1024 * 1024 },
  );
}

/** What an HTTP header may carry. */
export function isToken(given: string): boolean {
  return /^[!-~]{1,4096}$/.test(given);
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
