import {
  Catch,
  Controller,
  Get,
  type HttpException,
  type INestApplication,
  Injectable,
  type ModuleMetadata,
  Param,
  Scope,
  UseGuards,
  VersioningType,
} from "@nestjs/common";
import nest from "@nestjs/core/package.json" with { type: "json" };
import { type NestRequest, RateLimit, RateLimitGuard, RateLimitModule, SkipRateLimit } from "@sluice/middleware/nest";
import { limit, MemoryCounters } from "sluice";
import { afterEach, describe, expect, it } from "vitest";
import type { RunningApp } from "./framework-under-test.ts";
import { ask } from "./http-exchange.ts";
import { describeMiddleware } from "./middleware-contract.ts";
import { contractRoutes, decorate, oldest, type Platform, startNest } from "./nest-app.ts";

const platforms: readonly Platform[] = oldest ? ["express"] : ["express", "fastify"];

for (const platform of platforms) {
  describeMiddleware({
    name: `Nest ${nest.version} on ${platform}`,
    knowsRoutes: true,
    header: (name) => (request: NestRequest) => request.headers[name],
    start: (limits, options) =>
      startNest({ imports: [RateLimitModule.forRoot(limits, options)], controllers: [contractRoutes] }, platform),
  });
}

const running: RunningApp[] = [];
afterEach(async () => {
  for (const app of running.splice(0)) await app.close();
});

async function start(
  metadata: ModuleMetadata,
  platform: Platform = "express",
  prepare?: (app: INestApplication) => void,
): Promise<string> {
  const app = await startNest(metadata, platform, prepare);
  running.push(app);
  return app.url;
}

/** A controller with two routes, `one` and `two`, that answer with their names. */
function createController(path: string): { new (): { one(): string; two(): string } } {
  class Routes {
    one(): string {
      return "one";
    }
    two(): string {
      return "two";
    }
  }
  Controller(path)(Routes);
  decorate(Routes.prototype, "one", Get("one"));
  decorate(Routes.prototype, "two", Get("two"));
  return Routes;
}

async function left(url: string): Promise<string> {
  const { status, headers } = await ask(url);
  return status === 200 ? String(headers["x-ratelimit-remaining"]) : `refused ${status}`;
}

