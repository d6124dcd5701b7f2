/** Server-sent events: the parts without a browser. */

export interface StreamEvent {
  readonly id: string | undefined;
  readonly event: string;
  readonly data: string;
}

const firstDelayMs = 500;
const longestDelayMs = 30_000;
/** A line or an event longer than this ends the connection instead of filling the page's memory. */
export const maxPendingLength: number = 4 * 1024 * 1024;

/** How long to wait before attempt `attempt` (from 0) to connect again: doubling, and spread so that pages do not return together. */
export function reconnectDelayMs(attempt: number, random: number): number {
  const delay = Math.min(longestDelayMs, firstDelayMs * 2 ** Math.min(attempt, 16));
  return Math.round(delay * (0.5 + random / 2));
}

/** Reads the text of an event stream as it arrives, in pieces cut anywhere. */
export class EventStreamReader {
  #pending = "";
  #id: string | undefined;

  /** The events that this piece completes. Throws a `RangeError` if one is too long. */
  read(piece: string): readonly StreamEvent[] {
    this.#pending += piece;
    const events: StreamEvent[] = [];
    for (;;) {
      const end = /\r\n\r\n|\n\n|\r\r/.exec(this.#pending);
      if (end === null) break;
      const event = this.#parse(this.#pending.slice(0, end.index));
      this.#pending = this.#pending.slice(end.index + end[0].length);
      if (event !== undefined) events.push(event);
    }
    if (this.#pending.length > maxPendingLength) throw new RangeError("an event of the stream is too long");
    return events;
  }

  #parse(block: string): StreamEvent | undefined {
    let event = "message";
    const data: string[] = [];
    for (const line of block.split(/\r\n|\n|\r/)) {
      const colon = line.indexOf(":");
      if (colon === 0) continue;
      const field = colon === -1 ? line : line.slice(0, colon);
      const value = colon === -1 ? "" : line.slice(colon + 1).replace(/^ /, "");
      if (field === "data") data.push(value);
      else if (field === "event") event = value;
      else if (field === "id") this.#id = value;
    }
    return data.length === 0 ? undefined : { id: this.#id, event, data: data.join("\n") };
  }
}
