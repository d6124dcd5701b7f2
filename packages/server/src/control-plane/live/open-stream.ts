import type { LiveEndBody, LiveTopic } from "@sluice/protocol/admin";
import type { AnswerStream, Credential } from "../../data-plane/transports/http/exchange.ts";
import type { DecisionWatch } from "./live-decisions.ts";
import type { LiveFilter } from "./live-filter.ts";

/** What a client wants to watch. */
export interface LiveRequest {
  readonly topics: ReadonlySet<LiveTopic>;
  readonly filter: LiveFilter;
  readonly credential: Credential;
}

/** A comment after this many rounds without anything else: proxies close connections that stay silent. */
const heartbeatRounds = 30;
/** A client that leaves this much unread gets nothing more for now, and after this many rounds it is given up. */
const maxUnreadBytes = 256 * 1024;
const patientRounds = 20;

/** One client that watches, until it leaves, its session ends, or it is too slow. */
export class OpenStream {
  readonly request: LiveRequest;
  readonly watch: DecisionWatch | undefined;
  readonly #stream: AnswerStream;
  #silentRounds = 0;
  #unreadRounds = 0;
  #isOver = false;

  constructor(request: LiveRequest, stream: AnswerStream, watch: DecisionWatch | undefined) {
    this.request = request;
    this.watch = watch;
    this.#stream = stream;
  }

  /** Looks after the stream. Called in each round. */
  look(): void {
    this.#silentRounds += 1;
    if (this.#silentRounds >= heartbeatRounds) this.comment();
    this.#unreadRounds = this.#isBehind ? this.#unreadRounds + 1 : 0;
    if (this.#unreadRounds > patientRounds) {
      this.end("too_slow");
      this.#stream.destroy();
    } else if (!this.#isValid()) this.end("session_ended");
  }

  /** Leaves the event out if the client is behind. */
  send(event: LiveTopic, body: unknown): void {
    if (!this.#isOver && !this.#isBehind) this.#write(`event: ${event}\ndata: ${JSON.stringify(body)}\n\n`);
  }

  comment(): void {
    if (!this.#isOver && !this.#isBehind) this.#write(":\n\n");
  }

  end(reason: LiveEndBody["reason"]): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#write(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.#stream.end();
  }

  get #isBehind(): boolean {
    return this.#stream.unreadBytes > maxUnreadBytes;
  }

  /** Whether the token still permits it. */
  #isValid(): boolean {
    try {
      return this.request.credential.identify().may.has("read");
    } catch {
      return false;
    }
  }

  #write(text: string): void {
    this.#silentRounds = 0;
    this.#stream.write(text);
  }
}
