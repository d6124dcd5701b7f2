import { SluiceError } from "sluice";

/** Sluice's own API was asked too often, with the headers that tell when to come back. */
export class RateLimited extends SluiceError {
  readonly headers: Readonly<Record<string, string>>;
  readonly retryAfterMs: number | undefined;

  constructor(message: string, headers: Readonly<Record<string, string>>, retryAfterMs: number | undefined) {
    super("rate_limited", message);
    this.headers = headers;
    this.retryAfterMs = retryAfterMs;
  }
}
