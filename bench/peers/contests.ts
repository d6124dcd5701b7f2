import {
  envoyQuestion,
  gubernatorPost,
  gubernatorQuestion,
  type Question,
  sluiceBatch,
  sluicePost,
  sluiceQuestion,
  sluiceThrottle,
  throttlecrabPost,
  throttlecrabQuestion,
  throttlecrabThrottle,
} from "./questions.ts";
import type { ServerName } from "./start-server-under-load.ts";

/** Servers that do the same work over the same protocol, with their counters in the same place. */
export interface Contest {
  readonly counters: "memory" | "valkey";
  /** Decisions in one request. */
  readonly perRequest: number;
  /** What each of them is asked. */
  readonly servers: Partial<Record<ServerName, Question>>;
}

export type ContestName =
  | "rls_valkey"
  | "rls_memory"
  | "grpc_memory"
  | "grpc_batch_memory"
  | "http_memory"
  | "resp_memory"
  | "resp_pipelined_memory";

const perBatch = 64;
const oneByOne = { connections: 32, pipeline: 1 };
const pipelined = { connections: 8, pipeline: 16 };

export const contests: Readonly<Record<ContestName, Contest>> = {
  rls_valkey: {
    counters: "valkey",
    perRequest: 1,
    servers: {
      sluice: envoyQuestion,
      sluice_leased: envoyQuestion,
      envoy_ratelimit: envoyQuestion,
      envoy_ratelimit_pipelined: envoyQuestion,
    },
  },
  rls_memory: { counters: "memory", perRequest: 1, servers: { sluice: envoyQuestion } },
  grpc_memory: {
    counters: "memory",
    perRequest: 1,
    servers: { sluice: sluiceQuestion, gubernator: gubernatorQuestion(1), throttlecrab: throttlecrabQuestion },
  },
  grpc_batch_memory: {
    counters: "memory",
    perRequest: perBatch,
    servers: { sluice: sluiceBatch(perBatch), gubernator: gubernatorQuestion(perBatch) },
  },
  http_memory: {
    counters: "memory",
    perRequest: 1,
    servers: { sluice: sluicePost, gubernator: gubernatorPost, throttlecrab: throttlecrabPost },
  },
  resp_memory: {
    counters: "memory",
    perRequest: 1,
    servers: { sluice: sluiceThrottle(oneByOne), throttlecrab: throttlecrabThrottle(oneByOne) },
  },
  resp_pipelined_memory: {
    counters: "memory",
    perRequest: 1,
    servers: { sluice: sluiceThrottle(pipelined), throttlecrab: throttlecrabThrottle(pipelined) },
  },
};

export const contestNames = Object.keys(contests) as readonly ContestName[];
