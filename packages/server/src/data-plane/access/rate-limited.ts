import { SluiceError } from "sluice";

/** Sluice's own API was called too often; carries the headers that say when to come back. */
export class RateLimited extends SluiceError {
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, headers: Readonly<Record<string, string>>, retryAfterMs: number | undefined) {
    super("rate_limited", message);
    this.headers = headers;
    this.retryAfterMs = retryAfterMs;
  }
}
