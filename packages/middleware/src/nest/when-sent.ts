import type { ServerResponse } from "node:http";
import { watchResponse } from "../node/watch-response.ts";
import type { Sent } from "../rate-limit-options.ts";

type Done = (sent: Sent) => void;

const waiting = new WeakMap<ServerResponse, Done[]>();

/**
 * Reports what was sent, once the answer is sent. If several callers wait for one answer, as the fields of a GraphQL
 * operation do, the first gets the bytes and the others 0, so that bytes are charged once.
 */
export function whenSent(response: ServerResponse, done: Done): void {
  const others = waiting.get(response);
  if (others !== undefined) {
    others.push(done);
    return;
  }
  const all = [done];
  waiting.set(response, all);
  watchResponse(response, (sent) => {
    for (const [i, one] of all.entries()) one(i === 0 ? sent : { ...sent, bytes: 0 });
  });
}
