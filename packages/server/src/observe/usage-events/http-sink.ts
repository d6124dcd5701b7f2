import { type EventSink, EventsRefused } from "./event-sink.ts";
import { renderUsageEvents } from "./usage-event.ts";

export interface HttpSinkOptions {
  /** A user and password in it are sent as a header. */
  readonly url: string;
  /** Reads the bearer token, at each send: a file may have a new one. Undefined: none. */
  readonly readToken?: (() => Promise<string | undefined>) | undefined;
  readonly fetch?: typeof fetch | undefined;
}

/** Statuses that say the events themselves are wrong; any other failure may pass. */
const refusals: ReadonlySet<number> = new Set([400, 413, 415, 422]);

/** Posts events as a batch of CloudEvents: to OpenMeter's `/api/v1/events`, or to any receiver of that format. */
export function createHttpSink({ url, readToken, fetch: send = fetch }: HttpSinkOptions): EventSink {
  const target = new URL(url);
  const { username, password } = target;
  const basic = username === "" && password === "" ? undefined : [username, password].map(decodeURIComponent).join(":");
  target.username = "";
  target.password = "";
  target.hash = "";
  const where = `${target.origin}${target.pathname}`;
  return {
    kind: "http",
    // Keys are sometimes put into the query.
    where,
    async send(events, signal): Promise<void> {
      const token = await readToken?.();
      const headers: Record<string, string> = { "content-type": "application/cloudevents-batch+json" };
      if (token !== undefined) headers.authorization = `Bearer ${token}`;
      else if (basic !== undefined) headers.authorization = `Basic ${Buffer.from(basic).toString("base64")}`;
      const body = renderUsageEvents(events);
      const response = await send(target, { method: "POST", headers, body, signal, redirect: "error" });
      await response.body?.cancel();
      if (response.ok) return;
      const why = `it answered ${response.status}`;
      throw refusals.has(response.status) ? new EventsRefused(why) : new Error(why);
    },
    close: () => Promise.resolve(),
  };
}
