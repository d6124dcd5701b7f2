import { writeFileSync } from "node:fs";
import path from "node:path";
import { type Latencies, openLoop } from "../measure/latencies.ts";
import { framed } from "../service/framed.ts";
import { latenciesByH2load, loadByH2load, loadByRedisBenchmark, loadByWrk } from "../service/load-tools.ts";
import { createRespCaller } from "../service/resp-caller.ts";
import { wrkScript } from "../service/wrk-script.ts";
import type { Question } from "./questions.ts";
import type { ServerUnderLoad } from "./start-server-under-load.ts";

const grpc = { connections: 8, streams: 64 };
const http = { connections: 32 };

/** Bytes before each message of gRPC. */
const messageHead = 5;

/** What a server made of as many requests as a load tool could send. */
export interface Saturated {
  readonly requests: number;
  readonly perSecond: number;
}

/** Puts one question to one server, again and again. */
export interface QuestionLoad {
  /** As fast as answers come, for about this long at the rate that the last call found. */
  saturate(seconds: number): Promise<Saturated>;
  /** At a given rate; resolves with what each request took. */
  pace(perSecond: number, seconds: number): Promise<Latencies>;
}

/** The first call of `saturate` sends this many, because no rate is known. */
const firstRequests = 200;

export function createLoad(question: Question, { name, ports }: ServerUnderLoad, folder: string): QuestionLoad {
  const file = path.join(folder, `${name}-${question.protocol}`);
  let rate: number | undefined;
  const count = (seconds: number): number =>
    rate === undefined ? firstRequests : Math.max(firstRequests, Math.round(rate * seconds));
  const saturateCounted = async (
    seconds: number,
    load: (requests: number) => Promise<{ readonly perSecond: number }>,
  ): Promise<Saturated> => {
    const requests = count(seconds);
    const { perSecond } = await load(requests);
    rate = perSecond;
    return { requests, perSecond };
  };
  switch (question.protocol) {
    case "grpc": {
      writeFileSync(file, framed(question.message));
      const url = `http://127.0.0.1:${ports.grpc}${question.path}`;
      return {
        saturate: (seconds) =>
          saturateCounted(seconds, async (requests) => {
            const load = await loadByH2load(url, file, { requests, ...grpc });
            // gRPC reports errors with status 200 and without a message.
            if (!(load.bodyBytes! > requests * messageHead)) throw new Error(`${name} answered with errors over gRPC`);
            return load;
          }),
        pace: (perSecond, seconds) =>
          latenciesByH2load({
            ...{ url, bodyFile: file, protocol: "grpc", connections: grpc.connections },
            ...{ perSecond, seconds, logFile: `${file}.log` },
          }),
      };
    }
    case "http": {
      writeFileSync(file, question.body.replace("%d", "7"));
      writeFileSync(`${file}.lua`, wrkScript(question.body));
      const url = `http://127.0.0.1:${ports.http}${question.path}`;
      return {
        saturate: async (seconds) => {
          const { perSecond } = await loadByWrk(url, `${file}.lua`, seconds, http.connections);
          return { requests: perSecond * seconds, perSecond };
        },
        pace: (perSecond, seconds) =>
          latenciesByH2load({
            ...{ url, bodyFile: file, protocol: "http", connections: http.connections },
            ...{ perSecond, seconds, logFile: `${file}.log` },
          }),
      };
    }
    case "resp":
      return {
        saturate: (seconds) =>
          saturateCounted(seconds, (requests) =>
            loadByRedisBenchmark(ports.resp, requests, question.command, question.size),
          ),
        pace: async (perSecond, seconds) => {
          const { connections } = question.size;
          const callers = await Promise.all(Array.from({ length: connections }, () => createRespCaller(ports.resp)));
          const ask = (i: number): Promise<void> =>
            callers[i % connections]!.send(
              ...question.command.map((word) => word.replace("__rand_int__", `${i % 1_000}`)),
            );
          try {
            return await openLoop(ask, { from: 0, perSecond, forMs: seconds * 1_000 });
          } finally {
            for (const caller of callers) caller.close();
          }
        },
      };
  }
}
