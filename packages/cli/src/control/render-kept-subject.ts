import type { KeptSubjectBody, SubjectBlockBody, SubjectLimitBody } from "@sluice/protocol/admin";
import { renderInstant, renderMoment } from "../terminal/render-time.ts";

/** All that is kept of a subject, in one line: `tier gold; 7/s in orders, for good, by alice: contract 4711` */
export function renderKeptSubject({ tier, limits, block }: KeptSubjectBody, nowMs: number): string {
  if (tier === undefined && limits.length === 0 && block === undefined) return "no tier and no overrides";
  const limitTexts = limits.map((limit) => renderOwnLimit(limit, nowMs));
  const blockTexts = block === undefined ? [] : [`a block, ${renderBlock(block, nowMs)}`];
  return [tier === undefined ? "no tier" : `tier ${tier}`, ...limitTexts, ...blockTexts].join("; ");
}

/** `until …, by alice, only by policy orders: scraping` */
export function renderBlock(block: SubjectBlockBody, nowMs: number): string {
  const { policies, until_ms: untilMs, author, reason } = block;
  const only = policies === undefined ? "" : `, only by ${policies.join(" and ")}`;
  return `${renderEnd(untilMs, nowMs)}, by ${author}${only}: ${reason}`;
}

export function renderOwnLimit(limit: SubjectLimitBody, nowMs: number): string {
  const { windows, until_ms: untilMs, author, reason } = limit;
  const why = reason === "" ? "" : `: ${reason}`;
  return `${windows.join(", ")} in ${renderLimitName(limit)}, ${renderEnd(untilMs, nowMs)}, by ${author}${why}`;
}

/** `for good`, or until when. */
export function renderEnd(untilMs: number | undefined, nowMs: number): string {
  return untilMs === undefined ? "for good" : `until ${renderInstant(untilMs)} (${renderMoment(untilMs, nowMs)})`;
}

export function renderLimitName({ policy, limit }: Pick<SubjectLimitBody, "policy" | "limit">): string {
  return limit === undefined ? policy : `${policy} / ${limit}`;
}
