import type { CheckBatchRequest } from "@sluice/protocol";
import type { BatchAnswer } from "../batch-codec.ts";
import { type CheckResult, checkResults } from "../check-results.ts";
import type { GrpcContext, MessageStream, StreamCallInfo, StreamCodec } from "../method.ts";

/** From so many bytes of answers that are not on their way yet nothing more is read: a connection has many streams. */
const maxUntakenBytes = 32 * 1024;

/**
 * Answers batches as they are decided. It reads on only while answers are taken and few checks are undecided. However it
 * ends, by the caller, by a batch that is none or because the server stops: what was begun is answered first, and what was
 * not begun is not decided.
 */
export function checkStream(
  stream: MessageStream,
  codec: StreamCodec<CheckBatchRequest, BatchAnswer>,
  context: GrpcContext,
  call: StreamCallInfo,
): void {
  let undecided = 0;
  let untakenBytes = 0;
  let ending = false;
  let failure: unknown;
  let over = false;

  /** Goes on as things stand: reads, waits or ends. */
  function proceed(): void {
    if (over) return;
    if (ending && undecided === 0) {
      leave();
      if (failure === undefined) stream.end();
      else stream.fail(failure);
    } else if (ending || isFull()) stream.pause();
    else stream.resume();
  }

  function isFull(): boolean {
    return untakenBytes >= maxUntakenBytes || undecided >= context.shares.share;
  }

  function wait(checks: number): void {
    if (undecided === 0) {
      context.shares.begin();
      stream.busy(true);
    }
    undecided += checks;
  }

  function waitNoMore(checks: number): void {
    undecided -= checks;
    if (undecided > 0) return;
    context.shares.end();
    stream.busy(false);
  }

  function leave(): void {
    over = true;
  }

  function end(): void {
    ending = true;
    proceed();
  }

  function fail(error: unknown): void {
    failure ??= error;
    end();
  }

  function answer(sequence: number, results: CheckResult[]): void {
    if (over) return;
    const bytes = codec.write({ sequence, results });
    untakenBytes += bytes.length;
    stream.write(bytes, () => {
      untakenBytes -= bytes.length;
      proceed();
    });
  }

  function take(bytes: Uint8Array): void {
    if (over || ending) return;
    try {
      call.admitAgain();
      const batch = codec.read(bytes);
      const results = checkResults(batch, context, call);
      if (results instanceof Promise) {
        wait(batch.checks.length);
        results
          .then((decided) => {
            waitNoMore(batch.checks.length);
            answer(batch.sequence, decided);
            proceed();
          })
          .catch(fail);
      } else answer(batch.sequence, results);
      if (isFull()) stream.pause();
    } catch (error) {
      fail(error);
    }
  }

  stream.onOver(leave);
  stream.read(take, end);
  stream.onOver(context.draining.onBegin(end));
}
