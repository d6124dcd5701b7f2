import { StoreUnavailable } from "sluice";
import { breakerIsOpen, type GuardedShard } from "./guarded-shard.ts";
import { nothingAsked, ofItsOwn } from "./nothing-asked.ts";
import type { Pending } from "./pending.ts";
import type { Question } from "./question.ts";

/** The server is loading its data or is no longer a primary, or its cluster is electing one. */
export function isTemporary(error: unknown): boolean {
  return error instanceof Error && /^(CLUSTERDOWN|LOADING|READONLY|MASTERDOWN)\b/.test(error.message);
}

/** Why a shard cannot be asked. */
export function whyUnavailable(shard: GuardedShard | undefined): string {
  if (shard === undefined) return "no server is known for these counters";
  return shard.closed ? `there is no connection to ${shard.shard.name}` : breakerIsOpen(shard.shard);
}

/** Failed takes become decisions: no caller sees the error, so it may be shared. */
export function isTake({ operation }: Pick<Question, "operation">): boolean {
  return operation === "take" || operation === "takeArrivals" || operation === "takeCounts";
}

/** The error of a question that cannot be sent now, and may have been sent before. */
export function unavailableError(shard: GuardedShard | undefined, { question, retried }: Pending): StoreUnavailable {
  const why = whyUnavailable(shard);
  if (retried) return new StoreUnavailable("storage_unavailable", undefined, { cause: new Error(why) });
  return isTake(question) ? nothingAsked(why) : ofItsOwn(nothingAsked(why));
}
