import type { LiveTopic } from "@sluice/protocol/admin";
import { SluiceError } from "sluice";
import type { HttpResponse } from "../../../data-plane/transports/http/exchange.ts";
import type { LiveFilter } from "../../live/live-filter.ts";
import type { AdminContext, AdminRequest } from "../route.ts";

export interface LiveParameters extends Pick<LiveFilter, "policy" | "dimension" | "subject" | "allowed" | "reason"> {
  /** Topics to watch as well. */
  readonly with?: readonly LiveTopic[];
}

/** Watches a topic, and those that the request adds. */
export function watchLive(topic: LiveTopic) {
  return (
    { actor, credential, query }: AdminRequest<undefined, LiveParameters>,
    { live }: AdminContext,
  ): HttpResponse => {
    if (credential === undefined) throw new SluiceError("unauthenticated", "the control plane needs a token");
    const { with: also = [], ...filter } = query;
    const { role, team = "" } = actor.caller;
    const request = {
      topics: new Set([topic, ...also]),
      filter: role === "editor" ? { ...filter, team } : filter,
      credential,
    };
    live.admit(request);
    return {
      status: 200,
      // Proxies must pass on each event at once.
      headers: { "content-type": "text/event-stream; charset=utf-8", "x-accel-buffering": "no" },
      body: undefined,
      stream: (stream) => live.start(request, stream),
    };
  };
}
