import type { Logger } from "../../observe/telemetry/logger.ts";

/** A logger whose every line has these fields. */
export function withFields(log: Logger, fields: Readonly<Record<string, unknown>>): Logger {
  const { trace } = log;
  return {
    ...(trace === undefined ? undefined : { trace: (more, message) => trace({ ...fields, ...more }, message) }),
    debug: (more, message) => log.debug({ ...fields, ...more }, message),
    info: (more, message) => log.info({ ...fields, ...more }, message),
    warn: (more, message) => log.warn({ ...fields, ...more }, message),
    error: (more, message) => log.error({ ...fields, ...more }, message),
  };
}
