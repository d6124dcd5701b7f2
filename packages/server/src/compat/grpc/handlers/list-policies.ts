import type { ListPoliciesRequest, Policy as PolicyMessage } from "@sluice/protocol";
import { SluiceError } from "sluice";
import type { Listed } from "../../../control-plane/change.ts";
import type { ControlPlane } from "../../../control-plane/control-plane.ts";
import type { PolicyControl, StoredPolicy } from "../../../control-plane/policy-control.ts";
import type { Actor } from "../../../data-plane/access/actor.ts";
import type {
  AnswerStream,
  GrpcContext,
  StreamCallInfo,
  StreamCodec,
  WatchHandler,
} from "../../../data-plane/transports/grpc/method.ts";
import { policyCreatedAt } from "../policy-created-at.ts";
import { policyMessage } from "../policy-message.ts";
import { requireControl } from "../require-control.ts";

/** How many are read from the store at once. */
const partSize = 100;

/** Sends every policy, page by page, no faster than the caller reads. */
export function listPolicies(control: ControlPlane | undefined): WatchHandler<ListPoliciesRequest, PolicyMessage> {
  return (request, stream, codec, context, info) =>
    sendPolicies(requireControl(control).policies, request, stream, codec, context, info);
}

function sendPolicies(
  policies: PolicyControl,
  { ownerTeam }: ListPoliciesRequest,
  stream: AnswerStream,
  codec: StreamCodec<ListPoliciesRequest, PolicyMessage>,
  context: GrpcContext,
  call: StreamCallInfo,
): void {
  const actor: Actor = { caller: call.caller, from: call.from };
  let over = false;
  let whenOver = (): void => {};
  stream.onOver(() => {
    over = true;
    whenOver();
  });

  /** Resolves when the bytes are sent, or the caller has disconnected. Policies may be large, so only one is queued at a time. */
  const send = (bytes: Uint8Array): Promise<void> =>
    new Promise((resolve) => {
      whenOver = resolve;
      stream.write(bytes, resolve);
    });

  async function sendAll(): Promise<void> {
    for (let after: string | undefined; !over; ) {
      const part: Listed<StoredPolicy> = await policies.list(actor, {
        after,
        limit: partSize,
        owner: ownerTeam === "" ? undefined : ownerTeam,
      });
      for (const stored of part.items) {
        const bytes = codec.write(policyMessage(stored, await policyCreatedAt(policies, actor, stored)));
        if (over) return;
        await send(bytes);
      }
      if (part.next === undefined) break;
      after = part.next;
      // A slow reader may have lost its token meanwhile.
      call.admitAgain();
      // Another server can send the rest.
      if (context.draining.begun) throw new SluiceError("not_ready", "the server is about to stop; ask another one");
    }
    if (!over) stream.end();
  }

  sendAll().catch((error: unknown) => {
    if (!over) stream.fail(error);
  });
}