describe(`Nest ${nest.version}: decorators`, () => {
  it("a handler's own limits replace the enclosing ones", async () => {
    const Shop = createController("shop");
    decorate(Shop.prototype, "one", RateLimit("2/h"));
    const url = await start({ imports: [RateLimitModule.forRoot("5/h")], controllers: [Shop] });
    expect(await left(`${url}/shop/one`)).toBe("1");
    expect(await left(`${url}/shop/one`)).toBe("0");
    expect(await left(`${url}/shop/one`)).toBe("refused 429");
    expect(await left(`${url}/shop/two`)).toBe("4");
  });

  it("a controller's limits are one for all of its handlers, but for those with their own", async () => {
    const Shop = createController("shop");
    RateLimit("3/h")(Shop);
    const Mixed = createController("mixed");
    RateLimit(["3/h"])(Mixed);
    decorate(Mixed.prototype, "two", RateLimit(limit("7/h").by("ip")));
    const url = await start({ imports: [RateLimitModule.forRoot("9/h")], controllers: [Shop, Mixed] });
    expect(await left(`${url}/shop/one`)).toBe("2");
    expect(await left(`${url}/shop/two`)).toBe("1");
    expect(await left(`${url}/mixed/one`)).toBe("2");
    expect(await left(`${url}/mixed/two`)).toBe("6");
  });

  it("a handler may change how the enclosing limits are checked: its cost, and additional dimensions", async () => {
    const Shop = createController("shop");
    RateLimit({ cost: 3 })(Shop);
    decorate(
      Shop.prototype,
      "two",
      RateLimit({ cost: 4, dimensions: { tenant: (request) => request.headers["x-tenant"] } }),
    );
    const limits = limit("10/h").by("user", "tenant");
    const user = (request: NestRequest): string => request.headers["x-user"];
    const url = await start({
      imports: [RateLimitModule.forRoot(limits, { dimensions: { user } })],
      controllers: [Shop],
    });
    const leftFor = async (path: string, name: string, tenant: string): Promise<unknown> =>
      (await ask(`${url}/shop/${path}`, { headers: { "x-user": name, "x-tenant": tenant } })).headers[
        "x-ratelimit-remaining"
      ];
    expect(await leftFor("one", "ada", "t1")).toBe("7");
    expect(await leftFor("two", "ada", "t1")).toBe("6");
    expect(await leftFor("two", "ada", "t2")).toBe("6");
    expect(await leftFor("two", "bob", "t1")).toBe("6");
    expect(await leftFor("two", "ada", "t1")).toBe("2");
    // The controller's limits do not know of tenants.
    expect(await leftFor("one", "ada", "t2")).toBe("4");
  });

  it("takes policies in full", async () => {
    const Shop = createController("shop");
    const policies = { policies: [{ id: "own", limits: [{ windows: ["2/h"] }], on_failure: "open" }] };
    decorate(Shop.prototype, "one", RateLimit({ limits: { policies }, headers: ["legacy"] }));
    const url = await start({ imports: [RateLimitModule.forRoot("5/h")], controllers: [Shop] });
    const { headers } = await ask(`${url}/shop/one`);
    expect(headers["x-ratelimit-policy"]).toBe("own");
    expect(headers["x-ratelimit-remaining"]).toBe("1");
    expect(headers.ratelimit).toBeUndefined();
  });

  it("one decorator in several places makes several limits, also for an inherited handler", async () => {
    const once = RateLimit("1/h");
    const Shop = createController("shop");
    decorate(Shop.prototype, "one", once);
    decorate(Shop.prototype, "two", once);
    class Branch extends Shop {}
    Controller("branch")(Branch);
    const url = await start({ imports: [RateLimitModule.forRoot("9/h")], controllers: [Shop, Branch] });
    for (const path of ["shop/one", "shop/two", "branch/one", "branch/two"]) {
      expect(await left(`${url}/${path}`)).toBe("0");
      expect(await left(`${url}/${path}`)).toBe("refused 429");
    }
  });

  it("skips handlers and controllers, but not a handler's own limits", async () => {
    const Shop = createController("shop");
    decorate(Shop.prototype, "one", SkipRateLimit());
    const Health = createController("health");
    SkipRateLimit()(Health);
    decorate(Health.prototype, "two", RateLimit({ cost: 2 }));
    const url = await start({ imports: [RateLimitModule.forRoot("4/h")], controllers: [Shop, Health] });
    for (let i = 0; i < 5; i++) {
      for (const path of ["shop/one", "health/one"]) {
        const { status, headers } = await ask(`${url}/${path}`);
        expect(status).toBe(200);
        expect(headers["x-ratelimit-limit"]).toBeUndefined();
      }
    }
    expect(await left(`${url}/shop/two`)).toBe("3");
    expect(await left(`${url}/health/two`)).toBe("1");
  });

  it("one-line limits use the counters of the enclosing ones, under separate names", async () => {
    const counters = new MemoryCounters();
    const startShop = async (): Promise<string> => {
      const Shop = createController("shop");
      decorate(Shop.prototype, "one", RateLimit("3/h"));
      Object.defineProperty(Shop, "name", { value: "Shop" });
      const Till = createController("till");
      RateLimit("3/h", { name: "Shop.two" })(Till);
      return start({ imports: [RateLimitModule.forRoot("3/h", { counters })], controllers: [Shop, Till] });
    };
    const urls = [await startShop(), await startShop()];
    expect(await left(`${urls[0]}/shop/one`)).toBe("2");
    expect(await left(`${urls[1]}/shop/one`)).toBe("1");
    expect(await left(`${urls[0]}/shop/two`)).toBe("2");
    expect(await left(`${urls[1]}/shop/two`)).toBe("1");
    expect(await left(`${urls[0]}/till/one`)).toBe("2");
    expect(await left(`${urls[1]}/till/two`)).toBe("1");
    expect((await ask(`${urls[0]}/shop/one`)).headers["ratelimit-policy"]).toMatch(/^"Shop\.one\//);
  });

  it("count in the counters of a limiter around them, too", async () => {
    const counters = new MemoryCounters();
    const limits = {
      counters,
      policies: { policies: [{ id: "all", limits: [{ windows: ["9/h"] }], on_failure: "open" }] },
    };
    const urls: string[] = [];
    for (let i = 0; i < 2; i++) {
      const Shop = createController("shop");
      decorate(Shop.prototype, "one", RateLimit("3/h"));
      urls.push(await start({ imports: [RateLimitModule.forRoot(limits)], controllers: [Shop] }));
    }
    expect(await left(`${urls[0]}/shop/one`)).toBe("2");
    expect(await left(`${urls[1]}/shop/one`)).toBe("1");
  });

  it("two controllers of one name count separately, and need names if counters are shared", async () => {
    const createTwins = () =>
      ["a", "b"].map((path) => {
        const Twin = createController(path);
        RateLimit("3/h")(Twin);
        return Twin;
      });
    const counters = new MemoryCounters();
    const local = await start({
      imports: [RateLimitModule.forRoot("9/h", { counters })],
      controllers: createTwins(),
    });
    expect(await left(`${local}/a/one`)).toBe("2");
    expect(await left(`${local}/b/one`)).toBe("2");
    expect(await left(`${local}/b/two`)).toBe("1");
    // Stands in for remote counters.
    const remoteCounters = new Proxy(counters, {
      get: (target, name) => {
        const value: unknown = name === "local" ? false : Reflect.get(target, name, target);
        return typeof value === "function" ? value.bind(target) : value;
      },
    });
    const shared = await start({
      imports: [RateLimitModule.forRoot("9/h", { counters: remoteCounters, name: "all" })],
      controllers: createTwins(),
    });
    expect(await left(`${shared}/a/one`)).not.toBe("refused 500");
    expect(await left(`${shared}/b/one`)).toBe("refused 500");
  });

  it("report their mistakes at once", () => {
    expect(() => RateLimit("ten per second")).toThrow(/windows/);
    expect(() => RateLimit({ limits: "1/s", trustedProxies: -1 })).toThrow(/trustedProxies/);
    expect(() => RateLimit({ name: "x" })).toThrow(/name applies to one-line limits only/);
    expect(() => RateLimit(limit("1/s").by("ip"), { blockFor: "1m" })).toThrow(/blockFor applies to/);
  });
});

describe(`Nest ${nest.version}: the guard`, () => {
  it("runs where it is put, after guards that authenticate, and counts once if it is there twice", async () => {
    class Authenticates {
      canActivate(context: { switchToHttp(): { getRequest(): NestRequest } }): boolean {
        const request = context.switchToHttp().getRequest();
        request.user = { id: request.headers["x-user"] };
        return true;
      }
    }
    for (const everywhere of [false, true]) {
      const Shop = createController("shop");
      decorate(Shop.prototype, "one", UseGuards(Authenticates, RateLimitGuard));
      const by = limit("2/h").by("user");
      const user = everywhere
        ? (request: NestRequest) => request.headers["x-user"]
        : (request: { user?: { id: string } }) => request.user?.id;
      const url = await start({
        imports: [RateLimitModule.forRoot<NestRequest>(by, { everywhere, dimensions: { user } })],
        controllers: [Shop],
      });
      const asUser = async (path: string, name: string): Promise<unknown> =>
        (await ask(`${url}/shop/${path}`, { headers: { "x-user": name } })).headers["x-ratelimit-remaining"];
      expect(await asUser("one", "ada")).toBe("1");
      expect(await asUser("one", "ada")).toBe("0");
      expect(await asUser("one", "bob")).toBe("1");
      expect(await asUser("two", "eve")).toBe(everywhere ? "1" : undefined);
    }
  });

  it.each(platforms)("on %s, knows a route by its pattern with prefix and version", async (platform) => {
    class Orders {
      find(id: string): string {
        return id;
      }
    }
    Controller({ path: "orders", version: "1" })(Orders);
    decorate(Orders.prototype, "find", Get(":id"));
    Param("id")(Orders.prototype, "find", 0);
    const policies = {
      policies: [
        {
          id: "orders",
          match: { endpoint: "/api/v1/orders/:id" },
          limits: [{ by: ["endpoint"], windows: ["2/h"] }],
          on_failure: "open",
        },
      ],
      default: { unlimited: true },
    };
    const seen: unknown[] = [];
    const url = await start(
      {
        imports: [RateLimitModule.forRoot({ policies }, { onDecision: (decision) => seen.push(decision.policy) })],
        controllers: [Orders],
      },
      platform,
      (app) => {
        app.setGlobalPrefix("api");
        app.enableVersioning({ type: VersioningType.URI });
      },
    );
    expect(await left(`${url}/api/v1/orders/1`)).toBe("1");
    expect(await left(`${url}/api/v1/orders/2`)).toBe("0");
    expect(await left(`${url}/api/v1/orders/3`)).toBe("refused 429");
    expect(seen).toEqual(["orders", "orders", "orders"]);
  });

  it.each(platforms)("on %s, refuses in the app's own text", async (platform) => {
    const url = await start(
      {
        imports: [RateLimitModule.forRoot("1/h", { refuse: () => ({ body: "slowly, please" }) })],
        controllers: [createController("shop")],
      },
      platform,
    );
    await ask(`${url}/shop/one`);
    const refused = await ask(`${url}/shop/one`);
    expect(refused).toMatchObject({ status: 429, text: "slowly, please" });
    expect(refused.headers["content-type"]).toBe("text/plain; charset=utf-8");
  });

  it.each(platforms)("on %s, answers if the app's own refusal cannot be sent", async (platform) => {
    for (const refuse of [() => ({ status: 99 }), () => ({ contentType: "text/plain\r\n" })]) {
      const url = await start(
        { imports: [RateLimitModule.forRoot("1/h", { refuse })], controllers: [createController("shop")] },
        platform,
      );
      expect((await ask(`${url}/shop/one`)).status).toBe(200);
      expect((await ask(`${url}/shop/one`)).status).toBe(500);
    }
  });

  it.each(platforms)("on %s, a filter of the app sees a refusal as what Nest throws", async (platform) => {
    class AnswersAll {
      catch(exception: HttpException, host: { getArgByIndex(index: number): NestRequest }): void {
        const body = exception.getResponse() as Record<string, unknown>;
        host.getArgByIndex(1).status(exception.getStatus()).send({ filtered: body.reason, name: exception.name });
      }
    }
    Catch()(AnswersAll);
    const url = await start(
      { imports: [RateLimitModule.forRoot("1/h")], controllers: [createController("shop")] },
      platform,
      (app) => void app.useGlobalFilters(new AnswersAll()),
    );
    await ask(`${url}/shop/one`);
    const refused = await ask(`${url}/shop/one`);
    expect(refused.status).toBe(429);
    expect(JSON.parse(refused.text)).toEqual({ filtered: "over_limit", name: "RateLimitException" });
    expect(refused.headers["content-type"]).toMatch(/^application\/json/);
    expect(refused.headers["retry-after"]).toBeDefined();
  });
});

describe(`Nest ${nest.version}: limits that have to be waited for`, () => {
  class Config {
    readonly limits = "2/h";
  }
  class ConfigModule {}

  it("come from a factory", async () => {
    const url = await start({
      imports: [
        RateLimitModule.forRootAsync({
          imports: [{ module: ConfigModule, providers: [Config], exports: [Config] }],
          inject: [Config],
          useFactory: async (config: Config) => ({ limits: config.limits, headers: ["draft6"] }),
        }),
      ],
      controllers: [createController("shop")],
    });
    const { headers } = await ask(`${url}/shop/one`);
    expect(headers).toMatchObject({ "ratelimit-limit": "2", "ratelimit-remaining": "1" });
    expect(headers["x-ratelimit-limit"]).toBeUndefined();
  });

  it("that are invalid keep an app from starting", async () => {
    const module = RateLimitModule.forRootAsync({ useFactory: () => ({ limits: "ten per second" }) });
    await expect(startNest({ imports: [module] })).rejects.toThrow(/windows/);
  });

  it.each([true, false])(
    "keep an app from starting that depend on the request, which would never see them (everywhere: %s)",
    async (everywhere) => {
      class OfRequest extends Config {}
      Injectable({ scope: Scope.REQUEST })(OfRequest);
      const module = RateLimitModule.forRootAsync({
        imports: [{ module: ConfigModule, providers: [OfRequest], exports: [OfRequest] }],
        inject: [OfRequest],
        useFactory: ({ limits }: OfRequest) => ({ limits }),
        everywhere,
      });
      await expect(startNest({ imports: [module] })).rejects.toThrow(/request/);
    },
  );

  it("keep an app from starting that has them twice, of which one would not be asked", async () => {
    const imports = [RateLimitModule.forRoot("100/h"), RateLimitModule.forRoot("2/m")];
    await expect(startNest({ imports })).rejects.toThrow(/once/);
    class Feature {}
    const [one] = imports;
    const url = await start({
      imports: [one!, { module: Feature, imports: [one!] }],
      controllers: [createController("shop")],
    });
    expect(await left(`${url}/shop/one`)).toBe("99");
  });

  it("are separate for each app, if two apps have the same module", async () => {
    const metadata = { imports: [RateLimitModule.forRoot("2/h")], controllers: [createController("shop")] };
    const urls = [await start(metadata), await start(metadata)];
    expect(await left(`${urls[0]}/shop/one`)).toBe("1");
    expect(await left(`${urls[1]}/shop/one`)).toBe("1");
  });
});
