import { status } from "@grpc/grpc-js";
import {
  ServerReflectionDefinition as reflection,
  type ServerReflectionRequest,
  type ServerReflectionResponse,
} from "@sluice/protocol/reflection";
import { createLimiter } from "sluice";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { grpcMethods } from "../../../boot/api-tables.ts";
import { connectForTest, type GrpcTestClient } from "../../../testing/grpc-client.ts";
import { createTestService, type ListeningTransport, listenForTest } from "../../../testing/test-service.ts";
import { wholeGrpcServer } from "../../../testing/whole-servers.ts";

let listening: ListeningTransport;
let client: GrpcTestClient;

beforeAll(async () => {
  listening = await listenForTest("grpc", wholeGrpcServer(createTestService(createLimiter({}))));
  client = connectForTest(listening.address);
});

afterAll(async () => {
  client.close();
  await listening.close();
});

const alpha = { ...reflection, fullName: "grpc.reflection.v1alpha.ServerReflection" };

async function ask(
  questions: readonly Partial<ServerReflectionRequest>[],
  service: typeof reflection | typeof alpha = reflection,
): Promise<readonly ServerReflectionResponse[]> {
  const stream = client.stream(service, "serverReflectionInfo");
  const answers: ServerReflectionResponse[] = [];
  stream.on("data", (answer) => answers.push(answer));
  for (const question of questions) stream.write({ host: "", ...question });
  stream.end();
  await new Promise((resolve, reject) => stream.on("end", resolve).on("error", reject));
  return answers;
}

describe("reflection", () => {
  it("lists every service that has a method, under both of its names", async () => {
    for (const service of [reflection, alpha]) {
      const [answer] = await ask([{ listServices: "*" }], service);
      const listed = answer!.listServicesResponse!.service.map(({ name }) => name);
      const served = new Set(grpcMethods(undefined).map(({ definition }) => definition.path.split("/")[1]!));
      served.delete(alpha.fullName);
      // Known without a package, it has no file to be described by.
      served.delete("RateLimiter");
      served.add("envoy.service.ratelimit.v3.RateLimitService");
      expect(listed).toEqual([...served].sort());
    }
  });

  it("hands out a file with all that it imports, by its name, by a message and by a method", async () => {
    const answers = await ask([
      { fileByFilename: "envoy/service/ratelimit/v3/rls.proto" },
      { fileContainingSymbol: "envoy.service.ratelimit.v3.RateLimitResponse.RateLimit.Unit" },
      { fileContainingSymbol: "envoy.service.ratelimit.v3.RateLimitService.ShouldRateLimit" },
    ]);
    const files = answers.map((answer) => answer.fileDescriptorResponse!.fileDescriptorProto);
    expect(files[0]!.length).toBeGreaterThan(5);
    expect(Buffer.from(files[0]![0]!).toString("latin1")).toContain("envoy/service/ratelimit/v3/rls.proto");
    expect(files[1]).toEqual(files[0]);
    expect(files[2]).toEqual(files[0]);
  });

  it("says what it does not know", async () => {
    const answers = await ask([
      { fileByFilename: "nowhere.proto" },
      { fileContainingSymbol: "no.Such" },
      { allExtensionNumbersOfType: "no.Such" },
      { fileContainingExtension: { containingType: "sluice.v1.Decision", extensionNumber: 1 } },
      {},
      { allExtensionNumbersOfType: "sluice.v1.Decision" },
    ]);
    expect(answers.map(({ errorResponse }) => errorResponse?.errorCode)).toEqual([
      status.NOT_FOUND,
      status.NOT_FOUND,
      status.NOT_FOUND,
      status.NOT_FOUND,
      status.INVALID_ARGUMENT,
      undefined,
    ]);
  });
});
