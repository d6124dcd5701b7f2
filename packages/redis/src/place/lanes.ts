import { SluiceError } from "sluice";
import type { ResolvedLimit } from "sluice/store";
import { slotCount, tagSlot } from "./key-slot.ts";

/**
 * In a cluster a call's keys must share a slot, and 16 384 slots leave nothing to batch. So counters live in a few
 * *lanes*: each is one hash tag, and tags are chosen so that lanes lie evenly on the circle of slots.
 */
export interface LaneTag {
  /** What keys begin with: `{a7}`. Empty without a cluster, where one lane is enough. */
  readonly tag: string;
  readonly slot: number;
}

/** With more, lanes hold too little to batch, and choosing their tags takes too long. */
const mostLanes = 1024;

export function createLaneTags(count: number): readonly LaneTag[] {
  if (!Number.isInteger(count) || count < 1 || count > mostLanes) {
    const message = `must be a whole number from 1 to ${mostLanes}, not ${count}`;
    throw new SluiceError("invalid_request", `lanes ${message}`, [{ path: ["lanes"], message }]);
  }
  const tags: LaneTag[] = [];
  const width = slotCount / count;
  for (let lane = 0; lane < count; lane++) {
    for (let number = 0; ; number++) {
      const text = number.toString(36);
      const slot = tagSlot(text);
      if (slot < lane * width || slot >= (lane + 1) * width) continue;
      tags.push({ tag: `{${text}}`, slot });
      break;
    }
  }
  return tags;
}

/** Dimensions that a request's other counters stay close to, in this order. */
const homes = ["tenant", "org", "organization", "account"];

/**
 * The value that decides where a counter lives: the tenant's if the limit has one, so that a request's tenant and user
 * counters share a slot; else the first dimension's. It depends on the counter alone, never on the rest of the request.
 */
export function findHome({ limit, subject }: Pick<ResolvedLimit, "limit" | "subject">): string {
  const { by } = limit.source;
  if (by.length === 0) return limit.identity;
  if (by.length === 1) return subject;
  const home = homes.map((name) => by.indexOf(name)).find((index) => index >= 0) ?? 0;
  return valueAt(subject, home);
}

/** One value of a joined subject; see `joinSubject` in core. */
export function valueAt(subject: string, index: number): string {
  let begins = 0;
  let seen = 0;
  for (let i = 0; i <= subject.length; i++) {
    if (subject[i] === "\\") {
      i += 1;
      continue;
    }
    if (i < subject.length && subject[i] !== "|") continue;
    if (seen === index) return subject.slice(begins, i).replace(/\\(.)/gs, "$1");
    seen += 1;
    begins = i + 1;
  }
  return "";
}

/** FNV-1a over UTF-16 units: the same lane in every process, forever. */
export function laneNumber(home: string, lanes: number): number {
  let hash = 0x811c9dc5;
  for (let i = 0; i < home.length; i++) hash = Math.imul(hash ^ home.charCodeAt(i), 0x01000193);
  hash ^= hash >>> 15;
  hash = Math.imul(hash, 0x2c1b3c6d);
  hash ^= hash >>> 13;
  return (hash >>> 0) % lanes;
}
