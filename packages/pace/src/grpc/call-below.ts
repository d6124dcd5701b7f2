import type { NextCall } from "@grpc/grpc-js";

/** What is below an interceptor. grpc-js does not export the name. */
export type CallBelow = ReturnType<NextCall>;

export type MessageContext = Parameters<CallBelow["sendMessageWithContext"]>[0];
