import type { KnownException } from "../judge-results.ts";

const noBody =
  "h2spec asks with GET, which is no gRPC: grpc-js answers 415 without a body, and the case needs one to look at";
const closedIgnored = "Node ignores frames on a stream that is closed, and keeps the connection";
const priorities = "Node does not look at priorities, which RFC 9113 deprecates";

/** Cases of h2spec that an engine does not pass, by engine. One that passes must be taken off the list. */
export const h2specExceptions: Readonly<Record<string, readonly KnownException[]>> = {
  "grpc-js": [
    ...["generic/2/2", "generic/2/3", "http2/6.5.3/1", "http2/6.9.1/1", "http2/6.9.2/1", "http2/6.9.2/2"].map((id) => ({
      id,
      because: noBody,
    })),
    ...["http2/5.1/8", "http2/5.1/9", "http2/5.1/11", "http2/5.1/12"].map((id) => ({ id, because: closedIgnored })),
    { id: "http2/5.1.1/2", because: "Node ignores a stream whose number is too small, and keeps the connection" },
    ...["http2/5.3.1/2", "http2/6.3/1"].map((id) => ({ id, because: priorities })),
    { id: "http2/6.7/2", because: "Node closes a connection that acknowledges a PING that was not sent" },
    { id: "http2/6.9.1/3", because: "Node closes the connection, and not the stream alone" },
  ],
};
