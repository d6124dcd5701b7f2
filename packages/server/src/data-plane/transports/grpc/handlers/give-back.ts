import type { GiveBackRequest, GiveBackResponse } from "@sluice/protocol";
import { SluiceError } from "sluice";
import type { GrpcContext } from "../method.ts";

const maxReceiptLength = 16_384;

export async function giveBack({ receipt }: GiveBackRequest, context: GrpcContext): Promise<GiveBackResponse> {
  if (receipt === "" || receipt.length > maxReceiptLength) {
    const message = "must be what Decision.receipt held";
    throw new SluiceError("invalid_request", `receipt ${message}`, [{ path: ["receipt"], message }]);
  }
  return { given: await context.limiter.give(receipt) };
}
