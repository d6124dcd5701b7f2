import { printable } from "sluice/internal";
import type { RedisEvent } from "./site.ts";

export interface OutageWarningsOptions {
  /** The servers, without credentials. */
  readonly servers: string;
  /** Texts that must not be written, such as passwords. */
  readonly secrets: readonly string[];
  /** Whether every counter is available. */
  readonly ready: () => boolean;
  readonly nowMs: () => number;
  readonly warn: (message: string) => void;
}

/** Servers that keep coming and going are reported now and then. */
const linesPerMinute = 10;
const longestReason = 200;

/** What an app without `onEvent` sees: one line when an outage begins, and one when it ends. */
export class OutageWarnings {
  readonly #options: OutageWarningsOptions;
  #sinceMs: number | undefined;
  #minuteMs = Number.NEGATIVE_INFINITY;
  #lines = 0;
  #refusedMs = Number.NEGATIVE_INFINITY;

  constructor(options: OutageWarningsOptions) {
    this.#options = options;
  }

  onEvent(event: RedisEvent): void {
    switch (event.kind) {
      case "disconnected":
        this.#lost(renderReason(event.error));
        break;
      case "failed":
        this.#refused(event.error);
        break;
      case "breaker":
        if (event.state === "open") this.#lost(event.why);
        else this.look();
        break;
      default:
        this.look();
    }
  }

  /** Checks whether an outage is over. */
  look(): void {
    if (this.#sinceMs === undefined || !this.#options.ready()) return;
    const seconds = Math.round((this.#options.nowMs() - this.#sinceMs) / 1000);
    this.#sinceMs = undefined;
    this.#warn(`${this.#options.servers} is available again, after ${seconds} s; requests are counted again`);
  }

  #lost(reason: string): void {
    if (this.#sinceMs !== undefined || this.#options.ready()) return;
    this.#sinceMs = this.#options.nowMs();
    this.#warn(
      `${this.#options.servers} is unavailable (${this.#shown(reason)}). Meanwhile each policy's on_failure answers: ` +
        "requests pass without being counted, unless it is closed or local. To handle this yourself, give redis() an onEvent, or warn: false",
    );
  }

  /** The server answers with a refusal: it is out of memory, or its user may not call scripts. */
  #refused({ message }: Error): void {
    const code = serverCode(message);
    const nowMs = this.#options.nowMs();
    if (code === undefined || this.#sinceMs !== undefined || nowMs - this.#refusedMs < 60_000) return;
    this.#refusedMs = nowMs;
    this.#warn(`${this.#options.servers} refuses calls (${code}); each policy's on_failure answers for them`);
  }

  #shown(reason: string): string {
    // The longest first: it may begin with another.
    const secrets = this.#options.secrets.filter((one) => one !== "").sort((one, other) => other.length - one.length);
    const redacted = secrets.reduce((rest, secret) => rest.replaceAll(secret, "[redacted]"), reason);
    return printable(redacted.length > longestReason ? `${redacted.slice(0, longestReason)}…` : redacted);
  }

  #warn(message: string): void {
    const nowMs = this.#options.nowMs();
    if (nowMs - this.#minuteMs >= 60_000) {
      this.#minuteMs = nowMs;
      this.#lines = 0;
    }
    this.#lines += 1;
    if (this.#lines <= linesPerMinute) this.#options.warn(message);
  }
}

/** A server's reply may repeat what it was sent, credentials included; its code says enough. */
function renderReason({ message, name }: Error): string {
  const code = serverCode(message);
  if (code === undefined) return message || name;
  return /^(WRONGPASS|NOAUTH|NOPERM)$/.test(code) ? `${code}: check the user and password` : code;
}

function serverCode(message: string): string | undefined {
  return /^[A-Z]{2,32}(?= |$)/.exec(message)?.[0];
}
