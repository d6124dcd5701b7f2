import type { Logger } from "../observe/telemetry/logger.ts";
import type { Tracing } from "../observe/telemetry/tracing.ts";
import type { Settings } from "../settings/settings.ts";
import { version } from "../version.ts";

export interface OpenTracingOptions {
  readonly settings: Settings;
  readonly log: Logger;
  /** Whether counters are in this process's memory. */
  readonly local: boolean;
  /** The number of this process if there are several behind the same ports. */
  readonly worker: number | undefined;
}

/** Undefined if traces go nowhere: then their code is not even loaded. */
export async function openTracing({ settings, ...rest }: OpenTracingOptions): Promise<Tracing | undefined> {
  const { otlpEndpoint: endpoint, otlpHeaders: headers, otlpServiceName: serviceName } = settings;
  if (endpoint === undefined) return undefined;
  const { createOtlpTracing } = await import("../observe/telemetry/otlp-tracing.ts");
  return createOtlpTracing({ endpoint, headers, serviceName, version, ...rest });
}
