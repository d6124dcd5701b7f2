import type { EventEmitter } from "node:events";
import { type InterceptorOptions, propagate } from "@grpc/grpc-js";
import { hands } from "./find-deadline-ms.ts";

/**
 * Calls back when the call that this one was made for is cancelled, or is so already, where that is handed on: below, a
 * parent is heard only while there is a call. Returns what ends that.
 */
export function whenParentCancels({ parent, propagate_flags }: InterceptorOptions, cancel: () => void): () => void {
  if (parent === undefined || !hands(propagate_flags, propagate.CANCELLATION)) return () => undefined;
  const emitter: EventEmitter & { readonly cancelled: boolean } = parent;
  emitter.once("cancelled", cancel);
  if (emitter.cancelled) cancel();
  return () => emitter.removeListener("cancelled", cancel);
}
