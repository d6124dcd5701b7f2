import type { PlainAnswer } from "./answer-blocks.ts";
import type { CallHost } from "./call-host.ts";
import type { Stream, StreamReceiver } from "./stream.ts";

/** Most bytes of a body that are read, and not kept, before the answer. */
const maxBodyBytes = 16 * 1024;

/** What one costs while it is open. */
const requestBytes = 1024;

/**
 * A request that is no call of gRPC. It is answered after its body, because many clients do not read an answer before they have sent
 * theirs; one whose body is long, or late, is answered all the same, without words.
 */
export class PlainRequest implements StreamReceiver {
  readonly #stream: Stream;
  readonly #answer: PlainAnswer;
  readonly #host: CallHost;
  readonly #beganMs: number;
  #bytes = 0;

  constructor(stream: Stream, answer: PlainAnswer, host: CallHost) {
    this.#stream = stream;
    this.#answer = answer;
    this.#host = host;
    this.#beganMs = host.heardMs;
    host.hold(requestBytes);
  }

  data(_bytes: Buffer, start: number, end: number, isLast: boolean): void {
    this.#bytes += end - start;
    const { headers, body } = this.#answer;
    if (isLast) {
      this.#stream.sendHeaders(headers, body.length === 0);
      this.#stream.sendData(body);
      this.#stream.sendEnd();
    } else if (this.#bytes > maxBodyBytes) this.#stream.sendHeaders(headers, true);
  }

  tick(nowMs: number): void {
    if (nowMs - this.#beganMs > this.#host.messageWithinMs) this.#stream.sendHeaders(this.#answer.headers, true);
  }

  closed(): void {
    this.#host.hold(-requestBytes);
  }
}
