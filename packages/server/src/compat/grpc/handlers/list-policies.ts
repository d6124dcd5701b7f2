import type { ServerWritableStream } from "@grpc/grpc-js";
import type { ListPoliciesRequest, Policy as PolicyMessage } from "@sluice/protocol";
import { SluiceError } from "sluice";
import type { ControlPlane, Listed, PolicyControl, StoredPolicy } from "../../../control-plane/control-plane.ts";
import type { Actor } from "../../../data-plane/access/actor.ts";
import type {
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

/** Tells every policy, part by part, no faster than the caller takes them. */
export function listPolicies(control: ControlPlane | undefined): WatchHandler<ListPoliciesRequest, PolicyMessage> {
  return (request, stream, codec, context, info) =>
    sendPolicies(requireControl(control).policies, request, stream, codec, context, info);
}

function sendPolicies(
  policies: PolicyControl,
  { ownerTeam }: ListPoliciesRequest,
  stream: ServerWritableStream<Uint8Array, Uint8Array>,
  codec: StreamCodec<ListPoliciesRequest, PolicyMessage>,
  context: GrpcContext,
  { caller, from, admitAgain }: StreamCallInfo,
): void {
  const actor: Actor = { caller, from };
  let over = false;
  const leave = (): void => {
    over = true;
  };
  stream.on("cancelled", leave);
  stream.on("close", leave);

  async function tellAll(): Promise<void> {
    for (let after: string | undefined; !over; ) {
      const part: Listed<StoredPolicy> = await policies.list(actor, {
        after,
        limit: partSize,
        owner: ownerTeam === "" ? undefined : ownerTeam,
      });
      for (const stored of part.items) {
        const bytes = codec.write(policyMessage(stored, await policyCreatedAt(policies, actor, stored)));
        if (over) return;
        await send(stream, bytes);
      }
      if (part.next === undefined) break;
      after = part.next;
      // Who reads slowly may have lost their token meanwhile.
      admitAgain();
      // What has not been told then can be asked elsewhere.
      if (context.draining.aborted) throw new SluiceError("not_ready", "the server is about to stop; ask another one");
    }
    if (!over) stream.end();
  }

  tellAll().catch((error: unknown) => {
    if (!over) stream.emit("error", codec.tell(error));
  });
}

/** Resolves when the bytes are sent, or the caller has left. Policies may be large, so only one is queued at a time. */
function send(stream: ServerWritableStream<Uint8Array, Uint8Array>, bytes: Uint8Array): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      for (const event of ["cancelled", "close", "error"]) stream.removeListener(event, done);
      resolve();
    };
    for (const event of ["cancelled", "close", "error"]) stream.on(event, done);
    stream.write(bytes, done);
  });
}
