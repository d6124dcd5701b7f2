import { useEffect, useRef, useState } from "react";
import { type ApiError, parseApiError } from "./api-error.ts";
import { apiUrl, type Query } from "./ask.ts";
import { EventStreamReader, reconnectDelayMs, type StreamEvent } from "./event-stream.ts";

export type StreamState = "connecting" | "open" | "waiting" | "off";

export interface EventStreamOptions {
  /** Beneath /api/v1/. Absent: no stream. */
  readonly path: string | undefined;
  readonly query?: Query | undefined;
  readonly onEvent: (event: StreamEvent) => void;
  /** Refused for good (401, 403, 404): it does not connect again. */
  readonly onRefused?: ((error: ApiError) => void) | undefined;
}

/** A stream is silent for less than this: the server sends a comment when it has nothing to say. */
const silenceMs = 45_000;

/** Listens while the component is shown and the page is visible, and connects again after a loss. */
export function useEventStream({ path, query, onEvent, onRefused }: EventStreamOptions): StreamState {
  const [state, setState] = useState<StreamState>("off");
  const visible = usePageVisible();
  const handlers = useRef({ onEvent, onRefused });
  handlers.current = { onEvent, onRefused };
  const url = path === undefined || !visible ? undefined : apiUrl(path, query);

  useEffect(() => {
    if (url === undefined) {
      setState("off");
      return;
    }
    const stop = new AbortController();
    void follow(url, stop.signal, setState, handlers);
    return () => stop.abort();
  }, [url]);
  return state;
}

type Handlers = { readonly current: Pick<EventStreamOptions, "onEvent" | "onRefused"> };

async function follow(url: string, signal: AbortSignal, setState: (state: StreamState) => void, handlers: Handlers) {
  let lastId: string | undefined;
  for (let attempt = 0; !signal.aborted; attempt += 1) {
    setState(attempt === 0 ? "connecting" : "waiting");
    try {
      const response = await fetch(url, {
        credentials: "same-origin",
        cache: "no-store",
        headers: { accept: "text/event-stream", ...(lastId !== undefined && { "last-event-id": lastId }) },
        signal,
      });
      if (response.ok && response.body !== null) {
        setState("open");
        attempt = 0;
        await readEvents(response.body, signal, (event) => {
          lastId = event.id ?? lastId;
          handlers.current.onEvent(event);
        });
      } else {
        const error = parseApiError(response.status, await response.text(), response.headers.get("retry-after"));
        if ([400, 401, 403, 404].includes(response.status)) {
          setState("off");
          handlers.current.onRefused?.(error);
          return;
        }
      }
    } catch {
      // Lost, or silent for too long: the loop connects again.
    }
    if (signal.aborted) return;
    setState("waiting");
    await pause(reconnectDelayMs(attempt, Math.random()), signal);
  }
}

async function readEvents(body: ReadableStream<Uint8Array>, signal: AbortSignal, hear: (event: StreamEvent) => void) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  const events = new EventStreamReader();
  try {
    for (;;) {
      const { done, value } = await withinSilence(reader.read());
      if (done || signal.aborted) return;
      for (const event of events.read(decoder.decode(value, { stream: true }))) hear(event);
    }
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}

function withinSilence<T>(reading: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error("the stream is silent")), silenceMs);
    reading.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener(
      "abort",
      () => {
        clearTimeout(timer);
        resolve();
      },
      { once: true },
    );
  });
}

function usePageVisible(): boolean {
  const [visible, setVisible] = useState(() => document.visibilityState === "visible");
  useEffect(() => {
    const follow = () => setVisible(document.visibilityState === "visible");
    document.addEventListener("visibilitychange", follow);
    return () => document.removeEventListener("visibilitychange", follow);
  }, []);
  return visible;
}
