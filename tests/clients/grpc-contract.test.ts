import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { curlAdapter } from "./adapters/curl-adapter.ts";
import { grpcJsAdapter } from "./adapters/grpc-js-adapter.ts";
import { grpcioAdapter } from "./adapters/grpcio-adapter.ts";
import { nghttpAdapter } from "./adapters/nghttp-adapter.ts";
import { casesFor, contractCases } from "./contract/contract-cases.ts";
import type { ContractClient } from "./contract/contract-client.ts";
import { type ContractWorld, openContractWorld } from "./contract/contract-world.ts";
import { grpcEngines } from "./contract/grpc-engines.ts";

const adapters = [grpcJsAdapter, grpcioAdapter, curlAdapter, nghttpAdapter];

describe.each(grpcEngines)("gRPC by $name", (engine) => {
  let world: ContractWorld;

  beforeAll(async () => {
    world = await openContractWorld(engine);
  });

  afterAll(() => world?.close());

  describe.each(adapters)("for $name", (adapter) => {
    let client: ContractClient;

    beforeAll(async () => {
      client = await adapter.open();
    });

    afterAll(() => client?.close());

    it.each(casesFor(adapter))("$name", (one) => one.run(client, world));
  });
});

describe("the contract", () => {
  it("has a client for every case", () => {
    const played = new Set(adapters.flatMap(casesFor));
    expect(contractCases.filter((one) => !played.has(one)).map(({ name }) => name)).toEqual([]);
  });
});
