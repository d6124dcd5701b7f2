export {
  defaultStrongDeadlineMs,
  SqlCounters,
  type SqlCountersOptions,
  type SqlCountersStats,
} from "./sql-counters.ts";
export { withStrongCounters } from "./with-strong-counters.ts";
