export {
  defaultStrongDeadlineMs,
  SqlCounters,
  type SqlCountersOptions,
  type SqlCountersStats,
} from "./sql-counters.ts";
