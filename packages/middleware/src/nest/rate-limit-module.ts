import {
  type DynamicModule,
  type FactoryProvider,
  Inject,
  Module,
  type ModuleMetadata,
  type OnModuleInit,
  type Provider,
  Scope,
} from "@nestjs/common";
import { APP_FILTER, APP_GUARD, ModuleRef, ModulesContainer, Reflector } from "@nestjs/core";
import { SluiceError } from "sluice";
import { aFunction, anObject, type CheckedCall, checkOptions, trueOrFalse } from "sluice/internal";
import { checkedOptions } from "../check-options.ts";
import type { Limits } from "../limits.ts";
import type { RateLimitOptions } from "../rate-limit-options.ts";
import type { NestRequest } from "./exchange.ts";
import { markKey } from "./rate-limit.ts";
import { RateLimitFilter } from "./rate-limit-filter.ts";
import { RateLimitGuard } from "./rate-limit-guard.ts";
import { type RateLimitSettings, RouteGates } from "./route-gates.ts";

interface Everywhere {
  /**
   * Whether all handlers are guarded. Default: true. If false, only handlers with `@UseGuards(RateLimitGuard)` are, which
   * runs after the guards listed before it and so sees the user they authenticated.
   */
  readonly everywhere?: boolean | undefined;
}

export interface RateLimitModuleOptions<Request extends object = NestRequest>
  extends RateLimitOptions<Request>,
    Everywhere {}

export interface RateLimitAsyncOptions<Request extends object = NestRequest>
  extends Pick<ModuleMetadata, "imports">,
    Everywhere {
  readonly inject?: FactoryProvider["inject"];
  readonly useFactory: (...injected: never[]) => RateLimitSettings<Request> | Promise<RateLimitSettings<Request>>;
}

/**
 * Rate limits for Nest 10 and later. With `RateLimitModule.forRoot("100/m")` in the imports of the app's module, every
 * handler of HTTP (on Express or Fastify), GraphQL and WebSockets is limited, unless a decorator changes that
 * (`RateLimit`, `SkipRateLimit`).
 *
 * The client's address is the platform's own, unless `trustedProxies` or `ip` is given. The endpoint is the route's
 * pattern with its prefix and version (`/v1/orders/:id`), `/graphql/Query/orders` for a field, `/ws/orders` for an event.
 *
 * - **HTTP**: Nest runs no guard for a path without a route; to limit those too, add a controller with `@All("*")` last.
 *   Guards run after the body is parsed. To refuse before that, use `rateLimit` for Express or Fastify.
 * - **GraphQL**: an operation counts once for each of its fields that Nest guards. On Fastify, headers and charges need the
 *   reply in the context: `context: (req, reply) => ({ req, reply })`.
 * - **WebSockets**: before Nest 12, a gateway needs `@UseGuards(RateLimitGuard)`, and a filter that sends errors to clients
 *   of `ws`. A client of `ws` does not keep its request headers, so behind a proxy set `ip`. An event has no answer to
 *   charge by or give back for; its handler uses `findTicket(client)`.
 */
export class RateLimitModule implements OnModuleInit {
  readonly #self: ModuleRef;
  readonly #modules: ModulesContainer;

  constructor(self: ModuleRef, modules: ModulesContainer) {
    this.#self = self;
    this.#modules = modules;
  }

  static forRoot<Request extends object = NestRequest>(
    limits: Limits,
    options: RateLimitModuleOptions<Request> = {},
  ): DynamicModule {
    const { everywhere, ...rest } = checkedOptions(options, { everywhere: trueOrFalse });
    const create = (): RouteGates => createRouteGates({ ...rest, limits });
    // Reports mistakes now. Every app that imports the module gets its own limits.
    create();
    return createModule({ provide: RouteGates, useFactory: create }, { everywhere });
  }

  /** Limits and options that come from other providers: `useFactory: (config) => ({ limits: config.get("limits") })`. */
  static forRootAsync<Request extends object = NestRequest>(options: RateLimitAsyncOptions<Request>): DynamicModule {
    checkOptions<RateLimitAsyncOptions<Request>>(options, asyncForms, asyncCall);
    const { imports = [], inject = [], useFactory, everywhere } = options;
    if (useFactory === undefined) throw wrongModule("useFactory", `is required; ${asyncHint}`);
    const create = async (...injected: never[]): Promise<RouteGates> => {
      const settings = await useFactory(...injected);
      if (!anObject.holds(settings)) throw wrongModule("useFactory", `must return an object; ${asyncHint}`);
      return createRouteGates(settings);
    };
    // Nest passes the injected values, and has no types for them.
    const provider: FactoryProvider = {
      provide: RouteGates,
      inject,
      useFactory: create as FactoryProvider["useFactory"],
    };
    return { ...createModule(provider, { everywhere }), imports };
  }

  /** Fails the start of an app whose limits would never be checked, or would start fresh with every request. */
  onModuleInit(): void {
    if (this.#self.introspect(RouteGates).scope !== Scope.DEFAULT) {
      throw wrongModule("inject", "must not name request-scoped providers: limits outlive requests");
    }
    if ([...this.#modules.values()].filter(({ metatype }) => metatype === RateLimitModule).length > 1) {
      throw wrongModule(
        "imports",
        `must contain RateLimitModule once: only one of two is used; give it all limits, as in forRoot(["10/s", "100/h"])`,
      );
    }
  }
}

Module({})(RateLimitModule);
Inject(ModuleRef)(RateLimitModule, undefined, 0);
Inject(ModulesContainer)(RateLimitModule, undefined, 1);

const asyncHint = 'write useFactory: () => ({ limits: "100/m" })';
const asyncForms = { imports: undefined, inject: undefined, useFactory: aFunction, everywhere: trueOrFalse };
const asyncCall: CheckedCall = {
  name: "RateLimitModule.forRootAsync",
  code: "invalid_policies",
  foreign: { limits: asyncHint, useClass: asyncHint, useExisting: asyncHint },
};

function wrongModule(name: string, message: string): SluiceError {
  return new SluiceError("invalid_policies", `${name} ${message}`, [{ path: [name], message }]);
}

function createRouteGates<Request extends object>(settings: RateLimitSettings<Request>): RouteGates {
  const reflector = new Reflector();
  // Only the app knows the type of its requests; code here treats every field as optional.
  return new RouteGates(settings as RateLimitSettings, (target) => reflector.get(markKey, target));
}

let modulesMade = 0;

function createModule(gates: Provider, { everywhere = true }: Everywhere): DynamicModule {
  modulesMade += 1;
  return {
    module: RateLimitModule,
    global: true,
    providers: [
      gates,
      // Before Nest 11, modules with equal source text are the same module, and all factories have equal text.
      { provide: "sluice:module", useValue: modulesMade },
      RateLimitGuard,
      { provide: APP_FILTER, useClass: RateLimitFilter },
      ...(everywhere ? [{ provide: APP_GUARD, useExisting: RateLimitGuard }] : []),
    ],
    exports: [RouteGates, RateLimitGuard],
  };
}
