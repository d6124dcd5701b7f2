import type { NextCall } from "@grpc/grpc-js";

/** The call that an interceptor wraps. grpc-js does not export the type. */
export type CallBelow = ReturnType<NextCall>;

export type MessageContext = Parameters<CallBelow["sendMessageWithContext"]>[0];
