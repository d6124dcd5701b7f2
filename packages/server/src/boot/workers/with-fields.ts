import type { Logger } from "../../observe/telemetry/logger.ts";

/** A logger that adds these fields to every line. */
export function withFields(log: Logger, fields: Readonly<Record<string, unknown>>): Logger {
  const { trace } = log;
  return {
    ...(trace === undefined ? undefined : { trace: (event, more) => trace(event, { ...fields, ...more }) }),
    debug: (event, more) => log.debug(event, { ...fields, ...more }),
    info: (event, more) => log.info(event, { ...fields, ...more }),
    warn: (event, more) => log.warn(event, { ...fields, ...more }),
    error: (event, more) => log.error(event, { ...fields, ...more }),
  };
}
