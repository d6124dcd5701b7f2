import type { Client, ClientDuplexStream, Metadata, StatusObject } from "@grpc/grpc-js";
import {
  type CheckBatchRequest,
  type CheckBatchResponse,
  type CheckRequest as CheckMessage,
  type CheckResult,
  grpcService,
  RateLimiterDefinition,
} from "@sluice/protocol";
import type { CheckRequest } from "sluice";
import { replyFromError } from "../decode-refusal.ts";
import { ExchangeError, type Reply, type Sending, type SentQuestion } from "../exchange.ts";
import { decodeDecision } from "./decode-decision.ts";
import { failureFromStatus } from "./status-failure.ts";

interface SentBatch {
  readonly questions: readonly SentQuestion[];
  readonly resolve: (replies: readonly Reply[]) => void;
  readonly reject: (error: ExchangeError) => void;
}

const { checkStream } = grpcService(RateLimiterDefinition);

/** An idle stream is ended after this time: while there is one, grpc-js keeps the process alive. */
const idleMs = 250;
/** How long the server then has to end it as well. */
const leaveWithinMs = 1_000;

/** Batches of checks over one stream. Answers find their questions by the sequence. */
export class CheckStream {
  readonly #stream: ClientDuplexStream<CheckBatchRequest, CheckBatchResponse>;
  readonly #onEnd: (failure: ExchangeError) => void;
  readonly #sent = new Map<number, SentBatch>();
  #sequence = 0;
  #idle: NodeJS.Timeout | undefined;
  #ended = false;

  /** `onEnd`: it ended, and not because it was idle. */
  constructor(client: Client, metadata: Metadata, onEnd: (failure: ExchangeError) => void) {
    this.#onEnd = onEnd;
    const { path, requestSerialize, responseDeserialize } = checkStream;
    this.#stream = client.makeBidiStreamRequest(path, requestSerialize, responseDeserialize, metadata);
    this.#stream.on("data", (response: CheckBatchResponse) => this.#answer(response));
    // Its status says the same.
    this.#stream.on("error", () => undefined);
    this.#stream.on("status", (status: StatusObject) => this.#end(failureFromStatus(status)));
  }

  /** Whether batches can be sent on it. */
  get usable(): boolean {
    return !this.#ended;
  }

  send(questions: readonly SentQuestion[]): Sending {
    this.#sequence = (this.#sequence + 1) >>> 0;
    const sequence = this.#sequence;
    let deadlineMs = Number.POSITIVE_INFINITY;
    const checks = questions.map(({ question, withinMs }) => {
      deadlineMs = Math.min(deadlineMs, withinMs);
      return question.kind === "check" ? checkMessage(question.request) : emptyCheck;
    });
    clearTimeout(this.#idle);
    this.#idle = undefined;
    const replies = new Promise<readonly Reply[]>((resolve, reject) => {
      this.#sent.set(sequence, { questions, resolve, reject });
      this.#stream.write({ sequence, checks, deadlineMs });
    });
    return { replies, abandon: () => this.#forget(sequence) };
  }

  /** Ends at once. Questions without an answer are lost. */
  cancel(): void {
    this.#end(new ExchangeError("lost", "the connection was closed"));
    this.#stream.cancel();
  }

  #answer({ sequence, results }: CheckBatchResponse): void {
    const batch = this.#sent.get(sequence);
    if (batch === undefined) return;
    this.#forget(sequence);
    batch.resolve(results.map((result, i) => decodeReply(result, batch.questions[i])));
  }

  #forget(sequence: number): void {
    this.#sent.delete(sequence);
    if (this.#sent.size > 0 || this.#ended) return;
    clearTimeout(this.#idle);
    this.#idle = setTimeout(() => this.#leave(), idleMs);
  }

  /** Tells the server that this is the end. */
  #leave(): void {
    this.#ended = true;
    this.#stream.end();
    this.#idle = setTimeout(() => this.#stream.cancel(), leaveWithinMs);
  }

  #end(failure: ExchangeError): void {
    clearTimeout(this.#idle);
    const left = this.#ended;
    this.#ended = true;
    const batches = [...this.#sent.values()];
    this.#sent.clear();
    if (!left) this.#onEnd(failure);
    for (const { reject } of batches) reject(failure);
  }
}

const emptyCheck: CheckMessage = {
  domain: "",
  dimensions: {},
  cost: undefined,
  id: "",
  idTtlMs: 0,
  preview: false,
  policies: [],
  details: false,
  receipt: false,
};
const noPolicies: string[] = [];
const noDimensions: Record<string, string> = {};

function checkMessage(request: CheckRequest): CheckMessage {
  return {
    domain: request.domain ?? "",
    dimensions: request.dimensions ?? noDimensions,
    cost: request.cost,
    id: request.id ?? "",
    // The wire format has whole milliseconds.
    idTtlMs: Math.ceil(request.idTtlMs ?? 0),
    preview: request.preview === true,
    policies: (request.policies as string[] | undefined) ?? noPolicies,
    details: request.details === true,
    receipt: request.receipt === true,
  };
}

function decodeReply({ decision, error }: CheckResult, sent: SentQuestion | undefined): Reply {
  if (decision !== undefined) {
    const details = sent?.question.kind === "check" && sent.question.request.details === true;
    return { kind: "answer", value: decodeDecision(decision, details) };
  }
  if (error === undefined) return { kind: "failed", reason: "storage_unavailable" };
  return replyFromError({ code: error.code, message: error.message, problems: error.fields });
}
