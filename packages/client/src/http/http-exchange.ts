import type { BatchBody, ErrorBody, GivenBackBody, ProblemBody, ReadyBody, ResetBody } from "@sluice/protocol/http";
import type { CheckRequest } from "sluice";
import { replyFromError } from "../decode-refusal.ts";
import {
  type Exchange,
  ExchangeError,
  type ExchangeEvents,
  type QuestionKind,
  type Reply,
  type Sending,
  type SentQuestion,
} from "../exchange.ts";
import { noLeases } from "../leases/no-leases.ts";
import type { Address } from "../parse-addresses.ts";
import type { ConnectOptions } from "../remote-limiter.ts";
import { decodeDecisionBody, isBody, type Unread } from "./decode-decision-body.ts";
import { decodeLeaseBody } from "./decode-lease-body.ts";
import { JsonRequests, type JsonResponse } from "./json-requests.ts";

const paths: Readonly<Record<QuestionKind, string>> = {
  check: "/v1/check",
  charge: "/v1/charge",
  give: "/v1/give-back",
  reset: "/v1/reset",
  lease: "/v1/lease",
};

/** How often a server that closes its connections is asked whether it is stopping, and how long it has to answer. */
const lookEveryMs = 100;

/** Questions over HTTP/1.1: a batch is one request, and a lone check a lone one. */
export class HttpExchange implements Exchange {
  /** A connection carries one request at a time. */
  readonly maxInFlight: number = 16;
  readonly #requests: JsonRequests;
  readonly #events: ExchangeEvents;
  #lookedMs = Number.NEGATIVE_INFINITY;

  constructor(address: Address, options: ConnectOptions, events: ExchangeEvents) {
    this.#events = events;
    const onBroken = (why: string): void => events.onEnd(why);
    // As many for each kind: stalled questions of one kind do not block another.
    const maxConnections = this.maxInFlight * Object.keys(paths).length;
    this.#requests = new JsonRequests({ address, options, maxConnections, onBroken });
  }

  async open(withinMs: number): Promise<void> {
    this.#requests.renew();
    await this.#look(withinMs);
  }

  /** Any answer means that the server is up, even if its counters are unavailable: its policies cover that. */
  async #look(withinMs: number): Promise<void> {
    this.#lookedMs = performance.now();
    const asking = this.#requests.send("GET", "/readyz");
    const timer = setTimeout(() => asking.abort(`no answer within ${withinMs} ms`), withinMs);
    timer.unref();
    try {
      const { status, body } = await asking.response;
      if (status === 502 || status === 504) throw new ExchangeError("not_asked", `it answers with ${status}`);
      if (status === 503 && isBody<ReadyBody>(body) && body.status === "stopping")
        throw new ExchangeError("not_asked", "it is stopping");
    } finally {
      clearTimeout(timer);
    }
  }

  send(kind: QuestionKind, questions: readonly SentQuestion[]): Sending {
    const { length } = questions;
    const body = length === 1 ? renderBody(questions[0]!) : { checks: questions.map(renderBody) };
    const asking = this.#requests.send("POST", paths[kind], JSON.stringify(body));
    const replies = asking.response.then((response): readonly Reply[] => {
      if (response.closes) this.#lookAgain();
      if (length > 1) return readDecisions(response) ?? questions.map(() => readRefusal(response));
      if (kind === "lease") return [readLease(response)];
      return [(kind === "check" ? readDecision(response) : readDone(kind, response)) ?? readRefusal(response)];
    });
    return { replies, abandon: () => asking.abort("its answer is no longer needed") };
  }

  close(): void {
    this.#requests.close();
  }

  /** A server that closes its connections may be about to stop: it is left before a request finds it gone. */
  #lookAgain(): void {
    if (performance.now() - this.#lookedMs < lookEveryMs) return;
    this.#look(lookEveryMs).catch(({ because, message }: ExchangeError) => {
      if (because === "not_asked") this.#events.onEnd(message);
    });
  }
}

