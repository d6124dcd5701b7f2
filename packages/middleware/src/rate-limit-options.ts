import type { CheckRequest, Decision, HeaderGeneration } from "sluice";
import type { OneLineOptions } from "./limits.ts";
import type { RefusalBody } from "./refusal.ts";

/** A dimension's value as an app has it at hand. Absent and empty mean the same: it is not known. */
export type DimensionValue = string | number | bigint | undefined | null;

/** What went out to the client, for charging by it. */
export interface Sent {
  /** 499 where the client left before there was an answer, so that leaving early never looks like success. */
  readonly status: number;
  /** Of the body. */
  readonly bytes: number;
}

/** An answer to who is refused, where the problem body will not do. */
export interface OwnRefusal {
  readonly status?: number | undefined;
  /** A text is sent as it is, anything else as JSON. */
  readonly body?: unknown;
  readonly contentType?: string | undefined;
}

/** What every adapter can be told, in the words of its own requests and answers. */
export interface RateLimitOptions<Request, Answer = Sent> extends OneLineOptions {
  /**
   * Who asks, beside `ip`, `endpoint` and `method`, which are known already: `{ user: (request) => request.user?.id }`.
   * Never believe a header that anybody can write: who chooses the value chooses the counter.
   */
  readonly dimensions?:
    | Readonly<Record<string, (request: Request) => DimensionValue | Promise<DimensionValue>>>
    | undefined;
  /** What a request takes. 0 takes nothing, and is still told how it stands. Absent: what the policy says, else 1. */
  readonly cost?: number | ((request: Request) => number | undefined | Promise<number | undefined>) | undefined;
  /** Requests that are neither counted nor limited. */
  readonly skip?: ((request: Request) => boolean | Promise<boolean>) | undefined;
  /** Charged after the answer went out, on top of `cost`: bytes, tokens, time. 0 or nothing charges nothing. */
  readonly charge?: ((request: Request, sent: Answer) => number | undefined | Promise<number | undefined>) | undefined;
  /** Whether the request is given back once its answer is known: `(request, { status }) => status < 400` counts failures only. */
  readonly giveBack?: ((request: Request, sent: Answer) => boolean | Promise<boolean>) | undefined;
  /**
   * Our own proxies: their addresses and CIDR ranges, or how many stand before this server. Only they are believed when
   * they say whose request they pass on. Absent: what the framework has been told itself, else nobody.
   */
  readonly trustedProxies?: readonly string[] | number | undefined;
  /** Which header the proxies write. Absent: `x-forwarded-for`. */
  readonly proxyHeader?: "x-forwarded-for" | "forwarded" | undefined;
  /** The client's address, found by the app itself. */
  readonly ip?: ((request: Request) => string | undefined) | undefined;
  /**
   * What the dimension `endpoint` is: the pattern of the route where it is known (`/orders/:id`), else the path; always
   * the `path`, which policies with parameters in their endpoints need; or what the app says. Absent: `route`.
   */
  readonly endpoint?: "route" | "path" | ((request: Request) => string) | undefined;
  /** Which header fields tell a client how it stands. Absent: `legacy` and `draft11`. Empty: only `Retry-After`. */
  readonly headers?: readonly HeaderGeneration[] | undefined;
  /** Another answer than the problem body. What it leaves out stays. */
  readonly refuse?: ((body: RefusalBody, request: Request) => OwnRefusal | undefined) | undefined;
  /** Which family of policies is asked. Absent: `default`. */
  readonly domain?: CheckRequest["domain"];
  /** Ask these policies by id, instead of all that match. */
  readonly policies?: CheckRequest["policies"];
  /** Sees every decision, for logs and metrics. Must not throw. */
  readonly onDecision?: ((decision: Decision, request: Request) => void) | undefined;
  /**
   * Sees what went wrong: counters cannot be asked and `onFailure` answers (a `StoreUnavailable`, once when that begins), the
   * limiter broke in a way that no policy covers and the request passed, or something could not be charged or given back. Absent:
   * a warning of the process; for an outage one when it begins and one when it ends, else once a minute at most.
   */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined;
  /** Source of the jitter of `Retry-After`, 0 … 1. Absent: `Math.random`. */
  readonly random?: (() => number) | undefined;
}
