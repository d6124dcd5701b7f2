import type { WindowBody } from "@sluice/protocol/http";
import { formatCount } from "./numbers.ts";

/** A window as policies write it in short: `100/s burst 200`, `200/day in UTC`, `5 once`. */
export function renderWindowBody({ limit, per, burst }: WindowBody): string {
  if (typeof per === "object") return `${formatCount(limit)}/${per.calendar} in ${per.time_zone}`;
  if (per === "never") return `${formatCount(limit)} once`;
  const period = /^1\D/.test(per) ? per.slice(1) : per;
  return `${formatCount(limit)}/${period}${burst === undefined || burst === limit ? "" : ` burst ${formatCount(burst)}`}`;
}
