import type { KnownException } from "./judge-results.ts";

/** Cases of the contract that a client does not pass with an engine, by engine and client. An id is the case's name. */
export const clientExceptions: Readonly<Record<string, Readonly<Record<string, readonly KnownException[]>>>> = {
  Sluice: {
    tonic: [
      {
        id: "stops under traffic, by GOAWAY, without a failed call",
        because:
          "tonic fails calls that it had not sent yet when GOAWAY came, with CANCELLED, and does not repeat them",
        varies: true,
      },
    ],
  },
  "grpc-js": {
    tonic: [
      {
        id: "stops under traffic, by GOAWAY, without a failed call",
        because: "Node sends GOAWAY in one step, and tonic does not repeat a call that was on its way then",
        varies: true,
      },
    ],
  },
};
