import type { JsonObject } from "@sluice/protocol/admin";
import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useCallback, useContext, useEffect, useMemo, useRef, useState } from "react";
import type { Query } from "../api/ask.ts";
import type { StreamEvent } from "../api/event-stream.ts";
import { type StreamState, useEventStream } from "../api/use-event-stream.ts";
import { forgetSession } from "./session.ts";

/** Events of the one stream that a tab has: browsers allow six connections to a server, in all tabs together. */
export type LiveTopic = "overview" | "decisions" | "changes";

type Listener = (data: JsonObject) => void;

interface Live {
  readonly state: StreamState;
  listen(topic: LiveTopic, listener: Listener): () => void;
  /** Asks for decisions that match; undefined: for none. */
  setDecisions(filter: Query | undefined): void;
}

const LiveContext = createContext<Live | undefined>(undefined);

/** Owns the stream, and keeps queries fresh by what it says has changed. */
export function LiveProvider({ children }: { readonly children: ReactNode }): ReactNode {
  const queries = useQueryClient();
  const listeners = useRef(new Map<LiveTopic, Set<Listener>>());
  const [filter, setFilter] = useState<Query>();
  const onEvent = useCallback(
    ({ event, data }: StreamEvent) => {
      const body = JSON.parse(data) as JsonObject;
      if (event === "end" && body.reason === "session_ended") forgetSession(queries);
      if (event === "changes") refresh(queries, body);
      for (const listener of listeners.current.get(event as LiveTopic) ?? []) listener(body);
    },
    [queries],
  );
  const state = useEventStream({
    path: filter === undefined ? "live/changes" : "live/decisions",
    query: filter === undefined ? { with: "overview" } : { with: "changes,overview", ...filter },
    onEvent,
    onRefused: (error) => error.status === 401 && forgetSession(queries),
  });
  const live = useMemo<Live>(
    () => ({
      state,
      listen(topic, listener) {
        const heard = listeners.current.get(topic) ?? new Set();
        listeners.current.set(topic, heard.add(listener));
        return () => heard.delete(listener);
      },
      setDecisions: setFilter,
    }),
    [state],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

/** What views know by heart, by the kind of a change. */
const affected: Readonly<Record<string, readonly string[]>> = {
  policy: ["policies", "policy", "plans", "plan", "audit"],
  plan: ["plans", "plan", "policies", "policy", "audit"],
  rollout: ["rollouts", "rollout", "policies", "policy", "audit"],
  subject: ["subjects", "subject", "audit"],
  kill_switch: ["kill-switch", "audit"],
  token: ["tokens", "audit"],
  configuration: ["policies", "policy", "plans", "plan", "subjects", "subject", "audit"],
};

function refresh(queries: ReturnType<typeof useQueryClient>, body: JsonObject): void {
  void queries.invalidateQueries({ queryKey: ["kill-switch"] });
  void queries.invalidateQueries({ queryKey: ["nodes"] });
  const changes = Array.isArray(body.changes) ? (body.changes as readonly { readonly kind?: string }[]) : [];
  const names = new Set(changes.flatMap(({ kind = "" }) => affected[kind] ?? ["audit"]));
  for (const name of names) void queries.invalidateQueries({ queryKey: [name] });
}

function useLive(): Live {
  const live = useContext(LiveContext);
  if (live === undefined) throw new Error("live data is only available within the shell");
  return live;
}

/** Whether data arrives live now. */
export function useLiveState(): StreamState {
  return useLive().state;
}

/** Calls `listener` with every event of a topic while the component is shown. */
export function useLiveTopic(topic: "overview" | "changes", listener: Listener): void {
  const { listen } = useLive();
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => listen(topic, (data) => latest.current(data)), [listen, topic]);
}

export interface DecisionFilter {
  readonly policy?: string | undefined;
  readonly dimension?: string | undefined;
  readonly subject?: string | undefined;
  readonly allowed?: boolean | undefined;
  readonly reason?: string | undefined;
}

/** Calls `listener` with each batch of decisions that match. Undefined: listens to none, as while paused. */
export function useLiveDecisions(filter: DecisionFilter | undefined, listener: Listener): StreamState {
  const { state, listen, setDecisions } = useLive();
  const latest = useRef(listener);
  latest.current = listener;
  const wanted = filter === undefined ? undefined : JSON.stringify(filter);
  useEffect(() => {
    if (wanted === undefined) return;
    setDecisions(JSON.parse(wanted) as Query);
    return () => setDecisions(undefined);
  }, [wanted, setDecisions]);
  useEffect(() => listen("decisions", (data) => latest.current(data)), [listen]);
  return state;
}