function renderBody({ question, withinMs }: SentQuestion): object {
  if (question.kind === "give") return { receipt: question.receipt };
  if (question.kind === "check") return { ...requestBody(question.request), deadline_ms: withinMs };
  const { domain, dimensions, cost, policies } = question.request;
  if (question.kind === "lease")
    return { check: { domain, dimensions, policies }, want: question.want, settled: question.settled };
  return { domain, dimensions, policies, ...(question.kind === "charge" && { cost }) };
}

function requestBody(request: CheckRequest): Readonly<Record<string, unknown>> {
  const { domain, dimensions, cost, id, idTtlMs, preview, policies, details, receipt } = request;
  // The wire format has whole milliseconds.
  const id_ttl_ms = idTtlMs === undefined ? undefined : Math.ceil(idTtlMs);
  return { domain, dimensions, cost, id, id_ttl_ms, preview, policies, details, receipt };
}

/** Allowed, denied, or denied because counters are unavailable: all of them are answers. */
function readDecision({ body }: JsonResponse): Reply | undefined {
  const decision = decodeDecisionBody(body);
  return decision && { kind: "answer", value: decision };
}

type BatchAnswer = BatchBody["answers"][number];
type Decided = Extract<BatchAnswer, { decision: unknown }>;
type Refused = Extract<BatchAnswer, { error: unknown }>;

function readDecisions({ status, body }: JsonResponse): readonly Reply[] | undefined {
  const answers = isBody<BatchBody>(body) ? body.answers : undefined;
  if (status !== 200 || !Array.isArray(answers)) return undefined;
  return answers.map((answer: unknown): Reply => {
    const { decision, error }: Unread<Decided & Refused> = isBody<Decided & Refused>(answer) ? answer : {};
    const decoded = decodeDecisionBody(decision);
    return decoded === undefined ? errorReply(error) : { kind: "answer", value: decoded };
  });
}

function readDone(kind: QuestionKind, { status, body }: JsonResponse): Reply | undefined {
  if (status < 200 || status > 299) return undefined;
  const { given_back, counters }: Unread<GivenBackBody & ResetBody> = isBody<GivenBackBody & ResetBody>(body)
    ? body
    : {};
  if (kind === "give") return { kind: "answer", value: given_back === true };
  if (kind === "reset") return { kind: "answer", value: Array.isArray(counters) ? counters.length : 0 };
  return { kind: "answer", value: undefined };
}

/** A server without leases, and a gateway that blocks them, answer with a 4xx status. */
function readLease({ status, body }: JsonResponse): Reply {
  const lease = status === 200 ? decodeLeaseBody(body) : undefined;
  if (lease !== undefined) return { kind: "answer", value: lease };
  if (isBody<ErrorBody>(body) && typeof body.code === "string") return errorReply(body);
  if (status === 429) return { kind: "elsewhere", reason: "storage_overloaded" };
  // 408 means that something took too long, without saying what.
  if (status >= 400 && status < 500 && status !== 408) return { kind: "refused", error: noLeases };
  throw new ExchangeError("lost", `it answers with ${status}`);
}

/**
 * An error for a whole request. Sluice says what it did not do; any other server that answers may have passed the
 * request on.
 */
function readRefusal({ status, body }: JsonResponse): Reply {
  const reply = errorReply(body);
  if (reply.kind === "failed") throw new ExchangeError("lost", `it answers with ${status}`);
  return reply;
}

function errorReply(body: unknown): Reply {
  const { code, detail, problems }: Unread<ErrorBody> = isBody<ErrorBody>(body) ? body : {};
  return replyFromError({
    code: String(code),
    message: typeof detail === "string" ? detail : "the server refused",
    problems: Array.isArray(problems)
      ? problems.filter(isBody<ProblemBody>).map((one) => ({ field: String(one.field), message: String(one.message) }))
      : [],
  });
}
