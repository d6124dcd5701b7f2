import { CommandError } from "../terminal/terminal.ts";
import { parseSince } from "./parse-time.ts";

/** Which time a command shows. */
export interface RangeFlags {
  readonly since?: string;
  readonly from?: string;
  readonly to?: string;
  /** Of a flag without a value: true. */
  readonly month?: string | true;
}

export interface TimeRange {
  readonly fromMs: number;
  readonly toMs: number;
}

const dayMs = 86_400_000;

/** Absent: the last 24 hours. Months are those of UTC, as days are. */
export function parseRange({ since, from, to, month }: RangeFlags, nowMs: number): TimeRange {
  if (month !== undefined) {
    const other = Object.entries({ since, from, to }).find(([, value]) => value !== undefined)?.[0];
    if (other !== undefined) throw new CommandError(`--month and --${other} both say which time; give one of them`);
    return parseMonth(month, nowMs);
  }
  if (since !== undefined && from !== undefined)
    throw new CommandError("--since and --from say the same thing; give one of them");
  const begin = since ?? from;
  const flag = since === undefined ? "--from" : "--since";
  const toMs = to === undefined ? nowMs : parseSince("--to", to, nowMs);
  const fromMs = begin === undefined ? toMs - dayMs : parseSince(flag, begin, nowMs);
  if (fromMs >= toMs)
    throw new CommandError(
      begin !== undefined && to === undefined
        ? `${flag} ${begin} is still to come; it should be how long ago, such as 2h, or a date`
        : `--to ${to} is before ${flag} ${begin}, so that there is nothing between them; such as: --from 2h --to 1h`,
    );
  return { fromMs, toMs };
}

function parseMonth(month: string | true, nowMs: number): TimeRange {
  const [, year, number] = month === true ? [] : (/^(\d{4})-(0[1-9]|1[0-2])$/.exec(month) ?? []);
  if (month !== true && number === undefined)
    throw new CommandError(`--month is ${JSON.stringify(month)}; it should be a month such as 2026-01, or stand alone`);
  const now = new Date(nowMs);
  const [ofYear, ofMonth] = number === undefined ? [now.getUTCFullYear(), now.getUTCMonth()] : [+year!, +number - 1];
  const fromMs = Date.UTC(ofYear, ofMonth);
  if (fromMs > nowMs) throw new CommandError(`--month ${month} is still to come`);
  return { fromMs, toMs: Math.min(nowMs, Date.UTC(ofYear, ofMonth + 1)) };
}
