import { flag, type SettingEntry, textOr, whole, word } from "./setting-entry.ts";
import { readHeaders, readShare, readUrl, readWord } from "./setting-readers.ts";

export const logLevels = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof logLevels)[number];

/** `text`: lines for people on stderr, a greeting on stdout. `json`: one object per line on stdout, and nothing else. */
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

export class ObserveSettings {
  readonly logLevel: SettingEntry<LogLevel> = {
    flag: "--log-level",
    env: "SLUICE_LOG_LEVEL",
    value: "<level>",
    help: logLevels.join(", "),
    fallback: "info",
    read: (given) => readWord(given, logLevels),
  };
  readonly logFormat: SettingEntry<LogFormat> = {
    ...word(
      "--log-format",
      "SLUICE_LOG_FORMAT",
      "text (for people, on stderr) or json (one object per line, on stdout)",
      logFormats,
      "text",
    ),
    value: "<format>",
  };
  readonly logSample: SettingEntry<number> = {
    flag: "--log-sample",
    env: "SLUICE_LOG_SAMPLE",
    value: "<share>",
    help: "share of decisions to log at level debug, from 0 to 1",
    fallback: 1,
    read: readShare,
  };
  readonly logHashSubjects: SettingEntry<boolean> = flag(
    "--log-hash-subjects",
    "SLUICE_LOG_HASH_SUBJECTS",
    "log subjects as hashes only",
  );
  readonly hotKeyMetrics: SettingEntry<number> = whole(
    "--hot-key-metrics",
    "SLUICE_HOT_KEY_METRICS",
    "number of hot keys to export as metrics, with their subjects as labels",
    { from: 0, to: 50, fallback: 0 },
  );
  /** Undefined: there are no traces. */
  readonly otlpEndpoint: SettingEntry<string | undefined> = {
    flag: "--otlp-endpoint",
    env: "OTEL_EXPORTER_OTLP_ENDPOINT",
    value: "<url>",
    help: "collector to send traces to, by OTLP over HTTP (default: no traces)",
    fallback: undefined,
    read: readUrl,
  };
  /** Names in lower case. */
  readonly otlpHeaders: SettingEntry<Readonly<Record<string, string>>> = {
    flag: undefined,
    env: "OTEL_EXPORTER_OTLP_HEADERS",
    value: "<header=value,…>",
    help: "headers to send with traces, such as the collector's key; values percent-encoded",
    fallback: {},
    fallbackText: "none",
    read: readHeaders,
  };
  readonly otlpServiceName: SettingEntry<string> = textOr(
    "sluice",
    undefined,
    "OTEL_SERVICE_NAME",
    "service name in traces",
    { value: "<name>", pattern: /^[^\p{Cc}]{1,255}$/u, expected: "a name of 1 to 255 characters" },
  );
}
