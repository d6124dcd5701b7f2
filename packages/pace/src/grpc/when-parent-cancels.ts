import type { EventEmitter } from "node:events";
import { type InterceptorOptions, propagate } from "@grpc/grpc-js";
import { hands } from "./find-deadline-ms.ts";

/**
 * Calls back when the parent call is cancelled, or was already, if cancellation propagates. grpc-js listens to the parent
 * only while a call exists, so waits need this. Returns a function that stops listening.
 */
export function whenParentCancels({ parent, propagate_flags }: InterceptorOptions, cancel: () => void): () => void {
  if (parent === undefined || !hands(propagate_flags, propagate.CANCELLATION)) return () => undefined;
  const emitter: EventEmitter & { readonly cancelled: boolean } = parent;
  emitter.once("cancelled", cancel);
  if (emitter.cancelled) cancel();
  return () => emitter.removeListener("cancelled", cancel);
}
