import type { CheckRequest, Decision, ReserveRequest } from "sluice";
import type { HeaderGeneration } from "sluice/internal";
import type { OneLineOptions } from "./limits.ts";
import type { RefusalBody } from "./refusal.ts";

/** A dimension's value. Undefined, null and empty mean that it is unknown. */
export type DimensionValue = string | number | bigint | undefined | null;

/** What to hold for a request. A number is an estimate: it is cut to what the smallest limit ever holds. */
export type Held = number | Pick<ReserveRequest, "amount" | "estimate" | "ttlMs"> | undefined;

/** What was sent to the client, to charge by it. */
export interface Sent {
  /** 499 if the client left before there was an answer, so that leaving early never looks like success. */
  readonly status: number;
  /** The size of the body. */
  readonly bytes: number;
}

/** The app's answer to a refused request, in place of the problem body. */
export interface OwnRefusal {
  readonly status?: number | undefined;
  /** A string is sent unchanged, anything else as JSON. */
  readonly body?: unknown;
  readonly contentType?: string | undefined;
}

/** The options of every adapter, with its framework's types of requests and answers. */
export interface RateLimitOptions<Request, Answer = Sent> extends OneLineOptions {
  /**
   * Dimensions in addition to `ip`, `endpoint` and `method`: `{ user: (request) => request.user?.id }`.
   * Never use a header that any client can set: a client that chooses the value chooses its counter.
   */
  readonly dimensions?:
    | Readonly<Record<string, (request: Request) => DimensionValue | Promise<DimensionValue>>>
    | undefined;
  /** What a request takes. 0 takes nothing, and still gets headers. Default: the policy's cost, else 1. */
  readonly cost?: number | ((request: Request) => number | undefined | Promise<number | undefined>) | undefined;
  /**
   * Held until the answer was sent, in place of `cost`: for requests whose cost is known only afterwards. The handler
   * reports it by the ticket's `hold`, or `charge` returns it; what is left is given back, also if the client leaves.
   */
  readonly hold?: Held | ((request: Request) => Held | Promise<Held>) | undefined;
  /** Requests that are neither counted nor limited. */
  readonly skip?: ((request: Request) => boolean | Promise<boolean>) | undefined;
  /** Charged after the answer was sent, on top of `cost`: bytes, tokens, time. 0 or undefined charges nothing. */
  readonly charge?: ((request: Request, sent: Answer) => number | undefined | Promise<number | undefined>) | undefined;
  /** Whether the request is given back once its answer is known: `(request, { status }) => status < 400` counts failures only. */
  readonly giveBack?: ((request: Request, sent: Answer) => boolean | Promise<boolean>) | undefined;
  /**
   * Your own proxies: their addresses and CIDR ranges, or how many there are in front of this server. Only they are trusted
   * to name the client. Default: the framework's own setting, else no proxy.
   */
  readonly trustedProxies?: readonly string[] | number | undefined;
  /** The header that the proxies write. Default: `x-forwarded-for`. */
  readonly proxyHeader?: "x-forwarded-for" | "forwarded" | undefined;
  /** The client's address, found by the app itself. */
  readonly ip?: ((request: Request) => string | undefined) | undefined;
  /**
   * The value of the dimension `endpoint`. `route`: the route's pattern if known (`/orders/:id`), else the path. `path`:
   * always the path, which policies with parameters in their endpoints need. Or a function. Default: `route`.
   */
  readonly endpoint?: "route" | "path" | ((request: Request) => string) | undefined;
  /** Which rate limit header fields clients get. Default: `legacy` and `draft11`. Empty: only `Retry-After`. */
  readonly headers?: readonly HeaderGeneration[] | undefined;
  /** Replaces the problem body. Fields it omits keep their values. */
  readonly refuse?: ((body: RefusalBody, request: Request) => OwnRefusal | undefined) | undefined;
  /** The domain whose policies apply. Default: `default`. */
  readonly domain?: CheckRequest["domain"];
  /** Use these policies, by id, instead of all that match. */
  readonly policies?: CheckRequest["policies"];
  /** Called with every decision, for logs and metrics. Must not throw. */
  readonly onDecision?: ((decision: Decision, request: Request) => void) | undefined;
  /**
   * Called with failures: counters are unavailable and `onFailure` decides (a `StoreUnavailable`, once when that begins),
   * the limiter failed in a way no policy covers and the request passed, or a charge or give-back failed. Default: a process
   * warning; for an outage one when it begins and one when it ends, otherwise at most once a minute.
   */
  readonly onError?: ((error: unknown, request: Request) => void) | undefined;
  /** Source of the jitter of `Retry-After`, 0 … 1. Default: `Math.random`. */
  readonly random?: (() => number) | undefined;
}
