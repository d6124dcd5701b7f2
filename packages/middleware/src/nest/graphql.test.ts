import "reflect-metadata";
import { ApolloDriver, type ApolloDriverConfig } from "@nestjs/apollo";
import { type INestApplication, Module } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { Args, Context, GraphQLModule, Mutation, Query, Resolver } from "@nestjs/graphql";
import { limit } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { Limits } from "../limits.ts";
import type { NestRequest } from "./exchange.ts";
import { findTicket, RateLimit, RateLimitModule, type RateLimitModuleOptions, SkipRateLimit } from "./index.ts";

class Greetings {
  hello(name: string): string {
    return `hello ${name}`;
  }
  free(): string {
    return "free";
  }
  own(): string {
    return "own";
  }
  async greet({ req }: { req: NestRequest }): Promise<number> {
    const ticket = findTicket(req)!;
    await ticket.charge(5);
    return ticket.decision.remaining!;
  }
}

function decorate(method: keyof Greetings, ...decorators: readonly MethodDecorator[]): void {
  const descriptor = Object.getOwnPropertyDescriptor(Greetings.prototype, method)!;
  for (const one of decorators) one(Greetings.prototype, method, descriptor);
}

Resolver()(Greetings);
decorate("hello", Query("hello"));
Args("name")(Greetings.prototype, "hello", 0);
decorate("free", Query("free"), SkipRateLimit());
decorate("own", Query("own"), RateLimit("1/h"));
decorate("greet", Mutation("greet"));
Context()(Greetings.prototype, "greet", 0);

const typeDefs = `
  type Query { hello(name: String): String, free: String, own: String }
  type Mutation { greet: Int }
`;

const running: INestApplication[] = [];
afterEach(async () => {
  for (const app of running.splice(0)) await app.close();
});

interface GraphqlAnswer {
  readonly headers: Headers;
  readonly data: Readonly<Record<string, unknown>> | null | undefined;
  readonly errors: readonly { message: string; extensions: Record<string, unknown> }[];
}

type Asks = (query: string, headers?: Readonly<Record<string, string>>) => Promise<GraphqlAnswer>;

async function start(limits: Limits, options?: RateLimitModuleOptions): Promise<Asks> {
  class AppModule {}
  Module({
    imports: [
      GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, typeDefs, graphiql: false }),
      RateLimitModule.forRoot(limits, options),
    ],
    providers: [Greetings],
  })(AppModule);
  const app = await NestFactory.create(AppModule, { logger: false, abortOnError: false });
  running.push(app);
  await app.listen(0, "127.0.0.1");
  const url = `${await app.getUrl()}/graphql`;
  return async (query, headers = {}) => {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", ...headers },
      body: JSON.stringify({ query }),
    });
    const { data, errors = [] } = (await answer.json()) as Pick<GraphqlAnswer, "data"> & Partial<GraphqlAnswer>;
    return { headers: answer.headers, data, errors };
  };
}

describe("Nest and GraphQL", () => {
  it("counts operations by client address, sends headers, and refuses with the problem in the error", async () => {
    const asks = await start("2/h");
    const first = await asks('{ hello(name: "ada") }');
    expect(first.data).toEqual({ hello: "hello ada" });
    expect(first.headers.get("x-ratelimit-remaining")).toBe("1");
    await asks('{ hello(name: "ada") }');
    const { data, errors, headers } = await asks('{ hello(name: "ada") }');
    expect(data).toEqual({ hello: null });
    expect(errors).toMatchObject([
      {
        message: expect.stringContaining("allows 2 per hour"),
        extensions: { code: "TOO_MANY_REQUESTS", status: 429, problem: { reason: "over_limit", remaining: 0 } },
      },
    ]);
    expect(Number(headers.get("retry-after"))).toBeGreaterThanOrEqual(1);
    expect(headers.get("content-type")).toMatch(/^application\/(graphql-response\+)?json/);
  });

  it("counts every field of a query, whatever its alias", async () => {
    const asks = await start("3/h");
    const { data, errors } = await asks(
      '{ a: hello(name: "1") b: hello(name: "2") c: hello(name: "3") d: hello(name: "4") }',
    );
    expect(Object.values(data!).filter((value) => value !== null)).toHaveLength(3);
    expect(errors).toHaveLength(1);
  });

  it("uses type and field as the endpoint", async () => {
    const policies = {
      policies: [
        {
          id: "hello",
          match: { endpoint: "/graphql/Query/hello" },
          limits: [{ windows: ["1/h"] }],
          on_failure: "open",
        },
        { id: "greet", match: { endpoint: "/graphql/Mutation/*" }, limits: [{ windows: ["8/h"] }], on_failure: "open" },
      ],
      default: { unlimited: true },
    };
    const asks = await start({ policies });
    expect((await asks('{ hello(name: "a") }')).headers.get("ratelimit-policy")).toMatch(/^"hello\//);
    expect((await asks('{ hello(name: "a") }')).errors).toHaveLength(1);
    expect((await asks("mutation { greet }")).headers.get("ratelimit-policy")).toMatch(/^"greet\//);
    const byEndpoint = await start(limit("1/h").by("endpoint"));
    expect((await byEndpoint('{ hello(name: "a") }')).errors).toEqual([]);
    expect((await byEndpoint("mutation { greet }")).errors).toEqual([]);
    expect((await byEndpoint('{ other: hello(name: "b") }')).errors).toHaveLength(1);
  });

  it("knows the request: its headers, its ticket", async () => {
    const user = (request: NestRequest): string => request.headers["x-user"];
    const asks = await start(limit("20/h").by("user"), { dimensions: { user } });
    expect((await asks("mutation { greet }", { "x-user": "ada" })).data).toEqual({ greet: 19 });
    expect((await asks("mutation { greet }", { "x-user": "ada" })).data).toEqual({ greet: 13 });
    expect((await asks("mutation { greet }", { "x-user": "bob" })).data).toEqual({ greet: 19 });
  });

  it("obeys decorators", async () => {
    const asks = await start("9/h");
    const { headers } = await asks("{ free }");
    expect(headers.get("x-ratelimit-limit")).toBeNull();
    expect((await asks("{ own }")).headers.get("x-ratelimit-limit")).toBe("1");
    expect((await asks("{ own }")).errors).toHaveLength(1);
    expect((await asks('{ hello(name: "a") }')).headers.get("x-ratelimit-remaining")).toBe("8");
  });

  it("charges an answer by its bytes once, however many fields it has", async () => {
    const seen: number[] = [];
    const asks = await start("1000/h", {
      charge: (_request, { bytes }) => {
        seen.push(bytes);
        return bytes;
      },
    });
    await asks('{ a: hello(name: "1") b: hello(name: "2") c: hello(name: "3") }');
    await expect.poll(() => seen.length, { timeout: 30_000 }).toBe(3);
    const length = JSON.stringify({ data: { a: "hello 1", b: "hello 2", c: "hello 3" } }).length;
    expect(seen.toSorted((a, b) => a - b)).toEqual([0, 0, length + 1]);
  });
});
